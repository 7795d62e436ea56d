#pragma once

#include <span>
#include <string>
#include <string_view>

namespace contextune::space {

/// The candidate that `word` was most likely meant to be, or empty if none is near.
/// Allocates nothing and throws nothing: also used where a Lua error is about to be raised.
[[nodiscard]] std::string_view nearest_name(std::string_view word,
                                            std::span<const std::string_view> candidates) noexcept;

/// "block, grid and cluster".
[[nodiscard]] std::string enumeration(std::span<const std::string_view> names);

/// "; did you mean 'block'?", or "; known are block, grid and cluster".
[[nodiscard]] std::string suggestion(std::string_view word,
                                     std::span<const std::string_view> candidates);

}  // namespace contextune::space
