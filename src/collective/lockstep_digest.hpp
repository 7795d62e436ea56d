#pragma once

#include <cstdint>

#include "collective/cell.hpp"

namespace contextune::collective {

/// A hash of numbers that ranks compare: FNV-1a, byte by byte, the same on every machine.
class LockstepDigest {
 public:
  void add(std::uint64_t number) noexcept {
    for (int shift = 0; shift < 64; shift += 8) {
      state_ = (state_ ^ (number >> shift & 0xffU)) * 0x100000001b3U;
    }
  }
  void add(const Decision& decision) noexcept {
    add(decision.is_default() ? 0 : 1 + decision.cell.index());
    add(decision.channels);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return state_; }

 private:
  std::uint64_t state_ = 0xcbf29ce484222325U;
};

}  // namespace contextune::collective
