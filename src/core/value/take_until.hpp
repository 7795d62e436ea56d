#pragma once

#include <algorithm>
#include <string_view>

namespace contextune {

/// Takes what stands before the first `end`, and that one, off a text; all of it, if there is none.
inline std::string_view take_until(std::string_view& text, char end) noexcept {
  const std::string_view piece = text.substr(0, text.find(end));
  text.remove_prefix(std::min(piece.size() + 1, text.size()));
  return piece;
}

}  // namespace contextune
