#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace contextune::gpu {

/// The buffers that CUPTI fills with records: a fixed number, made once, given out zeroed, so that
/// the launch that makes CUPTI ask for one neither allocates nor clears anything. (With 1 MiB
/// buffers from malloc, cleared by CUPTI, a pass of two small kernels and a flush took 69 us on an
/// H200; with these it takes 42.) Any thread, lock-free. Never given back: CUPTI's thread may
/// outlive its owner.
class ActivityBuffers {
 public:
  static constexpr std::size_t buffer_bytes = std::size_t{64} * 1024;  // some 200 launches
  static constexpr std::size_t num_buffers = 128;

  /// @throws std::bad_alloc
  ActivityBuffers();
  ActivityBuffers(const ActivityBuffers&) = delete;
  ActivityBuffers& operator=(const ActivityBuffers&) = delete;

  /// Null when all are in use; CUPTI then drops records and counts them.
  [[nodiscard]] std::uint8_t* acquire() noexcept;

  /// @param used_bytes how much of it is not zero any more
  void release(std::uint8_t* buffer, std::size_t used_bytes) noexcept;

  /// Takes back what CUPTI kept when it was finalized. Only while CUPTI is not attached.
  void reclaim() noexcept;

 private:
  std::uint8_t* memory_ = nullptr;
  std::array<std::atomic<bool>, num_buffers> used_{};
  std::atomic<std::size_t> next_{0};
};

}  // namespace contextune::gpu
