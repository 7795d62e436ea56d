#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/value/stable_hash.hpp"

namespace contextune::gpu {

/// A number that tells the kernels of one graph launch apart in CUPTI's records: it stands for the
/// mangled name and how the kernel was launched. Never 0.
[[nodiscard]] inline std::uint64_t kernel_shape(std::string_view symbol,
                                                const std::array<std::uint32_t, 3>& grid,
                                                const std::array<std::uint32_t, 3>& block,
                                                std::uint32_t dynamic_shared_bytes) noexcept {
  StableHash hash;
  hash.add(symbol);
  for (const std::uint32_t extent : grid) hash.add(std::uint64_t{extent});
  for (const std::uint32_t extent : block) hash.add(std::uint64_t{extent});
  hash.add(std::uint64_t{dynamic_shared_bytes});
  return hash.value() | 1U;
}

}  // namespace contextune::gpu
