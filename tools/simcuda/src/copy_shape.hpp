#pragma once

#include "operation.hpp"

namespace simcuda {

/// The copies that CUDA's structures describe. @throws Failure{INVALID_VALUE}, and INVALID_HANDLE
/// for an array that is none
[[nodiscard]] CopyOperation copy_of(const CUDA_MEMCPY2D& from);
[[nodiscard]] CopyOperation copy_of(const CUDA_MEMCPY3D& from);
[[nodiscard]] CopyOperation copy_of(const CUDA_MEMCPY3D_PEER& from);
/// A copy of a row of bytes.
[[nodiscard]] CopyOperation copy_of(std::uintptr_t destination, std::uintptr_t source,
                                    std::size_t bytes);
/// Where bytes of an array lie, counted from its first row on. @throws as copy_of()
[[nodiscard]] std::uintptr_t range_of(CUarray array, std::size_t offset, std::size_t bytes);
/// The structure for a copy, as a node of a graph gives it back. Arrays show as memory of a device.
[[nodiscard]] CUDA_MEMCPY3D structure_of(const CopyOperation& copy);

}  // namespace simcuda
