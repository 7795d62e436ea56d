#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "core/value/result_tolerance.hpp"
#include "gpu/driver/own_stream.hpp"
#include "gpu/memory/block_hash.hpp"
#include "gpu/memory/block_kernels.hpp"
#include "gpu/memory/block_store.hpp"
#include "gpu/memory/footprint.hpp"

namespace contextune::intercept {

/// Memory of the program is neither as it was before the region nor as it was after it, and cannot
/// be made so: the process must not go on.
class MixedMemory : public Error {
 public:
  using Error::Error;
};

/// The device memory that one region may write, as it was before the region and after it. It is put
/// back before each pass, compared after it, and left as it was after the region.
///
/// Call `add` before the region, and again for memory that comes into view later, before anything
/// writes there. Call `finish` on an idle GPU after the region; then the rest, each on an idle GPU.
/// Used by one thread at a time; the context is current.
class ReplayMemory {
 public:
  struct Costs {
    std::size_t footprint_bytes = 0;  ///< looked at
    std::size_t dirty_bytes = 0;      ///< put back before each pass
    std::size_t device_bytes = 0;     ///< of copies
    std::size_t host_bytes = 0;
    double hash_seconds = 0;     ///< of everything, the last time
    double save_seconds = 0;     ///< of everything that was saved, once
    double restore_seconds = 0;  ///< before a pass, the mean
    std::uint64_t restores = 0;
  };

  /// @param tolerance by how much what a pass wrote may differ and still be right
  /// @param seconds that a single step may take
  ReplayMemory(const gpu::Driver& driver, CUcontext context, gpu::BlockKernels& kernels,
               gpu::BlockStore::Limits limits, const ResultTolerance& tolerance, double seconds);
  ReplayMemory(const ReplayMemory&) = delete;
  ReplayMemory& operator=(const ReplayMemory&) = delete;

  /// Looks at memory and copies it.
  /// @param only what to copy of it: blocks that earlier visits of the region wrote; empty: all
  /// @throws gpu::NoRoom, or Error
  void add(std::vector<gpu::MemoryRange> ranges, std::span<const gpu::MemoryRange> only = {});
  /// Looks at memory only, to learn what the region writes.
  void add_uncopied(std::vector<gpu::MemoryRange> ranges);

  /// Whether all of it was added.
  [[nodiscard]] bool has(gpu::MemoryRange range) const noexcept;

  /// The region has run: finds out what it wrote and keeps that.
  /// @return false: it wrote where nothing was copied; see dirty()
  /// @throws gpu::NoRoom, or Error
  [[nodiscard]] bool finish();

  /// The memory that the region wrote.
  [[nodiscard]] std::vector<gpu::MemoryRange> dirty() const;

  /// As it was before the region. @throws MixedMemory
  void restore_initial();
  /// As it was after it, which is checked. @throws MixedMemory
  void restore_final();

  /// Whether everything is as it was after the region, as far as the tolerance goes. Blocks that
  /// are not are put back from now on.
  /// @throws Error if it cannot be told, or MixedMemory if a block differs that has no copy
  [[nodiscard]] bool is_right() { return compare(true); }

  /// Whether everything is as it was after the region, to the last bit. Throws like is_right().
  [[nodiscard]] bool is_final() { return compare(false); }

  // Contents of our own, each on the initial one: fill, run the defaults, take_reference, put_back;
  // fill with the same, run something else, compare, put_back.

  /// Whether all of it has been copied, so that anything may be written there.
  [[nodiscard]] bool is_copied(gpu::MemoryRange range) const;
  /// Other bytes for each seed, the same for the same. @throws Error
  void fill(std::span<const gpu::MemoryRange> ranges, std::uint64_t seed);
  /// Takes the present contents as right from now on. @throws gpu::NoRoom, or Error
  void take_reference();
  void drop_reference();
  /// Whether everything is as it was then, as far as the tolerance goes. @throws Error
  [[nodiscard]] bool agrees_with_reference();
  /// Everything is as it was before the region, wherever a run has written. @throws MixedMemory
  void put_back();

  /// Names what the region changed in these ranges (none: anywhere), and from what to what.
  /// 0: nothing.
  [[nodiscard]] std::uint64_t change_in(std::span<const gpu::MemoryRange> ranges) const;

  [[nodiscard]] const Costs& costs() const noexcept { return costs_; }

 private:
  struct Area {
    gpu::Footprint footprint;
    std::vector<std::uint64_t> initial_hashes;
    std::vector<std::uint64_t> final_hashes;
    std::vector<bool> copied;           ///< by block
    std::vector<std::uint32_t> dirty;   ///< written by the region
    std::vector<std::uint32_t> strays;  ///< written by a pass only; a superset of none
    std::unique_ptr<gpu::BlockStore> initial;
    std::unique_ptr<gpu::BlockStore> final;
    std::vector<std::uint64_t> reference_hashes;
    std::unique_ptr<gpu::BlockStore> reference;  ///< null: hashes are enough
  };

  Area& look_at(std::vector<gpu::MemoryRange> ranges);
  [[nodiscard]] std::vector<std::uint64_t> hash(const gpu::Footprint& footprint);
  [[nodiscard]] std::unique_ptr<gpu::BlockStore> save(const gpu::Footprint& footprint,
                                                      std::span<const std::uint32_t> blocks);
  [[nodiscard]] bool compare(bool tolerant);
  [[nodiscard]] bool agrees(const Area& area, std::uint32_t block);
  [[nodiscard]] bool agrees(gpu::MemoryRange range, CUdeviceptr copy);
  [[nodiscard]] gpu::Deadline deadline() const;

  const gpu::Driver& driver_;
  CUcontext context_;
  gpu::BlockKernels& kernels_;
  gpu::BlockStore::Limits left_;
  ResultTolerance tolerance_;
  double seconds_;
  gpu::OwnStream stream_;
  gpu::BlockHasher hasher_;
  std::deque<Area> areas_;
  Costs costs_;
};

}  // namespace contextune::intercept
