#pragma once

#include <cstddef>
#include <string>

#include "store/entry.hpp"

namespace contextune::store {

/// Drops the oldest parts of an entry whose text would have more bytes, and a little more, so that
/// not every later tuning drops some. Measurements of other configs than default and winner go
/// first; they are made again if the site is met again. Whole sites go next.
/// @return what was dropped, as a clause; empty: nothing
[[nodiscard]] std::string shrink(Entry& entry, std::size_t most_bytes);

}  // namespace contextune::store
