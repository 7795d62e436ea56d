#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "plan.hpp"
#include "stream_calls.hpp"

/// The arguments of one launch, which are gone when it returns.
class KernelCall {
 public:
  explicit KernelCall(CUfunction function) : function_(function) {}
  ~KernelCall() { bytes_.fill(std::byte{0x5a}); }
  KernelCall(const KernelCall&) = delete;
  KernelCall& operator=(const KernelCall&) = delete;

  template <typename T>
  KernelCall& add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    size_ = (size_ + alignof(T) - 1) / alignof(T) * alignof(T);
    pointers_.at(count_++) = &bytes_.at(size_);
    std::memcpy(&bytes_.at(size_), &value, sizeof value);
    size_ += sizeof value;
    return *this;
  }

  [[nodiscard]] CUresult launch(const StreamCalls& calls, Form form, unsigned grid, unsigned block,
                                CUstream stream);
  /// For a node of a graph.
  [[nodiscard]] void** pointers() { return pointers_.data(); }

 private:
  CUfunction function_;
  alignas(16) std::array<std::byte, 96> bytes_{};
  std::array<void*, 8> pointers_{};
  std::size_t size_ = 0;
  std::size_t count_ = 0;
};
