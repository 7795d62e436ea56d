#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "objects.hpp"

namespace simcuda {

/// Constant memory as it was before a kernel that triggers: a launch that is chained to it starts
/// before that kernel has left, and finds its constants in a cache, whether or not it waits.
struct StaleConstants {
  /// Keeps the constants of all modules of a context.
  void take(const Context& context);
  /// Puts what is kept in the place of what is there now, and the other way round.
  void exchange();

 private:
  std::vector<std::pair<std::uintptr_t, std::vector<std::byte>>> kept_;
};

}  // namespace simcuda
