#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace contextune::intercept {

/// Folds one more word into a hash; good enough for tables, not against an adversary.
[[nodiscard]] inline std::uint64_t mix(std::uint64_t hash, std::uint64_t word) noexcept {
  std::uint64_t x = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  return x ^ (x >> 32U);
}

/// Hash of bytes, eight at a time.
[[nodiscard]] inline std::uint64_t hash_bytes(std::uint64_t hash, const void* data,
                                              std::size_t size_bytes) noexcept {
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t word = 0;
  for (; size_bytes >= sizeof word; bytes += sizeof word, size_bytes -= sizeof word) {
    std::memcpy(&word, bytes, sizeof word);
    hash = mix(hash, word);
  }
  if (size_bytes != 0) {
    word = size_bytes;
    std::memcpy(&word, bytes, size_bytes);
    hash = mix(hash, word);
  }
  return hash;
}

}  // namespace contextune::intercept
