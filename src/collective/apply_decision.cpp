#include "collective/apply_decision.hpp"

#include <limits>

namespace contextune::collective {

bool apply_decision(const Decision& decision, int nodes, const TunerAnswer& answer) noexcept {
  if (decision.is_default()) return true;
  const int row = static_cast<int>(decision.cell.algorithm);
  const int column = static_cast<int>(decision.cell.protocol);
  if (row >= answer.algorithms || column >= answer.protocols) return false;
  float& chosen = answer.table[row * answer.protocols + column];
  // What is negative was ruled out, by hardware or user; so was what is no number.
  if (!(chosen >= 0)) return false;

  // The first of equals is taken, so a cell that a plugin before us made free must cost something.
  for (int i = 0; i < answer.algorithms * answer.protocols; ++i) {
    if (answer.table[i] == 0) answer.table[i] = std::numeric_limits<float>::min();
  }
  chosen = 0;
  // A number that is there already was meant for another cell.
  *answer.channels = takes_channels(decision.cell.algorithm, nodes) ? decision.channels : 0;
  return true;
}

}  // namespace contextune::collective
