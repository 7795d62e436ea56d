#pragma once

#include <string_view>

namespace contextune::cli {

/// page.html with its styles and scripts in it, as embed_page.cmake put them together.
[[nodiscard]] std::string_view page_template();

}  // namespace contextune::cli
