#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "intercept/submit/submitted_kernels.hpp"

namespace contextune::intercept {

/// A launch that is held back, with a copy of its arguments in the batch.
struct HeldLaunch {
  const SubmittedKernel* kernel = nullptr;
  Dim3 grid{};
  Dim3 block{};
  std::uint32_t shared_bytes = 0;
  std::uint32_t arguments = 0;  ///< where its arguments begin
  bool chained = false;         ///< to the one before it in the batch

  bool operator==(const HeldLaunch&) const = default;
};

/// Launches of one stream in their order. Copyable, no memory of its own.
class LaunchBatch {
 public:
  static constexpr std::size_t most_launches = 32;
  static constexpr std::size_t most_argument_bytes = 16384;

  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] const HeldLaunch& operator[](std::size_t i) const noexcept { return launches_[i]; }

  /// Kernels and how they follow each other: what an executable graph is made for.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }

  [[nodiscard]] bool has_room_for(const SubmittedKernel& kernel) const noexcept {
    return size_ < most_launches && num_bytes_ + padded(kernel) <= most_argument_bytes;
  }

  /// @param kernel has room, and the call its arguments in kernel_params
  void add(const SubmittedKernel& kernel, const contextune_launch& call, bool chained) noexcept {
    HeldLaunch& held = launches_[size_++];
    held.kernel = &kernel;
    held.grid = {call.grid[0], call.grid[1], call.grid[2]};
    held.block = {call.block[0], call.block[1], call.block[2]};
    held.shared_bytes = call.shared_bytes;
    held.arguments = static_cast<std::uint32_t>(num_bytes_);
    held.chained = chained;
    std::byte* const to = bytes_.data() + num_bytes_;
    std::memset(to, 0, padded(kernel));  // between arguments, so that equal ones compare equal
    for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
      const ArgumentLayout& layout = kernel.parameters[i];
      std::memcpy(to + layout.offset_bytes, call.kernel_params[i], layout.size_bytes);
    }
    num_bytes_ += padded(kernel);
    const auto handle = reinterpret_cast<std::uintptr_t>(&kernel);
    sequence_ = (sequence_ ^ handle ^ static_cast<std::uint64_t>(chained)) * 0x9e3779b97f4a7c15ULL;
    sequence_ ^= sequence_ >> 29U;
  }

  void clear() noexcept {
    size_ = 0;
    num_bytes_ = 0;
    sequence_ = 0;
  }

  /// Pointers to the arguments, as a launch takes them. Valid as long as the batch is.
  /// @param pointers has room for SubmittedKernel::most_parameters
  void arguments_of(std::size_t i, void** pointers) noexcept {
    for (const ArgumentLayout& one : launches_[i].kernel->parameters) {
      *pointers++ = bytes_.data() + launches_[i].arguments + one.offset_bytes;
    }
  }

  [[nodiscard]] bool is_same_sequence(const LaunchBatch& other) const noexcept {
    if (size_ != other.size_ || sequence_ != other.sequence_) return false;
    for (std::size_t i = 0; i < size_; ++i) {
      if (launches_[i].kernel != other.launches_[i].kernel ||
          launches_[i].chained != other.launches_[i].chained) {
        return false;
      }
    }
    return true;
  }

  /// Whether launch `i` of both does the same. They are of the same sequence.
  [[nodiscard]] bool is_same(std::size_t i, const LaunchBatch& other) const noexcept {
    return launches_[i] == other.launches_[i] &&
           std::memcmp(bytes_.data() + launches_[i].arguments,
                       other.bytes_.data() + launches_[i].arguments,
                       padded(*launches_[i].kernel)) == 0;
  }

  /// Takes launch `i` from another of the same sequence.
  void take(std::size_t i, const LaunchBatch& other) noexcept {
    launches_[i] = other.launches_[i];
    std::memcpy(bytes_.data() + launches_[i].arguments,
                other.bytes_.data() + launches_[i].arguments, padded(*launches_[i].kernel));
  }

 private:
  [[nodiscard]] static std::size_t padded(const SubmittedKernel& kernel) noexcept {
    constexpr std::size_t alignment = 16;
    return (kernel.argument_bytes + alignment - 1) / alignment * alignment;
  }

  std::size_t size_ = 0;
  std::size_t num_bytes_ = 0;
  std::uint64_t sequence_ = 0;
  std::array<HeldLaunch, most_launches> launches_{};
  alignas(16) std::array<std::byte, most_argument_bytes> bytes_{};
};

}  // namespace contextune::intercept
