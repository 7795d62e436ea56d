#pragma once

#include <span>

#include "gpu/image/instruction.hpp"

namespace contextune::gpu {

/// Where control goes in a kernel's code.
///
/// Branches and calls count from where they stand. A return counts from there or, by what the
/// caller put into a register, from the entry. So all code but the first instruction does the same
/// wherever it stands. Branches to an address in a register are not known.
enum class CodeFlow {
  Unknown,  ///< an instruction, or where it goes, is not known here
  Inside,   ///< stays in the code, and never comes back to its first instruction
  CallsOut  ///< as Inside, but calls functions of the driver, like assert's
};

/// @param code all that stands in the kernel's section, from its entry on
[[nodiscard]] CodeFlow flow_of(std::span<const Instruction> code) noexcept;

}  // namespace contextune::gpu
