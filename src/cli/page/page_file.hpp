#pragma once

#include <string>
#include <string_view>

namespace contextune::cli {

/// Writes a page to a file. It appears there whole or not at all, in place of an earlier page. A
/// file that is no such page is left alone, unless by `force`. "-" is the standard output.
/// @throws Error that names the file and what to do
void write_page(const std::string& path, std::string_view page, bool force);

}  // namespace contextune::cli
