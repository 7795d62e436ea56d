#include "core/trials/store.hpp"

namespace contextune {

std::string_view to_string(StoredKind kind) {
  constexpr std::string_view words[] = {"region", "function", "choice"};
  return words[static_cast<std::size_t>(kind)];
}

}  // namespace contextune
