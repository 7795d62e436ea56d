#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <mutex>

#include "intercept/memory/memory_changes.hpp"

namespace contextune::intercept {

/// The arrays of the process, as the driver gave them to the program. Their memory has no address.
/// Any thread may use it; nothing throws.
class ArrayTable {
 public:
  explicit ArrayTable(MemoryChanges& changes) noexcept : changes_(changes) {}

  /// Whether kernels may write to one.
  [[nodiscard]] bool has_surfaces() const noexcept;

  /// @param handle a CUarray or CUmipmappedArray
  void add(const void* handle, CUcontext context, bool surface) noexcept;
  void remove(const void* handle) noexcept;
  /// Those that end with the context have gone.
  void forget_context(CUcontext context) noexcept;

 private:
  struct Array {
    CUcontext context;
    bool surface;
    std::uint32_t references;  ///< more than one while a handle is given again
  };

  MemoryChanges& changes_;
  mutable std::mutex mutex_;
  std::map<const void*, Array> arrays_;
};

}  // namespace contextune::intercept
