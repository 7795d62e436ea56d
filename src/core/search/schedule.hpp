#pragma once

#include <cstdint>
#include <span>

#include <contextune/options.hpp>

#include "core/trials/trial.hpp"

namespace contextune {

/// How long a schedule is.
struct ScheduleShape {
  std::uint32_t num_configs = 1;
  int n_warmup = 3;
  int n_repeat = 5;  ///< at least 1
};

/// A site's step in one pass.
struct Step {
  enum class Kind {
    Run,
    Wait,     ///< the next step depends on samples that have not come yet
    Finished  ///< all configs have had their passes
  };
  Kind kind = Kind::Finished;
  std::uint32_t config = 0;
  int iteration = 0;  ///< of the counted ones; below 0: warm-up, the last one is -1

  [[nodiscard]] bool counts() const { return iteration >= 0; }
  bool operator==(const Step&) const = default;
};

/// Order of the trials of one site: which config comes in its p-th pass. Pure: a function of its
/// arguments alone, so that all ranks that share the samples take the same steps.
class Schedule {
 public:
  virtual ~Schedule() = default;

  /// Step `p` of a site with these trials. `settled` says that every sample of the steps before p
  /// has come or is lost; a schedule that looks at samples answers Wait while it is false.
  /// Step 0 always runs config 0, which is never excluded.
  [[nodiscard]] virtual Step step(std::uint64_t p, const ScheduleShape& shape,
                                  std::span<const Trial> trials, bool settled) const = 0;
};

/// The schedule of that name; lives for ever.
[[nodiscard]] const Schedule& schedule_of(ScheduleKind kind);

}  // namespace contextune
