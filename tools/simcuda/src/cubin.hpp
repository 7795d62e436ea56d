#pragma once

#include <string_view>
#include <vector>

namespace simcuda {

/// What the instructions of a kernel say about the order of launches.
struct CubinKernel {
  std::string_view name;
  bool waits = false;     // for the kernel before, ahead of all else that it does
  bool triggers = false;  // somewhere in its code
  bool detours = false;   // it begins with a branch
};

/// The parts of machine code that count here. Points into the image.
struct Cubin {
  std::vector<CubinKernel> kernels;
  std::string_view text;  // of its section .simcuda: a module image
};

[[nodiscard]] bool is_cubin(std::string_view image);
/// True for a fatbin, or for the wrapper that the compiler puts around one.
[[nodiscard]] bool is_fat_binary(const void* image);

/// All bytes of the machine code at an address, as far as its header says.
/// @throws Failure: NO_BINARY_FOR_GPU for an ELF file of another kind
[[nodiscard]] std::string_view cubin_bytes(const void* image);
/// The first machine code in a fatbin that is not compressed.
/// @throws Failure: NO_BINARY_FOR_GPU when there is none, INVALID_IMAGE
[[nodiscard]] const void* cubin_in(const void* fat_binary);
/// @throws Failure: NO_BINARY_FOR_GPU, or INVALID_IMAGE where a real GPU would run astray: a kernel
/// that begins with an instruction not known here, or that branches out of its code.
[[nodiscard]] Cubin read_cubin(std::string_view image);

}  // namespace simcuda
