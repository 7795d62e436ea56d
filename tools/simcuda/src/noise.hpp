#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace simcuda {

/// Multiplies times by exp(sigma * normal), from a seed. Not thread-safe.
class Noise {
 public:
  Noise(double sigma, std::uint64_t seed) : sigma_(sigma), state_(seed) {}

  [[nodiscard]] double factor() {
    if (sigma_ <= 0) return 1.0;
    return std::exp(sigma_ * normal());
  }

 private:
  // Box and Muller, one of the two values.
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }
  // In (0, 1]. splitmix64.
  double uniform() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    z ^= z >> 31;
    return (static_cast<double>(z >> 11) + 1.0) * 0x1.0p-53;
  }

  double sigma_;
  std::uint64_t state_;
};

}  // namespace simcuda
