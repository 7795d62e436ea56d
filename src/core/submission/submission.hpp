#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace contextune {

/// How a region's launches reach the driver. The default is config 0: as the program wrote them.
struct Submission {
  bool chained = false;  ///< launches may be prepared while the kernel before them ends
  /// The most launches that one graph launch hands over. 0: none.
  std::uint32_t gathered = 0;
  /// Where launches are chained: bit i is set where those of kernel i of SubmissionState::kernels
  /// are not.
  std::uint32_t ordinary = 0;

  [[nodiscard]] bool is_as_written() const { return !chained && gathered == 0; }
  bool operator==(const Submission&) const = default;
};

/// "as written", "chained", "gathered=16", "chained gathered=16" or "chained but=0,2 gathered=16".
[[nodiscard]] std::string text_of(const Submission& submission);

/// Empty where the text is none of these.
[[nodiscard]] std::optional<Submission> submission_of(std::string_view text);

/// How the user says that launches go out.
struct PinnedLaunches {
  Submission submission;
  bool in_turns = false;  ///< with launches as written, block by block, and both are compared

  bool operator==(const PinnedLaunches&) const = default;
};

/// "chained gathered=16" or "chained gathered=16 in turns". Kernels cannot be left out.
/// Throws Error: the text is none of these, and what it may be.
[[nodiscard]] PinnedLaunches pinned_launches_of(std::string_view text);

/// The hash of a kernel's symbol, as SubmissionState::kernels has it.
[[nodiscard]] std::uint64_t hash_of_kernel(std::string_view symbol);

}  // namespace contextune
