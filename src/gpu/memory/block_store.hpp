#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <contextune/error.hpp>

#include "gpu/memory/block_copier.hpp"
#include "gpu/memory/footprint.hpp"

namespace contextune::gpu {

/// Copies of memory do not fit.
class NoRoom : public Error {
 public:
  NoRoom(std::size_t wanted, std::size_t on_device, std::size_t on_host);
  std::size_t wanted_bytes = 0;
  std::size_t device_bytes = 0;  ///< that could have been taken
  std::size_t host_bytes = 0;    ///< that could have been taken
};

/// Copies of blocks of one context's device memory. They lie on the device as far as there is room,
/// the rest in pinned host memory. The store takes no more host memory than half of what the system
/// can spare. Saving and restoring run on a stream of the store's own; the program's work on that
/// memory has to be complete before. Used by one thread at a time; goes before its context.
class BlockStore {
 public:
  struct Limits {
    std::size_t device_bytes = 0;
    std::size_t host_bytes = 0;
  };

  /// The program keeps at least this much of the free device memory, and at least 1/20 of it.
  static constexpr std::size_t reserve_bytes = std::size_t{256} << 20U;

  /// @param kernels outlives the store
  /// @throws Error if the driver refuses a stream
  BlockStore(const Driver& driver, CUcontext context, BlockKernels& kernels, Limits limits);
  ~BlockStore() { release(); }
  BlockStore(const BlockStore&) = delete;
  BlockStore& operator=(const BlockStore&) = delete;

  /// Replaces what was saved before by copies of these blocks.
  /// @param blocks numbers in `footprint`, ascending
  /// @throws NoRoom if they do not fit, or Error if the driver fails or the deadline passes;
  ///         nothing is saved then, and nothing allocated (but what a copy under way still uses)
  void save(const Footprint& footprint, std::span<const std::uint32_t> blocks, Deadline deadline);
  /// All blocks.
  void save(const Footprint& footprint, Deadline deadline);

  /// Puts back some of what was saved. Up to 1 GiB from the device passes by the cache.
  /// @param blocks ascending, all of them saved
  /// @throws Error if a block was not saved, the driver fails, or the deadline passes; the memory
  ///         is partly restored then
  void restore(std::span<const std::uint32_t> blocks, Deadline deadline);
  /// All that was saved.
  void restore(Deadline deadline);

  /// Where the copy of a block lies, on the device or the host; 0: it was not saved.
  [[nodiscard]] CUdeviceptr copy_of(std::uint32_t block) const noexcept;

  /// Frees the copies. The driver may wait for work of the program that is under way.
  void release() noexcept;

  /// The memory that the copies take.
  [[nodiscard]] std::size_t device_bytes() const noexcept { return device_bytes_; }
  [[nodiscard]] std::size_t host_bytes() const noexcept { return host_.bytes(); }

 private:
  /// Blocks that lie side by side, in the program's memory and in the copy.
  struct Run {
    Footprint::Blocks blocks;
    MemoryRange original;
    CUdeviceptr copy = 0;
  };
  struct Plan;

  void copy_to_store(std::vector<Run> runs, Deadline deadline);
  void allocate(std::vector<Run>& runs);
  void start_restore(std::span<const std::uint32_t> blocks);
  void remember_restored(std::span<const std::uint32_t> blocks) noexcept;
  [[nodiscard]] std::size_t device_room() const;
  [[nodiscard]] std::size_t host_room() const;

  const Driver& driver_;
  CUcontext context_;
  Limits limits_;
  BlockCopier copier_;
  CUdeviceptr device_ = 0;
  std::size_t device_bytes_ = 0;
  PinnedMemory host_;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> restored_;  ///< the copier's last work, if that was to restore these
};

}  // namespace contextune::gpu
