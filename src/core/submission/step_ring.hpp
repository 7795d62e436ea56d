#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace contextune {

/// The last steps of a thread or stream. The constructor takes all memory; nothing else throws.
class StepRing {
 public:
  static constexpr std::size_t size = 16384;  ///< three of the longest periods and more

  StepRing() : tokens_(std::make_unique_for_overwrite<std::uint64_t[]>(size)) {}

  /// The step of that number. Steps come one after the other.
  void add(std::uint64_t number, std::uint64_t token) noexcept {
    tokens_[number & (size - 1)] = token;
  }
  [[nodiscard]] std::uint64_t operator[](std::uint64_t number) const noexcept {
    return tokens_[number & (size - 1)];
  }

 private:
  std::unique_ptr<std::uint64_t[]> tokens_;
};

}  // namespace contextune
