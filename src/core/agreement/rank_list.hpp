#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace contextune {

/// Ranks as part of a key: "0-3+6", "0-28/4" for every fourth. Equal distances make one part, so
/// that the groups of a large job stay short.
/// @param ranks ascending
[[nodiscard]] std::string text_of_ranks(std::span<const std::uint32_t> ranks);

}  // namespace contextune
