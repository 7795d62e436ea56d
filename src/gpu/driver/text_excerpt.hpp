#pragma once

#include <string>
#include <string_view>

namespace contextune::gpu {

/// The first lines of a compiler's log, each on a line of its own after the message that it
/// explains; empty for an empty log.
[[nodiscard]] inline std::string text_excerpt(std::string_view log, int lines = 6) {
  std::string excerpt;
  while (lines-- > 0 && !log.empty()) {
    const std::size_t end = log.find_first_of(std::string_view("\n\0", 2));
    const std::string_view line = log.substr(0, end);
    if (line.find_first_not_of(" \r\t") != std::string_view::npos) {
      excerpt += "\n  ";
      excerpt += line;
    }
    if (end == std::string_view::npos || log[end] == '\0') break;
    log.remove_prefix(end + 1);
  }
  return excerpt;
}

}  // namespace contextune::gpu
