#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/value/kernel_rule.hpp"

namespace contextune::cli {

/// A thing that doctor looked at.
struct Finding {
  enum class Verdict {
    Good,
    Note,    ///< works, but something is worth knowing
    Missing  ///< without it nothing can be tuned
  };
  Verdict verdict = Verdict::Good;
  std::string subject;  ///< one or two words
  std::string text;     ///< what was found, and what to do
};

using Findings = std::vector<Finding>;

/// The driver with its GPUs, CUPTI, NVML and NVRTC.
void examine_gpu(Findings& findings);

/// The GPU that a program would get first; empty if there is none.
[[nodiscard]] std::optional<DeviceFacts> first_device();

/// The C library, our own libraries, variables, other tools, the log folder.
void examine_surroundings(Findings& findings);

}  // namespace contextune::cli
