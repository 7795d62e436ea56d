#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "gpu/driver/driver.hpp"
#include "gpu/memory/footprint.hpp"

inline constexpr std::size_t block = contextune::gpu::Footprint::block_bytes;

/// The simulated driver with a context, current on the calling thread; made once, since a process
/// has one driver.
struct SimulatedDevice {
  contextune::gpu::Driver driver;
  CUcontext context = nullptr;

  static SimulatedDevice& get();
  [[nodiscard]] std::size_t free_bytes() const;
};

/// Device memory with random content, given back at the end of the test. The host can look at it:
/// it is host memory.
class SimulatedMemory {
 public:
  explicit SimulatedMemory(std::size_t bytes, std::uint32_t seed = 1);
  ~SimulatedMemory();
  SimulatedMemory(const SimulatedMemory&) = delete;
  SimulatedMemory& operator=(const SimulatedMemory&) = delete;

  [[nodiscard]] contextune::gpu::MemoryRange range() const { return range_; }
  [[nodiscard]] unsigned char* data() const {
    return reinterpret_cast<unsigned char*>(range_.begin);
  }
  [[nodiscard]] std::vector<unsigned char> content() const {
    return {data(), data() + range_.bytes};
  }

 private:
  contextune::gpu::MemoryRange range_;
};
