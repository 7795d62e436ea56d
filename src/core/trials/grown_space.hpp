#pragma once

#include <span>
#include <string>

#include <contextune/config.hpp>
#include <contextune/key.hpp>

#include "core/trials/store.hpp"

namespace contextune {

/// The part of a key that tells launches apart for which `prune` keeps other configs of a space:
/// "12of16-9f3a01bc", how many of how many, and which.
inline constexpr const char* kept_part = "kept";

/// Finds a site as stored under the key that it had before its space got more configs, which
/// changes the part `kept`. It has that name, otherwise that key, and a space of another size. The
/// configs of that space that are kept for it are those that are kept now. Null: there is none.
[[nodiscard]] const StoredSite* find_before_growth(std::span<const StoredSite> stored,
                                                   const std::string& name, const Key& key,
                                                   std::span<const Config> configs);

}  // namespace contextune
