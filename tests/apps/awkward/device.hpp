#pragma once

#include <cuda.h>

#include <cstdint>

namespace awkward {

/// What each stretch of memory of these programs holds.
constexpr std::uint32_t num_words = 1U << 16U;
constexpr std::size_t num_bytes = num_words * sizeof(std::uint32_t);

/// Ends the program if a call failed that none of them expects to fail.
void check(CUresult result, const char* what);

/// The one simulated GPU: its primary context, which is current in the thread that opened it, and a
/// module with the one kernel.
struct Device {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction advance = nullptr;
  CUfunction look_up = nullptr;

  static Device open();
  void load_module();
  /// Changes every word, so that one launch more or less is seen. In the region it is the kernel
  /// that is tuned.
  void launch(CUdeviceptr memory, CUstream stream = nullptr) const;
  /// Adds to every word what it reads through a texture object. Through one that is gone a GPU
  /// would read from nowhere, so the process ends.
  void launch_reading(CUtexObject texture, CUdeviceptr memory) const;
};

/// From now on no two launches of the kernel do the same.
void let_results_drift();
/// Another module with the same kernel, in the context that is current.
CUfunction load_advance(CUmodule& module);
void launch(CUfunction advance, CUdeviceptr memory, CUstream stream);

/// Memory of `num_bytes` in the context that is current, all words 1.
CUdeviceptr new_memory();
/// A stream that does not wait for the legacy one.
CUstream new_stream();
constexpr std::size_t mebibyte = std::size_t{1} << 20U;
/// Takes all memory of the device but that, at no address.
void take_memory_but(std::size_t bytes);
/// A texture object over memory of `num_bytes`.
CUtexObject new_texture(CUdeviceptr memory);
void destroy_texture(CUtexObject texture);
/// Memory of the host that the GPU can look at; holds 0.
std::uint32_t* new_host_word(CUdeviceptr& address);

[[nodiscard]] std::size_t free_bytes();
/// A number that says what memory holds, after all work of the legacy stream.
[[nodiscard]] std::uint32_t digest(CUdeviceptr memory);
/// Waits for the GPU and prints that.
void print_memory(const char* name, CUdeviceptr memory);

/// An NVTX range, from here to the end of the block.
class Range {
 public:
  explicit Range(const char* name);
  ~Range();
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
};

/// The regions that are tuned.
inline constexpr const char* region = "R";
inline constexpr const char* other_region = "other";

}  // namespace awkward
