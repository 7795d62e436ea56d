#pragma once

#include <algorithm>
#include <cstring>

namespace contextune::api {

/// A struct of the caller's with a `size`, which may be of an older form than ours. Null: all zero.
template <class Struct>
Struct whole_of(const Struct* given) {
  Struct copy{};
  if (given != nullptr) std::memcpy(&copy, given, std::min(given->size, sizeof(Struct)));
  copy.size = sizeof(Struct);
  return copy;
}

}  // namespace contextune::api
