#pragma once

#include <string>

#include "cli/logs/log_contents.hpp"

namespace contextune::cli {

/// What a page shows, as JSON that may stand in a <script> element: it has no "<", and all
/// characters but those of ASCII are escaped, whatever bytes the logs hold. `schema` counts up when
/// the meaning of something changes; page.js reads it.
[[nodiscard]] std::string page_data(const LogContents& contents);

}  // namespace contextune::cli
