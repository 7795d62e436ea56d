#pragma once

#include <span>
#include <string>

#include <contextune/config.hpp>
#include <contextune/key.hpp>

#include "core/search/store.hpp"

namespace contextune {

/// The part of a key that tells launches apart for which `prune` keeps other configs of a space:
/// "12of16-9f3a01bc", how many of how many, and which.
inline constexpr const char* kept_part = "kept";

/// What is stored of a site under the key that it had before its space got configs more, which
/// changes the part `kept`: one of that name and otherwise that key, of a space of another size, of
/// whose configs those are kept for it that are kept now. Null: there is none.
[[nodiscard]] const StoredSite* find_before_growth(std::span<const StoredSite> stored,
                                                   const std::string& name, const Key& key,
                                                   std::span<const Config> configs);

}  // namespace contextune
