#pragma once

#include <cstddef>

namespace contextune::intercept {

/// The argument of that number of a call that the frontend shows: see contextune_core.
template <typename T>
T argument(void* const* args, std::size_t index) noexcept {
  return *static_cast<const T*>(args[index]);
}

}  // namespace contextune::intercept
