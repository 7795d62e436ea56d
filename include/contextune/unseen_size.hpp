#pragma once

#include <cstdint>

namespace contextune {

/// The behaviour of a function, a choice or a declared kernel at a size in whose bucket nothing was
/// measured yet.
enum class UnseenSize : std::uint8_t {
  Tune,     ///< it is tuned when it comes
  Nearest,  ///< runs the winner of the nearest size that was measured; where none is near, Tune
  Default   ///< runs the default
};

}  // namespace contextune
