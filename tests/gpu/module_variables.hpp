// What module_variables_program.cu tells the tests of its own variables.
#pragma once

#include <cstddef>

struct KnownVariable {
  const char* part;  ///< of the mangled name
  void* address;     ///< on the device, as the CUDA runtime has it
  std::size_t bytes;
};

/// Launches the kernel that writes to all of them, with 1, and waits.
void launch_count();
/// The CUkernel of that kernel.
void* count_kernel();
/// @return how many there are
std::size_t known_variables(KnownVariable* to, std::size_t most);
