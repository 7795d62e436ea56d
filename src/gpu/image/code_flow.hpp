#pragma once

#include <span>

#include "gpu/image/instruction.hpp"

namespace contextune::gpu {

/// Where control goes in a kernel's code.
///
/// Branches and calls count from where they stand, and a return from there or, by what the caller
/// put into a register, from the entry: wherever the code but its first instruction stands, it does
/// the same. Branches to an address in a register are not known.
enum class CodeFlow {
  Unknown,  ///< there is an instruction that nobody knows here, or that goes who knows where
  Inside,   ///< stays in the code, and never comes back to its first instruction
  CallsOut  ///< the same, but for functions of the driver that it calls, such as assert's
};

/// @param code all that stands in the kernel's section, from its entry on
[[nodiscard]] CodeFlow flow_of(std::span<const Instruction> code) noexcept;

}  // namespace contextune::gpu
