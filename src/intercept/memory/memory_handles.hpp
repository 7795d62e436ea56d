#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>

namespace contextune::intercept {

/// A piece of physical memory that handles stand for and that can be mapped.
struct PhysicalMemory {
  std::uint64_t id = 0;  ///< the same for all handles of it
  int device = -1;       ///< ordinal; -1: the host's
  bool imported = false;
  bool exported = false;
};

/// The memory that the handles of cuMemCreate and its like stand for. The driver may give a handle
/// again that has been released. Not thread-safe: AllocationMap's.
class MemoryHandles {
 public:
  /// The id of memory whose handle came from nowhere that is watched.
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};

  /// A handle that the driver has just given out for memory that had none in this process.
  /// @throws std::bad_alloc
  void add(CUmemGenericAllocationHandle handle, int device, bool imported) {
    handles_.insert_or_assign(handle, Entry{{++last_id_, device, imported, false}, 1});
  }

  /// Adds a handle, perhaps of the same value, for memory that is mapped.
  /// @throws std::bad_alloc
  void retain(CUmemGenericAllocationHandle handle, const PhysicalMemory& memory) {
    const auto [place, is_new] = handles_.try_emplace(handle, Entry{memory, 1});
    if (!is_new && place->second.memory.id == memory.id) {
      ++place->second.references;
    } else {
      place->second = {memory, 1};
    }
  }

  void release(CUmemGenericAllocationHandle handle) noexcept {
    const auto place = handles_.find(handle);
    if (place != handles_.end() && --place->second.references == 0) handles_.erase(place);
  }

  /// Every handle of that memory is marked. Returns the memory's id; 0: not known.
  std::uint64_t set_exported(CUmemGenericAllocationHandle handle) noexcept {
    const auto place = handles_.find(handle);
    if (place == handles_.end()) return 0;
    const std::uint64_t id = place->second.memory.id;
    for (auto& [other, entry] : handles_) {
      if (entry.memory.id == id) entry.memory.exported = true;
    }
    return id;
  }

  /// Null: the handle came from nowhere that is watched.
  [[nodiscard]] const PhysicalMemory* find(CUmemGenericAllocationHandle handle) const noexcept {
    const auto place = handles_.find(handle);
    return place == handles_.end() ? nullptr : &place->second.memory;
  }

 private:
  struct Entry {
    PhysicalMemory memory;
    std::uint32_t references;
  };
  std::map<CUmemGenericAllocationHandle, Entry> handles_;
  std::uint64_t last_id_ = 0;
};

}  // namespace contextune::intercept
