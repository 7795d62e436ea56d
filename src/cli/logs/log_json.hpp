#pragma once

#include <string>

#include "cli/logs/log_contents.hpp"

namespace contextune::cli {

/// For programs: times in seconds, null where there is none. `schema` counts up when the meaning of
/// something changes.
[[nodiscard]] std::string to_json(const LogContents& contents);

}  // namespace contextune::cli
