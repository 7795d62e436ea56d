#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "intercept/memory/allocation.hpp"
#include "intercept/memory/memory_changes.hpp"
#include "intercept/memory/memory_handles.hpp"

namespace contextune::intercept {

/// The live memory of the process, as the driver gave it to the program. Any thread may use it;
/// nothing throws but `all` and `outside_of`. Variables of modules are not in it until the program
/// asks for one or a replay looks for all.
class AllocationMap {
 public:
  /// @param is_of_nccl whether NCCL asks for what is being noted; null: nobody knows any
  AllocationMap(MemoryChanges& changes, bool (*is_of_nccl)()) noexcept
      : changes_(changes), is_of_nccl_(is_of_nccl) {}

  /// Sorted by address; without overlaps.
  /// @throws std::bad_alloc
  [[nodiscard]] std::vector<Allocation> all() const;
  /// The one that holds `address`.
  [[nodiscard]] std::optional<Allocation> find(CUdeviceptr address) const noexcept;
  /// Those that are outside of the device. Sorted as above.
  /// @throws std::bad_alloc
  [[nodiscard]] std::vector<Allocation> outside_of(int device) const;
  /// Bytes of this process that came after that one, on devices, and are there still.
  [[nodiscard]] std::size_t device_bytes_since(std::uint64_t serial) const noexcept;

  // Called by the hooks.

  /// The driver gave memory; `serial` is set here. An import of what is imported already has to be
  /// given back once more. If there was something else, the map has missed how that went.
  void add(const Allocation& given) noexcept;
  /// A variable of `owner`, a CUmodule or CUlibrary. May be told again.
  void add_variable(const Allocation& allocation, const void* owner) noexcept;
  /// The module goes away when the library does.
  void add_module(const void* module, const void* library) noexcept;
  /// @param owner goes away, and its modules with it
  void forget_variables(const void* owner) noexcept;

  /// The program gives back what begins at `begin`: it is not to be used from now on. The driver's
  /// answer follows with `released`.
  void release(CUdeviceptr begin) noexcept;
  /// As above, for the mapped parts of [begin, begin + bytes).
  void unmap(CUdeviceptr begin, std::size_t bytes) noexcept;
  /// The driver's answer; if it refused, the memory is there as before.
  void released(CUdeviceptr begin, bool success) noexcept;

  void add_handle(CUmemGenericAllocationHandle handle, int device, bool imported) noexcept;
  void retain_handle(CUmemGenericAllocationHandle handle, CUdeviceptr address) noexcept;
  void release_handle(CUmemGenericAllocationHandle handle) noexcept;
  void export_handle(CUmemGenericAllocationHandle handle) noexcept;
  void map(CUdeviceptr begin, std::size_t bytes, CUmemGenericAllocationHandle handle) noexcept;
  /// @param read_write false: less than that
  void set_access(CUdeviceptr begin, std::size_t bytes, int device, bool read_write) noexcept;
  /// Others can reach what overlaps [begin, begin + bytes).
  void set_exported(CUdeviceptr begin, std::size_t bytes) noexcept;

  /// Everything that ends with the context has gone.
  void forget_context(CUcontext context) noexcept;

 private:
  struct Entry {
    Allocation allocation;
    std::uint64_t physical = 0;    ///< what is mapped here; 0: nothing
    const void* owner = nullptr;   ///< of a variable
    std::uint32_t references = 1;  ///< how often an import has to be given back
  };
  using Live = std::map<CUdeviceptr, Entry>;

  Live::iterator first_overlap(CUdeviceptr begin) noexcept;
  void split_at(CUdeviceptr address);
  /// @return whether it is the program's
  bool insert(Entry entry);

  MemoryChanges& changes_;
  bool (*const is_of_nccl_)();  ///< not under the lock: it may want one of the loader's
  mutable std::mutex mutex_;
  Live live_;
  /// Given back, but not yet answered by the driver; by the address that was given back.
  std::multimap<CUdeviceptr, Entry> leaving_;
  std::map<const void*, const void*> library_of_module_;
  MemoryHandles handles_;
};

}  // namespace contextune::intercept
