#pragma once

#include <cstdint>
#include <string>

namespace contextune::gpu {

/// Opens a file to read it. A pipe, a device or a folder is not even opened: pipes wait for whoever
/// writes them, and devices may have no end.
/// @return -1: `errno` says why not; ENOTSUP for what is no regular file
[[nodiscard]] int open_regular_file(const std::string& path) noexcept;

/// Reads a whole file. @throws Error that names the path if it is no regular file, is larger than
/// `most_bytes` or cannot be read
[[nodiscard]] std::string read_regular_file(const std::string& path, std::uint64_t most_bytes);

/// A CUDA C++ source that is built may have so many, and so may a header be looked at.
inline constexpr std::uint64_t most_source_bytes = std::uint64_t{64} << 20;

}  // namespace contextune::gpu
