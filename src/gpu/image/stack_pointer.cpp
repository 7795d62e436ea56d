#include "gpu/image/stack_pointer.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/image/code_flow.hpp"
#include "gpu/image/operands.hpp"

namespace contextune::gpu {
namespace {

constexpr std::array<unsigned, 7> matrix_products = {0x237, 0x23c, 0x23f, 0x9f0,
                                                     0x9f1, 0x9f3, 0xdf0};

/// A sparse one names a further register there.
constexpr bool has_further_register(const Instruction& instruction) {
  for (const unsigned one : matrix_products) {
    if (instruction.operation() == one) return (instruction.low >> 40 & 0xff) != 0;
  }
  return false;
}

/// Whether the value that is read or written has more than four bytes.
constexpr bool is_wide_in_memory(const Instruction& instruction) {
  constexpr unsigned four_bytes = 4;  // below stand bytes and halves
  return (instruction.high >> 9 & 7) > four_bytes;
}

constexpr bool uses_stack_pointer(const Instruction& instruction) {
  const std::array<std::uint64_t, 4> registers = {
      instruction.low >> 16 & 0xff, instruction.low >> 24 & 0xff, instruction.low >> 32 & 0xff,
      instruction.high & 0xff};
  const Operands& operands = operands_of[instruction.operation()];
  for (std::size_t i = 0; i < registers.size(); ++i) {
    const OperandWidth width = operands.widths[i];
    if (width == OperandWidth::None || registers[i] > 1) continue;
    if (registers[i] == 1 || width == OperandWidth::Several) return true;
    if (width == OperandWidth::OfMemory && is_wide_in_memory(instruction)) return true;
  }
  return false;
}

}  // namespace

bool keeps_off_stack_pointer(std::span<const Instruction> code) noexcept {
  for (std::size_t i = 1; i < code.size(); ++i) {
    if (uses_stack_pointer(code[i]) || has_further_register(code[i])) return false;
  }
  return flow_of(code) == CodeFlow::Inside;
}

}  // namespace contextune::gpu
