#pragma once

#include <string_view>
#include <vector>

namespace contextune {

enum class TrialStatus {
  Untried,
  Measured,
  LaunchFailed,   ///< could not be launched; its passes run the default
  NoSample,       ///< asked for twice, and no sample came
  CutOff,         ///< hopeless: what was seen of it is far slower than the best
  WrongResult,    ///< computes something else than the default
  TimedOut,       ///< took longer than trial_timeout in one pass
  Crashed,        ///< has taken down the process that tried it, or its context
  Known,          ///< an earlier run has measured it: not tried again
  TooMuchMemory,  ///< took more device memory than comm_memory for NCCL's connections
  NotCompared,    ///< nobody knows whether it computes what the default does
};

/// Why a config is never chosen, though it can be launched.
enum class Rejection { Wrong, NotCompared };

/// "untried", "measured", "failed", "missing", "cutoff", "wrong_result", "timeout", "crashed",
/// "known", "memory", "not_compared": the rank log's words.
[[nodiscard]] std::string_view to_string(TrialStatus status);

/// A config of one site being measured. A plain value.
struct Trial {
  TrialStatus status = TrialStatus::Untried;
  /// A place for each counted pass; NaN where no sample came, or not yet.
  std::vector<double> samples;
  /// The same for the passes that do not count.
  std::vector<double> warmup;

  /// The pass in which it was given up, counted as Step::iteration.
  int given_up_at = 0;

  /// It was given up before there was a schedule, which leaves it out.
  bool excluded = false;

  /// Samples that came.
  [[nodiscard]] std::vector<double> measured() const;
  /// Its remaining passes run the default.
  [[nodiscard]] bool given_up() const {
    return status != TrialStatus::Untried && status != TrialStatus::Measured &&
           status != TrialStatus::NoSample;
  }
};

}  // namespace contextune
