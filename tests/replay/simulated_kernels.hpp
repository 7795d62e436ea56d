#pragma once

#include <cstdint>
#include <string>

#include "plan.hpp"

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

/// What the PTX of a kernel would show of the memory that it uses, as images have it; empty: not
/// all of it, as where addresses lie in memory.
[[nodiscard]] std::string shown_access(Family family, Flavour flavour);

/// Kernels of the family Unstable count their launches outside of any memory of the device.
void reset_unstable_kernels();

constexpr unsigned num_counters = 64;
