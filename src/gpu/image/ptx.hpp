#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gpu/image/kernel_image.hpp"

namespace contextune::gpu {

/// Reads what PTX declares at module scope. Bodies of functions are hashed only.
/// @param why as of read_kernel_image
[[nodiscard]] std::optional<KernelImage> read_ptx(std::string_view text, std::string& why);

}  // namespace contextune::gpu
