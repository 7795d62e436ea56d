#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "gpu/driver/deadline.hpp"
#include "gpu/driver/own_stream.hpp"
#include "gpu/memory/block_kernels.hpp"
#include "gpu/memory/pinned_memory.hpp"

namespace contextune::gpu {

/// Copies many pieces of memory, large and small, at the speed of one large copy: large ones are
/// the driver's, small ones go to a kernel by the thousand. On a stream of its own; addresses are
/// of device memory or of pinned host memory. Used by one thread at a time; goes before its context
/// does.
class BlockCopier {
 public:
  /// Who copies what is large, where there is a choice.
  enum class Large : std::uint8_t {
    ByDriver,  ///< at the full speed of the memory
    ByKernel   ///< leaves in the cache what is there
  };

  /// @param kernels outlives the copier
  /// @throws Error if the driver refuses a stream
  BlockCopier(const Driver& driver, CUcontext context, BlockKernels& kernels);
  ~BlockCopier();
  BlockCopier(const BlockCopier&) = delete;
  BlockCopier& operator=(const BlockCopier&) = delete;

  /// Between this and finish() or give_up(), adds may start copies at once.
  /// @param num_blocks at least as many as the copies have blocks of 64 KiB, begun ones included
  /// @param what       names the work in errors
  void start(std::size_t num_blocks, std::string_view what, Large large = Large::ByDriver);
  /// @throws Error if the driver refuses
  void add(CUdeviceptr to, CUdeviceptr from, std::size_t bytes);
  /// Instead of start() and add(): the copies of last time, which have all succeeded. Starts sooner
  /// than adding them again would.
  /// @throws Error if the driver refuses
  void again();
  /// Waits for all copies.
  /// @throws Error if one failed, or is not complete at the deadline
  void finish(Deadline deadline);
  /// Waits for the copies that were started, whatever becomes of them.
  void give_up(Deadline deadline) noexcept;

  /// Whether copies were not complete at a deadline: their memory must not be freed.
  [[nodiscard]] bool stuck() const noexcept { return stream_.stuck(); }

 private:
  using Copy = BlockKernels::CopyWork;

  [[nodiscard]] bool load_kernel();
  void copy_by_driver(const Copy& copy);
  void copy_by_kernel(const Copy& copy);
  void launch();

  const Driver& driver_;
  BlockKernels& kernels_;
  OwnStream stream_;
  PinnedMemory work_;
  CUfunction kernel_ = nullptr;
  std::string_view what_;
  std::size_t num_blocks_ = 0;  ///< that `work_` has to hold
  std::vector<Copy> large_;     ///< the driver's
  std::vector<Copy> small_;     ///< not yet given to anyone
  bool use_kernel_ = true;      ///< for small ones, if they become many
  std::size_t large_bytes_ = 0;
  bool many_ = false;
  std::size_t launched_ = 0;  ///< blocks that the kernel was told of
  std::size_t written_ = 0;   ///< blocks in `work_`
  std::size_t slice_ = 0;     ///< blocks of the next launch
};

}  // namespace contextune::gpu
