#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "preload/contextune_abi.h"

namespace contextune::intercept {

/// How to make one copy or memset of the registry (transfer.def) from stored arguments.
struct DriverCall {
  /// `args` as in contextune_core::before: one address for each argument, in order.
  CUresult (*make)(void* entry_point, void* const* args) = nullptr;
  std::span<const std::uint8_t> argument_bytes;  ///< the size of each
};

/// Most arguments that one of them has.
inline constexpr std::size_t most_recorded_arguments = 8;

/// The call of an entry point of the registry; for any other, an empty one.
[[nodiscard]] const DriverCall& driver_call(contextune_fn fn) noexcept;

}  // namespace contextune::intercept
