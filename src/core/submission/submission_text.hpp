#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/submission/submission_state.hpp"

namespace contextune {

/// The state as one printable ASCII line that begins with its version:
///   1 runs=2 chain=1 gather=8,16 block=0.001 settled=0 winner=c16 gain=0.2 low=0.1 high=0.3
///   pairs=8 kernels=77,78 screen=c16:0.8,0.7 screen=8:0.9 pair=c16-2/0:0.2,0.3/0.1
///   why=the region was shown ...
/// A submission is its gathered launches, behind a `c` if it is chained, and before the bits of
/// kernels that are not. A pair first has the gains that began with the submission behind the
/// slash. Doubles come back in every bit.
/// Empty where submission_state_of() would refuse the text: no search leaves such a state.
[[nodiscard]] std::string text_of(const SubmissionState& state);

/// The inverse, of texts that nobody vouches for: absent unless text_of() gives just this text.
/// Reads at most 64 KiB, 64 sizes, 64 screened submissions, 64 pairs and 4096 figures of each.
[[nodiscard]] std::optional<SubmissionState> submission_state_of(std::string_view text);

/// Each way that was screened, and the middle of its ratios to as written, for a reader of the log:
/// "chained gathered=16 0.970, gathered=16 1.041".
[[nodiscard]] std::string screened_text(const SubmissionState& state);

}  // namespace contextune
