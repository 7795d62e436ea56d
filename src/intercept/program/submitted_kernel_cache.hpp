#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

namespace contextune::intercept {

struct SubmittedKernel;

/// The kernels that one thread's launches asked for last. Trivially destructible; not thread-safe.
struct SubmittedKernelCache {
  struct Entry {
    CUfunction handle = nullptr;
    CUcontext context = nullptr;
    std::uint64_t epoch = 0;
    SubmittedKernel* kernel = nullptr;
  };
  std::array<Entry, 16> entries{};

  [[nodiscard]] Entry& of(CUfunction handle) noexcept {
    return entries[(reinterpret_cast<std::uintptr_t>(handle) * 0x9e3779b97f4a7c15ULL) >> 60U];
  }
};

}  // namespace contextune::intercept
