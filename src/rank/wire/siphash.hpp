#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace contextune::rank {

/// A key that only the ranks of one job know.
struct MacKey {
  std::uint64_t low = 0;   ///< bytes 0 to 7, little endian
  std::uint64_t high = 0;  ///< bytes 8 to 15
  bool operator==(const MacKey&) const = default;
};

/// SipHash-2-4 (Aumasson and Bernstein, 2012): who does not know the key cannot tell the value for
/// bytes that he has not seen it for.
[[nodiscard]] std::uint64_t siphash(const MacKey& key, std::span<const std::byte> bytes) noexcept;

}  // namespace contextune::rank
