#pragma once

#include <cstdint>
#include <mutex>

#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// The kernels that hash and copy blocks of memory, in every context. Loaded when first asked for,
/// which compiles them (some ms the first time on a machine; the driver keeps the result). Any
/// thread.
class BlockKernels {
 public:
  static constexpr unsigned hash_threads = 256;   ///< of a thread block
  static constexpr unsigned copy_threads = 1024;  ///< of a thread block

  /// The hash kernel's work on a block.
  struct HashWork {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };
  /// The copy kernel's work on a block.
  struct CopyWork {
    std::uint64_t to = 0;
    std::uint64_t from = 0;
    std::uint64_t bytes = 0;
  };

  explicit BlockKernels(const Driver& driver) noexcept : driver_(driver) {}
  ~BlockKernels();
  BlockKernels(const BlockKernels&) = delete;
  BlockKernels& operator=(const BlockKernels&) = delete;

  /// (const HashWork* work, uint64_t* hashes), a thread block for each block of memory.
  /// @throws Error if the driver cannot load the kernels (simulated, without its PTX compiler)
  [[nodiscard]] CUfunction hash();

  /// (const CopyWork* work), a thread block for each block of memory.
  /// @throws Error as above
  [[nodiscard]] CUfunction copy();

 private:
  void load();

  const Driver& driver_;
  std::mutex mutex_;
  CUlibrary library_ = nullptr;
  CUfunction hash_ = nullptr;
  CUfunction copy_ = nullptr;
};

}  // namespace contextune::gpu
