#pragma once

#include <cstddef>
#include <optional>

#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// A copy or a memset as the program called it.
struct Transfer {
  static constexpr std::size_t none = ~std::size_t{0};

  CUstream stream = nullptr;  ///< never null: default streams by their special handles
  bool synchronous = false;   ///< the host waits as far as the call's rules say
  /// Places among the arguments of what may be host memory. Both may be, for a copy between
  /// addresses of any kind.
  std::size_t source = none;
  std::size_t destination = none;
  std::size_t size_bytes = 0;  ///< of a copy
};

/// Absent: it is none, or of a kind that is not recorded (between devices, with pitch, of arrays,
/// in batches).
[[nodiscard]] std::optional<Transfer> transfer_of(contextune_fn fn, void* const* args) noexcept;

}  // namespace contextune::intercept
