#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

/// Draws that are the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  [[nodiscard]] std::uint64_t bits() { return engine_(); }
  /// One of 0 ... bound - 1.
  [[nodiscard]] std::uint32_t below(std::size_t bound) {
    return static_cast<std::uint32_t>(engine_() % bound);
  }
  /// One of first ... last.
  [[nodiscard]] std::uint32_t between(std::uint32_t first, std::uint32_t last) {
    return first + below(last - first + 1U);
  }
  [[nodiscard]] bool chance(unsigned percent) { return below(100) < percent; }
  template <typename T>
  [[nodiscard]] const T& one_of(const std::vector<T>& all) {
    return all[below(all.size())];
  }
  template <typename T>
  void shuffle(std::vector<T>& all) {
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[below(i)]);
  }

 private:
  std::mt19937_64 engine_;
};
