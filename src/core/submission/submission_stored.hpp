#pragma once

#include <optional>
#include <string>

#include "core/submission/submission_state.hpp"
#include "core/trials/store.hpp"

namespace contextune {

/// "chained=true gathered=16", and "ordinary=5" where kernels 0 and 2 are not chained.
[[nodiscard]] Config config_of(const Submission& submission);

/// The search for how a program's launches reach the driver, as the store keeps it. Its trials are
/// the submissions that were measured, launches as written first. They have no times: a search
/// compares blocks that are near each other, and knows ratios alone.
/// @param key tells programs apart
/// @param code the build of the program file; empty: not known
[[nodiscard]] StoredSite stored_submission(const SubmissionState& state, std::string name, Key key,
                                           std::string code);

/// Where the search goes on. Absent where the site has no such state, or its winner is another one:
/// that has failed since.
[[nodiscard]] std::optional<SubmissionState> submission_of(const StoredSite& site);

}  // namespace contextune
