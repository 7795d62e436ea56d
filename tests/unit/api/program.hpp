#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// What the test programs have of the simulated GPU: a context on one device, made current on the
/// thread that asked, and the test's kernels. Made once a device and never destroyed.
class Program {
 public:
  static Program& on(int device = 0);

  void make_current() const;
  [[nodiscard]] CUfunction function(const char* name) const;
  /// Zeroed device memory for floats; lives as long as the process.
  [[nodiscard]] CUdeviceptr floats(std::size_t count) const;
  [[nodiscard]] static std::vector<float> read(CUdeviceptr from, std::size_t count);
  static void synchronise();

  /// `add`: every float of y grows by `value`. Fastest in blocks of 128, however many.
  CUresult add(CUdeviceptr y, int n, float value, unsigned grid, unsigned block,
               CUstream stream = nullptr) const;
  /// The same work by another kernel: `add_more` or `declared_early`; or `set`, by which every
  /// float becomes `value`.
  CUresult launch(const char* kernel, CUdeviceptr y, int n, float value, unsigned grid,
                  unsigned block, CUstream stream = nullptr) const;

 private:
  explicit Program(int device);
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

/// Lines of this process's rank log that hold all of `words`.
[[nodiscard]] std::vector<std::string> log_lines(const std::vector<std::string>& words);
