#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <contextune/contextune.h>
#include <contextune/buckets.hpp>
#include <contextune/config.hpp>
#include <contextune/options.hpp>
#include <contextune/restore.hpp>
#include <contextune/unseen_size.hpp>

namespace contextune {

/// Options of a choice that its author sets. Designated initialisers, in this order. The first
/// three are options of options.def: a flag or a CONTEXTUNE_ variable wins over what is set here.
struct ChoiceOptions {
  Select select = Select::Deferred;
  Fusion fusion = Fusion::Auto;
  /// Names of those that may run, separated by commas; empty: all.
  std::string implementations = {};
  /// Processes that do the operation together, waiting for one another; each calls the choice for
  /// the same problems in the same order. All of the job, unless there is a communicator. 1: this
  /// process alone. 0: as many as `communicator` has.
  int ranks = 0;
  /// An ncclComm_t whose ranks do it, one a process: some of the job or all. They agree among
  /// themselves, and have winners of their own. Rank 0 of the job leads their talks: it has to have
  /// a choice over ranks as well, or a region that it shares. All ranks of the job take part in the
  /// passes of a region that is repeated, in a group or not. If they do not all enter it,
  /// Select::Immediate waits for the group alone.
  void* communicator = nullptr;
  /// By how much outputs may differ from the default's: "f32:1e-5". Empty: not in a bit.
  std::string tolerance = {};
  /// Doing it again changes nothing but its outputs, so that no memory has to be put back.
  bool repeatable = false;
  /// Calls in each pass, one after the other, where the choice is searched outside of a region.
  /// They give the time of a call in a row, as in a loop that does not wait, and not by itself.
  /// More than one only if the choice is repeatable. An untimed call comes before those of each
  /// pass.
  int calls_per_pass = 1;
  int n_warmup = 0;  ///< calls of each config that do not count; 0: as the region
  int n_repeat = 0;  ///< and that do; 0: as the region
  /// Which sizes are one problem, where the choice says its size().
  Buckets buckets = {};
  /// Sizes that are measured before the first call outside of a region, with that call's type and
  /// key, on the arguments that make_inputs gives.
  std::vector<std::uint64_t> hints = {};
  /// Outside of regions. The winner of another size is compared with the default once before it
  /// runs.
  UnseenSize unseen = UnseenSize::Tune;
  /// How many times smaller or larger the nearest size may be.
  std::uint32_t nearest_within = 4;
  /// Of the code of all of it, as a hash: stored winners of another version do not count. Empty: a
  /// winner of another build of the program is shown again first.
  std::string version = {};
  /// The ranks that do it, by their ranks in the job, "0-3+6", where they have no communicator of
  /// their own; in place of `ranks` and `communicator`.
  std::string group = {};
};

/// A problem, as `supports` and `make_inputs` see it.
struct Problem {
  std::size_t bytes = 0;       ///< 0: it has no size
  std::string_view type = {};  ///< "f32"; empty: none was given
  int ranks = 1;
  std::string_view key = {};  ///< "k=4096"; empty: there is none
};

/// Options of one implementation.
struct ImplementationOptions {
  /// Whether it can do the problem, which has to be the same on all ranks. Asked once a problem,
  /// for its smallest and its largest size (2^64-1 bytes beyond the last edge). An exception counts
  /// as no. Empty: it can do all.
  std::function<bool(const Problem&)> supports = {};
  /// Called where another rank failed for which the implementation may wait. Makes its call return
  /// and its work on the GPU end: sets a flag that its kernels read, or calls ncclCommAbort on its
  /// own communicator. Perhaps called from another thread, while the call is under way.
  std::function<void()> abandon = {};
  /// Of its code, as ChoiceOptions::version.
  std::string version = {};
};

/// The device memory of one call. To compare results, outputs are filled with other numbers before
/// the call. An output that holds places which the call follows is among `others`, too, and is not
/// filled.
struct ChoiceMemory {
  std::vector<DeviceSpan> outputs;      ///< where the result is; compared with the default's
  std::vector<DeviceSpan> others = {};  ///< what it reads, or changes on the way
};

/// The timing and state of one way to do a problem.
struct ChoiceTiming {
  std::string implementation;
  Config config;       ///< its own parameters
  double seconds = 0;  ///< median of the samples; 0: there are none
  std::size_t samples = 0;
  contextune_timing_state state = contextune_timing_missing;
  bool is_winner = false;
};

}  // namespace contextune
