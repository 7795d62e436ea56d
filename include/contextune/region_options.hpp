#pragma once

#include <optional>
#include <string>

#include <contextune/options.hpp>
#include <contextune/restore.hpp>

namespace contextune {

/// Options of a region, set by its author. Designated initialisers, in this order:
///
///     {.repeatable = true, .n_warmup = 1, .schedule = ScheduleKind::Racing}
///
/// The options of options.def that a region may have follow below `group`, in their order
/// there. They are mode, n_warmup, n_repeat, schedule, selection, margin, refine, ... Options that
/// are not set follow the process. A flag or a CONTEXTUNE_ variable wins over what is set here. The
/// options count at the first entry of a region; `repeatable`, `restore`, `communicator` and
/// `group` at each.
struct RegionOptions {
  /// Running the body several times leaves the same as running it once.
  bool repeatable = false;
  /// How to make it so where it does not.
  Restore restore = {};
  /// An ncclComm_t whose ranks do it, one a process: they tune it by themselves, and wait for
  /// nobody else. All of them have to enter the region alike. Absent: those of the job that a
  /// region is tuned with by itself.
  void* communicator = nullptr;
  /// The same, by their ranks in the job, "0-3+6", where they have no communicator of their own.
  std::string group = {};

#define CONTEXTUNE_FIELD_Region(type, name) std::optional<type> name = {};
#define CONTEXTUNE_FIELD_Choice(type, name)
#define CONTEXTUNE_FIELD_Process(type, name)
#define CONTEXTUNE_OPTION(type, name, default_value, scope, meaning) \
  CONTEXTUNE_FIELD_##scope(type, name)
#include <contextune/options.def>
#undef CONTEXTUNE_OPTION
#undef CONTEXTUNE_FIELD_Process
#undef CONTEXTUNE_FIELD_Choice
#undef CONTEXTUNE_FIELD_Region
};

}  // namespace contextune
