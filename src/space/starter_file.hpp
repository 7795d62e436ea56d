#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace contextune::space {

/// A kernel that a region launches, as it was seen.
struct DiscoveredKernel {
  std::string kernel;      ///< demangled, without parameters
  std::string parameters;  ///< "int, float const*"; empty: unknown
  std::size_t num_arguments = 0;
  std::uint64_t launches = 0;
  double seconds = 0.0;  ///< of all its launches on the device
  double share = 0.0;    ///< of the region's device time: 0.25 is a quarter
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t shared_bytes = 0;  ///< dynamic
  std::size_t static_shared_bytes = 0;
  int registers = 0;
};

/// A space file for the kernels that together carry `coverage` of the time, longest first; what to
/// try is left as comments to be filled in. SpaceFile::load accepts it as it is.
[[nodiscard]] std::string write_starter(std::span<const DiscoveredKernel> kernels,
                                        double coverage = 0.95);

}  // namespace contextune::space
