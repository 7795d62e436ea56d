#pragma once

#include <cuda.h>

#include <cstdint>

#include "intercept/memory/allocation_map.hpp"
#include "intercept/memory/array_table.hpp"
#include "intercept/memory/memory_changes.hpp"
#include "intercept/memory/own_bytes.hpp"

namespace contextune::intercept {

/// The memory of the process: the program's, as its calls of the driver show it, and how much of
/// the devices copies of ours take. Any thread may use it.
///
/// Not in it: pageable host memory, which some GPUs can reach.
class ProcessMemory {
 public:
  /// @param missed the frontend's word of that name; null: there is no frontend
  /// @param is_of_nccl whether NCCL asks for what is being noted; null: nobody knows any
  explicit ProcessMemory(const std::uint32_t* missed, bool (*is_of_nccl)() = nullptr) noexcept
      : changes_(missed), allocations_(changes_, is_of_nccl), arrays_(changes_) {}

  [[nodiscard]] MemoryChanges& changes() noexcept { return changes_; }
  [[nodiscard]] const MemoryChanges& changes() const noexcept { return changes_; }
  [[nodiscard]] AllocationMap& allocations() noexcept { return allocations_; }
  [[nodiscard]] const AllocationMap& allocations() const noexcept { return allocations_; }
  [[nodiscard]] ArrayTable& arrays() noexcept { return arrays_; }
  [[nodiscard]] const ArrayTable& arrays() const noexcept { return arrays_; }
  /// Memory that the program is not told to be in use.
  [[nodiscard]] OwnBytes& own_bytes() noexcept { return own_bytes_; }

  /// Everything that ends with the context has gone.
  void forget_context(CUcontext context) noexcept;
  /// As above for a device that is reset, with its primary context. The fate of the device's other
  /// memory is said nowhere, so if there is any the record is incomplete.
  void forget_device(int device, CUcontext primary) noexcept;

 private:
  MemoryChanges changes_;
  AllocationMap allocations_;
  ArrayTable arrays_;
  OwnBytes own_bytes_;
};

}  // namespace contextune::intercept
