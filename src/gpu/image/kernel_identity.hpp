#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/value/kernel_rule.hpp"
#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// The real kind of a launch's CUfunction. Programs on the CUDA runtime launch CUkernels cast to
/// CUfunction; the driver answers cuFunc* with CUDA_ERROR_INVALID_HANDLE for these, and cuKernel*
/// for real functions.
enum class HandleKind { Function, Kernel };

/// Facts about the kernel behind a handle, on this thread's current device. A value; valid until
/// the module or library is unloaded.
struct KernelIdentity {
  HandleKind kind = HandleKind::Function;
  CUfunction handle = nullptr;    ///< as launched
  CUfunction function = nullptr;  ///< of the current context; `handle` itself for a function
  CUmodule module = nullptr;      ///< of a function; null: the driver cannot tell
  CUlibrary library = nullptr;    ///< of a kernel; null: the driver cannot tell
  std::string symbol;             ///< mangled
  std::string name;               ///< demangled, without parameters
  std::vector<ArgumentLayout> parameters;
  int registers = 0;
  int max_threads = 0;  ///< of one block, as compiled
  int binary_version = 0;
  int ptx_version = 0;
  std::size_t static_shared_bytes = 0;
  std::size_t local_bytes = 0;
  std::size_t max_dynamic_shared_bytes = 0;  ///< as the program has set it
  std::array<std::uint32_t, 3> required_cluster{0, 0, 0};
  bool cluster_size_must_be_set = false;
  std::uint64_t code_hash = 0;  ///< of name, attributes and parameters
};

/// Asks the driver; takes some microseconds, so callers keep the answer until an unload. Any
/// thread. Empty: the driver cannot name the kernel, and `why` says so in a sentence.
[[nodiscard]] std::optional<KernelIdentity> identify(const Driver& driver, CUfunction handle,
                                                     std::string& why);

/// As KernelIdentity::binary_version; of a null handle what the current device runs.
[[nodiscard]] int binary_version(const Driver& driver, HandleKind kind, CUfunction handle);

/// Another kernel of the same module or library, by symbol or by demangled name, as a handle to
/// launch; null if there is none.
[[nodiscard]] CUfunction find_function(const Driver& driver, const KernelIdentity& neighbour,
                                       std::string_view name);

/// Demangled names of all kernels of the same module or library, sorted; for messages.
[[nodiscard]] std::vector<std::string> function_names(const Driver& driver,
                                                      const KernelIdentity& neighbour);

}  // namespace contextune::gpu
