#pragma once

#include <cstdint>

/// What kernels of the family Job are given, by value.
struct Job {
  std::uint8_t kind;
  std::uint16_t shift;
  const std::uint32_t* from;
  std::uint32_t words;
  std::uint32_t* to;
};

/// The last argument of each kernel: an address in which nothing can recognise one.
[[nodiscard]] inline std::uint64_t disguised(std::uint64_t address) {
  return ~address;
}

/// Writes the address of its module's variable `published` to the memory that it is given.
constexpr const char* publishing_kernel = "publish";

/// Makes the kernels known to the simulated driver.
[[nodiscard]] bool register_kernels();

/// Kernels of the family Unstable count their launches outside of any memory of the device.
void reset_unstable_kernels();

constexpr unsigned num_counters = 64;
