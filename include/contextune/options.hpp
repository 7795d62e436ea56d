#pragma once

#include <string>

namespace contextune {

enum class Mode { Auto, Body, Replay, Live };
enum class ScheduleKind { Table, Interleaved, Racing };
enum class Selection { Median, Mean, Min };
enum class TimerKind { Auto, Cupti, Events };
enum class Distributed { Auto, Off, On };
/// Who decides on the kernels of a region that several ranks have; see the option.
enum class Scope { Auto, Global, Local };
/// Where ranks wait for one another before a pass; see the option.
enum class Align { None, Pass, Sample };
/// How far from its default a collective's result may be led; see the option.
enum class Exactness { Exact, SameAlgorithm, Any };
/// When a choice is searched.
enum class Select {
  Deferred,  ///< in the passes of the region around its call; outside of one at once
  Immediate  ///< at once and alone, wherever it is called
};
/// Which implementations may run, where some are fused with what else is done and others are not.
enum class Fusion {
  Auto,  ///< all
  On,    ///< none that is unfused, where a fused one can do the problem
  Off    ///< none that is fused
};
/// The use that is made of the winners of earlier runs; see the option.
enum class StoreUse { Tune, Stored, Off };
enum class LogLevel { Debug, Info, Warn };

/// Whose machine code is given waits when it is loaded; see the option.
enum class Splice { Off, Own, All };

/// The knobs that are tried without a declaration, because they cannot change a result; see the
/// option auto.
struct AutoKnobs {
  bool chained = true;      ///< launches that are prepared while the kernel before them ends
  bool gathered = true;     ///< launches that are handed over as one graph
  bool collectives = true;  ///< how NCCL does collectives
  bool attributes = false;  ///< launch attributes of kernels
  bool operator==(const AutoKnobs&) const = default;
};

/// Every knob of contextune with its default. The rows, with their meaning, are in options.def;
/// each is also a flag of `contextune run` and a variable. Flag over variable over default; a value
/// that a C++ author sets here counts as the default. A plain value.
struct Options {
#define CONTEXTUNE_OPTION(type, name, default_value, scope, meaning) type name = default_value;
#include <contextune/options.def>
#undef CONTEXTUNE_OPTION
};

}  // namespace contextune
