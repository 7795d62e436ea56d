#pragma once

#include <string>
#include <vector>

namespace contextune::cli {

/// The libraries that an ELF file names (DT_NEEDED), by the names that it has for them; of any
/// other file none.
[[nodiscard]] std::vector<std::string> needed_libraries(const std::string& path);

}  // namespace contextune::cli
