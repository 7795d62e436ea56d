#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace contextune::space {

/// Larger files are refused: a space file is written by hand.
inline constexpr std::size_t max_file_bytes = 256 << 10;

/// The text of a space file that may be trusted: a regular file of at most `max_file_bytes`, owned
/// by the effective user or root, which nobody else may write.
/// @throws Error that names the path, what is wrong with it, and the command that puts it right
[[nodiscard]] std::string read_space_file(const std::string& path);

/// `text` without a byte-order mark.
/// @throws Error if it is a precompiled chunk, holds a NUL byte or is larger than `max_file_bytes`
[[nodiscard]] std::string_view check_text(std::string_view text, std::string_view path);

}  // namespace contextune::space
