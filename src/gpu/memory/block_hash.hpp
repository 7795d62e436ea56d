#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/driver/deadline.hpp"
#include "gpu/driver/own_stream.hpp"
#include "gpu/memory/block_kernels.hpp"
#include "gpu/memory/footprint.hpp"
#include "gpu/memory/pinned_memory.hpp"

namespace contextune::gpu {

/// A 64-bit hash of the bytes, their order and their number. Not for secrets.
[[nodiscard]] std::uint64_t block_hash(const void* bytes, std::size_t num_bytes) noexcept;

/// Hashes device memory of one context's device. Used by one thread at a time; goes before its
/// context does.
class BlockHasher {
 public:
  /// @param kernels outlives the hasher
  /// @throws Error if the driver refuses a stream
  BlockHasher(const Driver& driver, CUcontext context, BlockKernels& kernels);
  ~BlockHasher();
  BlockHasher(const BlockHasher&) = delete;
  BlockHasher& operator=(const BlockHasher&) = delete;

  /// block_hash of each block. Work of the program that writes there has to be complete. Runs on a
  /// stream of its own, reads device memory once, and takes no device memory; 24 bytes of pinned
  /// host memory a block are kept for the next time.
  /// @throws Error if the kernel cannot be loaded (see BlockKernels) or fails, the driver has no
  ///         host memory, or the deadline passes
  [[nodiscard]] std::vector<std::uint64_t> hash(const Footprint& footprint, Deadline deadline);

 private:
  void write_work(const Footprint& footprint);

  const Driver& driver_;
  BlockKernels& kernels_;
  OwnStream stream_;
  PinnedMemory work_;
  PinnedMemory hashes_;
  Footprint hashed_;  ///< what `work_` says
};

}  // namespace contextune::gpu
