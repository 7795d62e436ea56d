#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/driver/byte_source.hpp"

namespace contextune::gpu {

/// The beginning of an image that is text of the simulated driver.
inline constexpr std::string_view simulated_begin = "simcuda image ";

enum class VariableKind { Device, Managed, Constant };

/// A variable at module scope, or a static one of a function.
struct ImageVariable {
  std::string name;         ///< mangled
  std::uint64_t bytes = 0;  ///< 0: the image does not say
  VariableKind kind = VariableKind::Device;
  bool certain = true;  ///< false: only one of several images that the driver may have taken has it

  bool operator==(const ImageVariable&) const = default;
};

/// The contents of code beside its kernels. A value.
struct KernelImage {
  std::vector<ImageVariable> variables;  ///< sorted by name
  bool uses_printf = false;
  bool uses_malloc = false;       ///< malloc, free, new or delete in device code
  bool launches_kernels = false;  ///< from the device (CUDA dynamic parallelism)
  /// By symbol, a hash of each kernel's instructions, with all functions that it may call. Those of
  /// which it cannot be told are not there.
  std::map<std::string, std::uint64_t, std::less<>> code;

  /// A function that the code takes from the driver.
  void add_driver_function(std::string_view name);

  bool operator==(const KernelImage&) const = default;
};

/// Reads a cubin, PTX, a fatbin (compressed or not), or the text image of the simulated driver, as
/// they are given to the driver. Takes from microseconds (a cubin) to some milliseconds (a large
/// compressed entry of a fatbin). Any thread.
///
/// @param binary_version what the driver says of a loaded kernel, 90 for sm_90. In a fatbin, the
///   entries of that architecture count, and where there are none, the PTX that it can be built
///   from.
/// @param why in a sentence, where the answer is empty: the image is of another kind, damaged, or
///   has variables that cannot be told apart by name
[[nodiscard]] std::optional<KernelImage> read_kernel_image(const ByteSource& image,
                                                           int binary_version, std::string& why);

/// The form of an image, as its first bytes say.
enum class ImageForm { Cubin, FatBinary, Text, Unknown };
[[nodiscard]] ImageForm form_of_image(const ByteSource& image) noexcept;

}  // namespace contextune::gpu
