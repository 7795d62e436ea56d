#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace contextune {

/// Ranks as part of a key: "0-3+6", "0-28/4" for every fourth. Equal distances make one part, so
/// that the groups of a large job stay short.
/// @param ranks ascending
[[nodiscard]] std::string text_of_ranks(std::span<const std::uint32_t> ranks);

/// The ranks of such a text, ascending; any order and repetitions are read.
/// @throws Error that quotes what is no list of ranks
[[nodiscard]] std::vector<std::uint32_t> ranks_of_text(std::string_view text);

}  // namespace contextune
