#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>

namespace contextune::intercept {

/// How the program came by a piece of memory.
enum class AllocationKind {
  Device,    ///< cuMemAlloc, cuMemAllocPitch
  Pool,      ///< stream-ordered
  Virtual,   ///< physical memory of this process, mapped with cuMemMap
  Managed,   ///< cuMemAllocManaged, a managed pool, a managed variable of a module
  Host,      ///< the host's, within the GPU's reach: allocated, registered, or of a host pool
  Imported,  ///< of another process or interface, or of several devices at once (multicast)
  Global     ///< a variable of a module
};

/// A piece of memory that can be used now: [begin, begin + bytes).
struct Allocation {
  CUdeviceptr begin = 0;
  std::size_t bytes = 0;
  AllocationKind kind = AllocationKind::Device;
  int device = -1;              ///< ordinal; -1: the host's
  CUcontext context = nullptr;  ///< it ends with that one; null: with none
  bool exported = false;        ///< another process or device has been let in
  /// Its own device may read and write all of it: what is mapped may be out of reach.
  bool accessible = true;
  /// NCCL's own, which it keeps for itself and for its peers: it is never put back.
  bool of_nccl = false;
  std::uint64_t serial = 0;  ///< of no other allocation, before or after

  [[nodiscard]] CUdeviceptr end() const noexcept { return begin + bytes; }

  /// Whether others may see what that device writes there while it works.
  [[nodiscard]] bool is_outside_of(int ordinal) const noexcept {
    return device != ordinal || kind == AllocationKind::Managed || kind == AllocationKind::Host ||
           kind == AllocationKind::Imported;
  }
};

}  // namespace contextune::intercept
