#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gpu/driver/driver.hpp"
#include "gpu/memory/block_kernels.hpp"

namespace contextune::api {

/// A copy of some device memory, on the device that it belongs to. For one thread; waits for the
/// GPU.
class Snapshot {
 public:
  struct Span {
    void* pointer = nullptr;
    std::size_t size_bytes = 0;
  };

  /// Completes all work on the spans' contexts, then copies.
  /// @param seconds in which that work has to end: some may wait for what the host does later
  /// @throws Error if it does not, if a span is not device memory, or there is no memory for the
  ///         copy
  Snapshot(const gpu::Driver& driver, const std::vector<Span>& spans, double seconds);
  ~Snapshot();
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  /// Completes all work on the spans' contexts, then puts back what was copied.
  /// @throws Error if the GPU refuses; the memory may then be partly restored
  void restore();

 private:
  struct InContext;

  const gpu::Driver& driver_;
  gpu::BlockKernels kernels_;
  std::vector<std::unique_ptr<InContext>> contexts_;
};

}  // namespace contextune::api
