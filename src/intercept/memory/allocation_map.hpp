#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "intercept/memory/memory_handles.hpp"
#include "intercept/memory/own_bytes.hpp"

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

/// The live memory of the process, as the driver gave it to the program. Any thread may use it;
/// nothing throws but `all`. A change that cannot be kept up with makes the map incomplete for
/// good.
///
/// Not in it: pageable host memory (which some GPUs can reach) and arrays (only whether there are
/// any). Variables of modules are not in it until the program asks for one or a replay looks for
/// all.
class AllocationMap {
 public:
  /// @param missed the frontend's word of that name; null: there is no frontend
  /// @param is_of_nccl whether NCCL asks for what is being noted; null: nobody knows any
  explicit AllocationMap(const std::uint32_t* missed, bool (*is_of_nccl)() = nullptr) noexcept;

  /// Sorted by address; without overlaps.
  /// @throws std::bad_alloc
  [[nodiscard]] std::vector<Allocation> all() const;
  /// The one that holds `address`.
  [[nodiscard]] std::optional<Allocation> find(CUdeviceptr address) const noexcept;
  /// Those that are outside of the device. Sorted as above.
  /// @throws std::bad_alloc
  [[nodiscard]] std::vector<Allocation> outside_of(int device) const;
  /// Another one after every change of those. On the device that got memory first, what comes and
  /// goes there is no change.
  [[nodiscard]] std::uint64_t outside_version(int device) const noexcept {
    if (device == first_device_.load(std::memory_order_acquire))
      return outside_version_.load(std::memory_order_acquire) << 1U;
    return version() << 1U | 1U;
  }
  /// That of the allocation that came last. Takes no lock.
  [[nodiscard]] std::uint64_t last_serial() const noexcept {
    return last_serial_.load(std::memory_order_acquire);
  }
  /// Bytes of this process that came after that one, on devices, and are there still.
  [[nodiscard]] std::size_t device_bytes_since(std::uint64_t serial) const noexcept;
  /// Grows with every change, but where it is NCCL's alone.
  [[nodiscard]] std::uint64_t version() const noexcept {
    return version_.load(std::memory_order_acquire);
  }
  /// Whether kernels may write to an array.
  [[nodiscard]] bool has_surface_arrays() const noexcept;
  /// Why there may be memory that the map does not know, as a sentence; null: it knows all.
  [[nodiscard]] const char* incomplete() const noexcept;

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

  /// @param handle a CUarray or CUmipmappedArray
  void add_array(const void* handle, CUcontext context, bool surface) noexcept;
  void remove_array(const void* handle) noexcept;

  /// Everything that ends with the context has gone.
  void forget_context(CUcontext context) noexcept;
  /// As above for a device that is reset, with its primary context. The fate of the device's other
  /// memory is said nowhere, so if there is any the map is incomplete.
  void forget_device(int device, CUcontext primary) noexcept;

  /// Memory that the program is not told to be in use.
  [[nodiscard]] OwnBytes& own_bytes() noexcept { return own_bytes_; }

  /// @param why a sentence that lives as long as the process
  void give_up(const char* why) noexcept;

 private:
  struct Entry {
    Allocation allocation;
    std::uint64_t physical = 0;    ///< what is mapped here; 0: nothing
    const void* owner = nullptr;   ///< of a variable
    std::uint32_t references = 1;  ///< how often an import has to be given back
  };
  struct Array {
    CUcontext context;
    bool surface;
    std::uint32_t references;  ///< more than one while a handle is given again
  };
  using Live = std::map<CUdeviceptr, Entry>;

  /// @param body returns whether it changed anything
  template <typename Body>
  void change(Body&& body) noexcept;
  Live::iterator first_overlap(CUdeviceptr begin) noexcept;
  void split_at(CUdeviceptr address);
  /// @return whether it is the program's
  bool insert(Entry entry);
  /// The memory has come or gone.
  void note_outside(const Allocation& allocation) noexcept;

  mutable std::mutex mutex_;
  Live live_;
  /// Given back, but not yet answered by the driver; by the address that was given back.
  std::multimap<CUdeviceptr, Entry> leaving_;
  std::map<const void*, Array> arrays_;
  std::map<const void*, const void*> library_of_module_;
  MemoryHandles handles_;
  std::atomic<std::uint64_t> last_serial_{0};  ///< changed under the lock
  OwnBytes own_bytes_;
  std::atomic<std::uint64_t> version_{0};
  std::atomic<int> first_device_{-1};              ///< that the program got memory on; -1: none yet
  std::atomic<std::uint64_t> outside_version_{0};  ///< of what is outside of that one
  std::atomic<const char*> why_{nullptr};
  const std::uint32_t* const missed_;
  bool (*const is_of_nccl_)();  ///< not under the lock: it may want one of the loader's
};

}  // namespace contextune::intercept
