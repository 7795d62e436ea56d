#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/driver/byte_source.hpp"

namespace contextune::gpu {

/// The code for GPUs in one file. A plain value.
struct CodeImages {
  std::size_t machine_code = 0;     ///< pieces of it
  std::size_t ptx = 0;              ///< pieces of it, which are no machine code yet
  std::size_t other = 0;            ///< entries of fatbins in a form that is not known
  std::vector<std::string> damage;  ///< a sentence for each piece that could not be read
};

/// Calls `see` for every piece of machine code in a program, library, fatbin or cubin,
/// uncompressed, one after the other: no more than one is in memory.
/// @return what there was; empty: the file is none of these
[[nodiscard]] std::optional<CodeImages> for_each_machine_code(
    const ByteSource& file, const std::function<void(std::string_view image)>& see);

}  // namespace contextune::gpu
