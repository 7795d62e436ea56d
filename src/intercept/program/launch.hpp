#pragma once

#include <cuda.h>

#include <array>
#include <cstdint>

#include "preload/contextune_abi.h"

namespace contextune::intercept {

using Dim3 = std::array<std::uint32_t, 3>;

/// A launch as the program made it, whatever entry point it used. Refers to the caller's memory:
/// valid during the call only.
struct Launch {
  contextune_fn fn{};
  CUfunction function = nullptr;  ///< may be a CUkernel
  CUcontext context = nullptr;    ///< null: there is one device, so it does not matter
  Dim3 grid{1, 1, 1};
  Dim3 block{1, 1, 1};
  std::uint32_t shared_bytes = 0;
  CUstream stream = nullptr;        ///< never null: default streams by their special handles
  CUstream given_stream = nullptr;  ///< as given
  void** kernel_params = nullptr;
  void** extra = nullptr;
  const CUlaunchAttribute* attributes = nullptr;  ///< of the Ex forms
  std::uint32_t num_attributes = 0;
  bool cooperative = false;
  bool per_thread_streams = false;  ///< a _ptsz form
  bool extended = false;            ///< an Ex form
  bool timed_alone = true;          ///< false: only what it is a part of can be timed

  explicit Launch(const contextune_launch& call) noexcept;

  [[nodiscard]] const CUlaunchAttribute* attribute(CUlaunchAttributeID id) const noexcept;
  /// Cluster dimensions asked for; zeros if none.
  [[nodiscard]] Dim3 cluster() const noexcept;
  /// Hash of what the attributes say. Padding and addresses do not count.
  [[nodiscard]] std::uint64_t attributes_hash() const noexcept;
  /// Block and grid may not be changed under these attributes, or the launch is not an ordinary
  /// one.
  [[nodiscard]] bool has_fixed_shape() const noexcept;
};

/// Whether an error says "this launch cannot be made so", and leaves the context as it was. Only
/// then may the launch be made again in another way.
[[nodiscard]] bool is_launch_config_error(CUresult result) noexcept;

/// Whether the context is broken for good.
[[nodiscard]] bool is_sticky_error(CUresult result) noexcept;

}  // namespace contextune::intercept
