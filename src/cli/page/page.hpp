#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace contextune::cli {

/// The page with these data in it: one file that needs nothing else.
/// @param version of the data, for a page that asks the server that it comes from for newer ones;
///   0: it asks nobody
[[nodiscard]] std::string page_of(std::string_view data, std::uint64_t version = 0);

/// Whether a file that begins so is such a page.
[[nodiscard]] bool is_page(std::string_view beginning);

/// So many bytes tell it.
inline constexpr std::size_t page_mark_bytes = 64;

}  // namespace contextune::cli
