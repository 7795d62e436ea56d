#pragma once

#include <cstddef>
#include <string>

#include "store/entry.hpp"

namespace contextune::store {

/// Drops of an entry whose text would have more bytes what is oldest, and a little more, so that
/// not every tuning after it does: first measurements of other configs than default and winner,
/// which are then made again if the site is met again, then whole sites.
/// @return what was dropped, as a clause; empty: nothing
[[nodiscard]] std::string shrink(Entry& entry, std::size_t most_bytes);

}  // namespace contextune::store
