#include "collective/apply_decision.hpp"

#include <limits>

namespace contextune::collective {

bool apply_decision(const Decision& decision, int nodes, const TunerAnswer& answer) noexcept {
  if (decision.is_default()) return true;
  const int row = static_cast<int>(decision.cell.algorithm);
  const int column = static_cast<int>(decision.cell.protocol);
  if (row >= answer.algorithms || column >= answer.protocols) return false;
  float& chosen = answer.table[row * answer.protocols + column];
  // The hardware or the user ruled out a cell whose cost is negative or no number.
  if (!(chosen >= 0)) return false;

  // The first of equals is taken, so a cell before it that is free must cost something.
  for (float* cost = answer.table; cost != &chosen; ++cost) {
    if (*cost == 0) *cost = std::numeric_limits<float>::min();
  }
  chosen = 0;
  // A number that is there already was meant for another cell.
  *answer.channels = takes_channels(decision.cell.algorithm, nodes) ? decision.channels : 0;
  return true;
}

}  // namespace contextune::collective
