#pragma once

#include <cstdint>
#include <vector>

#include <contextune/buckets.hpp>
#include <contextune/config.hpp>
#include <contextune/region_options.hpp>
#include <contextune/restore.hpp>
#include <contextune/unseen_size.hpp>

namespace contextune {

/// What the author of a function says of its tuning. Designated initialisers, in this order:
///
///     {.n_repeat = 20, .buckets = contextune::Buckets::parse("4K,64K,1M")}
struct AutotuneOptions {
  int n_warmup = 5;   ///< runs of each config that do not count
  int n_repeat = 10;  ///< runs of each config that count
  /// Running the function several times leaves the same as running it once.
  bool repeatable = false;
  /// How to undo what a run of the function did, where it does not. Where neither is said, the
  /// default is run twice before anything is tried, and device memory is compared: where the second
  /// run changes it, as in place, the function is not tuned, and the change is undone.
  Restore restore = {};

  /// Which sizes are one problem, where the function says its size().
  Buckets buckets = {};
  /// Sizes that are measured before the first call that can be tuned, which is one outside of
  /// regions and after CUDA was initialised, with the arguments that inputs() gives.
  std::vector<std::uint64_t> hints = {};
  UnseenSize unseen = UnseenSize::Tune;
  /// How many times smaller or larger the nearest size may be.
  std::uint32_t nearest_within = 4;

  /// Calls may set parameters by hand; see CallOptions::set.
  bool allow_override = false;
  /// Says on std::clog what each problem was tuned to.
  bool verbose = false;
  /// An ncclComm_t whose ranks tune the function by themselves, some of the job or all, one a
  /// process; it has winners of its own for each such group. All of them have to call it alike.
  /// Where the ranks do not know one another yet, the first call joins them, in up to 30 s, as
  /// contextune::join() does. Where they cannot be found the default runs, and contextune_error()
  /// says why after each call. A communicator counts as an earlier one that was at its address.
  void* communicator = nullptr;
  /// Further options of the regions in which problems are tuned. By default each config is timed in
  /// a row (table), judged by the median of its runs, and kept only where alternating runs confirm
  /// that the function is faster with it; there are no neighbours to refine it beside, but
  /// calls of several launches are refined all the same, without CUPTI. Before
  /// each run the GPU has done the one before, and ranks wait for one another (align = sample).
  RegionOptions region = {};
};

/// What one call of a function does otherwise; see AutotunedFunction::with().
struct CallOptions {
  bool tune = true;      ///< false: runs the default, and measures nothing
  bool verbose = false;  ///< says on std::clog which config it runs
  /// Parameters of the config to run, in place of what was tuned.
  Config set = {};
  void* communicator = nullptr;  ///< in place of AutotuneOptions::communicator
};

}  // namespace contextune
