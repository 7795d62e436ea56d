#pragma once

#include <string>
#include <string_view>

namespace contextune::cli {

/// The page with these data in it: one file that needs nothing else.
[[nodiscard]] std::string page_of(std::string_view data);

/// Whether a file that begins so is such a page.
[[nodiscard]] bool is_page(std::string_view beginning);

/// So many bytes tell it.
inline constexpr std::size_t page_mark_bytes = 64;

}  // namespace contextune::cli
