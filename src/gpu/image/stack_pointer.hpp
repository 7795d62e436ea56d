#pragma once

#include <span>

#include "gpu/image/instruction.hpp"

namespace contextune::gpu {

/// Whether a kernel's code, but for the load at its entry, is known to keep off the stack pointer.
///
/// Every instruction has to be one whose registers are known here. R1 is used by it if an operand
/// is R1, or begins at R0 and may have more than one register. Branches and calls have to stay in
/// the code; of those to an address in a register only returns are taken.
/// @param code all that stands in the kernel's section, from its entry on
[[nodiscard]] bool keeps_off_stack_pointer(std::span<const Instruction> code) noexcept;

}  // namespace contextune::gpu
