#pragma once

#include <string>
#include <vector>

#include "store/entry.hpp"

namespace contextune::store {

/// Winners that are none, because their own trial says so, a sentence each with its place in the
/// document: "/sites/0/winner: is 'block=512' of 'saxpy n=1024', whose own trial says
/// wrong_result".
[[nodiscard]] std::vector<std::string> refuted_winners(const Entry& entry);

}  // namespace contextune::store
