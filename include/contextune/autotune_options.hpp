#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <contextune/buckets.hpp>
#include <contextune/config.hpp>
#include <contextune/region_options.hpp>
#include <contextune/restore.hpp>
#include <contextune/unseen_size.hpp>

namespace contextune {

/// Tuning options of a function, set by its author. Designated initialisers, in this order:
///
///     {.n_repeat = 20, .buckets = contextune::Buckets::parse("4K,64K,1M")}
struct AutotuneOptions {
  int n_warmup = 5;   ///< runs of each config that do not count
  int n_repeat = 10;  ///< runs of each config that count
  /// Running the function several times leaves the same as running it once.
  bool repeatable = false;
  /// How to undo what a run of the function did, where it does not leave the same. If neither is
  /// given, the default is run twice before anything is tried, and device memory is compared. If
  /// the second run changes that memory, as an in-place function does, the function is not tuned,
  /// and the change is undone.
  Restore restore = {};

  /// Which sizes are one problem, where the function says its size().
  Buckets buckets = {};
  /// Sizes that are measured before the first call that can be tuned, with the arguments that
  /// inputs() gives. Such a call is outside of regions, and after CUDA was initialised.
  std::vector<std::uint64_t> hints = {};
  UnseenSize unseen = UnseenSize::Tune;
  /// How many times smaller or larger the nearest size may be.
  std::uint32_t nearest_within = 4;

  /// Calls may set parameters by hand; see CallOptions::set.
  bool allow_override = false;
  /// Says on std::clog what each problem was tuned to.
  bool verbose = false;
  /// An ncclComm_t whose ranks tune the function by themselves, some of the job or all, one per
  /// process. The function has winners of its own for each such group. All of these ranks have to
  /// call it alike. If they do not know one another yet, the first call joins them, in up to 30 s,
  /// as contextune::join() does. If they cannot be found, the default runs, and contextune_error()
  /// says why after each call. A communicator at the address of an earlier one counts as that one.
  void* communicator = nullptr;
  /// Further options of the regions in which problems are tuned. By default each config is timed in
  /// a row (table), and judged by the median of its runs. A config is kept only where alternating
  /// runs confirm that the function is faster with it. There are no neighbours to refine it beside,
  /// but calls of several launches are refined all the same, without CUPTI. Before each run the GPU
  /// has finished the one before, and ranks wait for one another (align = sample).
  RegionOptions region = {};
  /// Of the function's code, as a hash: stored winners of another version do not count. Empty: a
  /// winner of another build of the program is shown again first.
  std::string version = {};
};

/// Options of a single call of a function; see AutotunedFunction::with().
struct CallOptions {
  bool tune = true;      ///< false: runs the default, and measures nothing
  bool verbose = false;  ///< says on std::clog which config it runs
  /// Parameters of the config to run, in place of what was tuned.
  Config set = {};
  void* communicator = nullptr;  ///< in place of AutotuneOptions::communicator
};

}  // namespace contextune
