#pragma once

#include "collective/cell.hpp"

namespace contextune::collective {

/// The cost table and the number of channels that one getCollInfo call may write.
struct TunerAnswer {
  float* table = nullptr;  ///< row after row: algorithms of protocols numbers
  int algorithms = 0;
  int protocols = 0;
  int* channels = nullptr;  ///< 0 on entry, or what a plugin before us said
};

/// Makes NCCL take what was decided: the cell becomes the cheapest, and the channels are set where
/// a plugin may say them. The default leaves everything as it is. Allocates and waits for nothing.
/// @param nodes of the communicator
/// @return false, with nothing changed, if the cell is not legal here or not in the table
[[nodiscard]] bool apply_decision(const Decision& decision, int nodes,
                                  const TunerAnswer& answer) noexcept;

}  // namespace contextune::collective
