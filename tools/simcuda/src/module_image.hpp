#pragma once

#include <simcuda/simcuda.h>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace simcuda {

/// A kernel as the driver uses it: what its author described, with defaults and layout filled in.
struct KernelCode {
  const simcuda_kernel* source = nullptr;
  unsigned registers = 0;
  unsigned max_threads_per_block = 0;
  std::vector<std::size_t> offsets;  // of the parameters, in the packed form
  std::size_t parameter_bytes = 0;
  const char* name = nullptr;  // never freed
  // What a cubin says, see cubin.hpp.
  bool is_machine_code = false;
  bool waits = false;
  bool triggers = false;
  bool detours = false;
};

/// A simulated module: the counterpart of a cubin. Immutable.
///
/// The text form, line by line; `#` begins a comment:
///   simcuda image 1
///   library FILE          a kernel file, relative to the folder of the image
///   kernel NAME           a kernel of that file or of the process; none means all of the file
///   registers COUNT       of each kernel named after it, as if it had been compiled otherwise
///   global NAME BYTES     a __device__ variable, zeros at first
///   constant NAME BYTES   a __constant__ one
///   code NAME TEXT        stands for a kernel's instructions
///   access NAME 1=r 2=w   what these would show of its parameters
///
/// A cubin has the kernels of its sections .text.NAME, and such a text in a section .simcuda where
/// it needs one.
struct ModuleImage {
  struct Global {
    std::string name;
    std::size_t bytes;
    bool constant = false;
  };
  std::vector<KernelCode> kernels;
  std::vector<Global> globals;

  /// @param text or a cubin
  /// @throws Failure: INVALID_IMAGE for anything else, SHARED_OBJECT_INIT_FAILED for a kernel file
  /// that does not load, NOT_FOUND for a kernel that nobody registered, or NO_BINARY_FOR_GPU where
  /// it is one of a cubin.
  static std::shared_ptr<const ModuleImage> parse(std::string_view text, const std::string& folder);
  /// Reads FILE.sim where it exists, so that a program can name a cubin that only a real GPU reads;
  /// else FILE. @throws Failure: FILE_NOT_FOUND, or as parse().
  static std::shared_ptr<const ModuleImage> read(const std::string& path);
};

/// Kernels that the process itself registered. Guarded by the driver's lock.
bool register_kernels(const simcuda_kernel_table& table);

}  // namespace simcuda
