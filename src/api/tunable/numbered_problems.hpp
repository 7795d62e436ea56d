#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace contextune::api {

/// The problems of a tunable or of a choice, numbered from 0 as they come. A problem never moves.
template <class Problem, std::size_t num_chunks>
class NumberedProblems {
 public:
  static constexpr std::uint32_t none = 0xffffffffU;
  static constexpr std::uint32_t most = (1U << num_chunks) - 1;

  /// Null beyond the last. Any thread, without a lock.
  [[nodiscard]] Problem* at(std::uint32_t number) const noexcept {
    return number < size() ? &place(number) : nullptr;
  }
  [[nodiscard]] std::uint32_t size() const noexcept {
    return num_problems_.load(std::memory_order_acquire);
  }

  /// The number of the problem of that text; `none` when there are too many. Under the owner's
  /// lock.
  /// @param fill called with a new problem, before other threads see it; if it throws, nothing was
  ///   added, and the next call gives the same problem again
  template <class Fill>
  [[nodiscard]] std::uint32_t number_of(const std::string& text, const Fill& fill) {
    if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
    const std::uint32_t number = num_problems_.load(std::memory_order_relaxed);
    if (number == most) return none;
    const std::size_t chunk = chunk_of(number);
    if (chunks_[chunk] == nullptr)
      chunks_[chunk] = std::make_unique<Problem[]>(std::size_t{1} << chunk);
    fill(place(number));
    numbers_.emplace(text, number);
    num_problems_.store(number + 1, std::memory_order_release);
    return number;
  }

 private:
  /// Chunk i holds 2^i problems.
  [[nodiscard]] static std::size_t chunk_of(std::uint32_t number) noexcept {
    return static_cast<std::size_t>(std::bit_width(number + std::uint64_t{1})) - 1;
  }
  [[nodiscard]] Problem& place(std::uint32_t number) const noexcept {
    const std::size_t chunk = chunk_of(number);
    return chunks_[chunk][number + std::uint64_t{1} - (std::uint64_t{1} << chunk)];
  }

  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::atomic<std::uint32_t> num_problems_{0};
  std::array<std::unique_ptr<Problem[]>, num_chunks> chunks_;
};

}  // namespace contextune::api
