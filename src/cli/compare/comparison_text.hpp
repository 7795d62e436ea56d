#pragma once

#include <string>

#include "cli/compare/comparison.hpp"

namespace contextune::cli {

/// For a reader; ends with a summary line. @param width characters of a line
[[nodiscard]] std::string side_comparison_text(const SideComparison& comparison,
                                               const ComparedSide& a, const ComparedSide& b,
                                               std::size_t width);

/// For programs: times in seconds, null where there is none. `schema` counts up when the meaning of
/// something changes.
[[nodiscard]] std::string side_comparison_json(const SideComparison& comparison,
                                               const ComparedSide& a, const ComparedSide& b);

}  // namespace contextune::cli
