#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "cuda_api.hpp"

namespace simcuda {

/// Memory that the driver knows of: simulated device memory, which is host memory, and host memory
/// that it allocated or registered. Guarded by the driver's lock.
class Memory {
 public:
  enum class Kind { device, managed, host, registered, global, mapped };
  struct Block {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    Kind kind = Kind::device;
    int device = 0;
    CUcontext context = nullptr;
    unsigned flags = 0;
    std::uint64_t id = 0;
    CUmemoryPool pool = nullptr;
    bool freed = false;      // its release waits for work on a stream
    bool accessible = true;  // a mapping begins without access
    int opened = 0;          // through handles for other processes

    [[nodiscard]] bool on_host() const { return kind == Kind::host || kind == Kind::registered; }
  };

  /// @throws Failure{OUT_OF_MEMORY} past `limit_bytes` or when the host has no more.
  Block& allocate(std::size_t bytes, Kind kind, int device, CUcontext context,
                  std::size_t limit_bytes);
  Block& register_host(void* begin, std::size_t bytes, unsigned flags, int device,
                       CUcontext context);
  /// The block that holds an address, or null.
  [[nodiscard]] const Block* find(std::uintptr_t address) const;
  /// Counts memory of a device without a block. @throws Failure{OUT_OF_MEMORY}
  void charge(int device, std::size_t bytes, std::size_t limit_bytes);
  void give_back(int device, std::size_t bytes);
  /// Memory that was mapped at reserved addresses; counted where it was made.
  void add_mapped(std::uintptr_t begin, std::size_t bytes, int device);
  void set_accessible(std::uintptr_t begin, bool accessible);
  void count_opened(std::uintptr_t begin, int difference);
  /// True when accessible blocks without a gap between them hold a whole range.
  [[nodiscard]] bool covers(std::uintptr_t begin, std::size_t bytes) const;
  /// Marks a block whose release has been put on a stream.
  void mark_freed(std::uintptr_t begin);
  /// The block that begins at an address, or null.
  [[nodiscard]] const Block* at(std::uintptr_t begin) const;
  void release(std::uintptr_t begin);
  /// Frees everything of a context that is going away.
  void release_all(CUcontext context);
  [[nodiscard]] std::size_t used_bytes(int device) const;

 private:
  std::map<std::uintptr_t, Block> blocks_;
  std::map<int, std::size_t> used_;
  std::uint64_t next_id_ = 1;
};

}  // namespace simcuda
