#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace contextune {

/// A 64-bit hash that is the same on every machine and in every run: names winners in the store.
/// Not for secrets.
class StableHash {
 public:
  void add(std::uint64_t word) noexcept {
    // The finaliser of MurmurHash3 over a running sum.
    std::uint64_t x = state_ ^ (word + 0x9e3779b97f4a7c15U + (state_ << 6) + (state_ >> 2));
    x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdU;
    x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53U;
    state_ = x ^ (x >> 33);
  }
  void add(std::string_view bytes) noexcept {
    add(static_cast<std::uint64_t>(bytes.size()));
    while (!bytes.empty()) {
      std::uint64_t word = 0;
      const std::size_t n = bytes.size() < sizeof(word) ? bytes.size() : sizeof(word);
      std::memcpy(&word, bytes.data(), n);
      add(word);
      bytes.remove_prefix(n);
    }
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return state_; }

 private:
  std::uint64_t state_ = 0x636f6e7465787475U;
};

}  // namespace contextune
