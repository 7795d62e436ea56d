#pragma once

#include <optional>
#include <string>

#include "gpu/driver/byte_source.hpp"
#include "gpu/image/kernel_image.hpp"

namespace contextune::gpu {

/// Reads the symbol table of machine code for a GPU, an ELF file, and hashes its instructions.
/// @param why as of read_kernel_image
[[nodiscard]] std::optional<KernelImage> read_cubin(const ByteSource& image, std::string& why);

}  // namespace contextune::gpu
