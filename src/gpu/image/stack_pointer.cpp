#include "gpu/image/stack_pointer.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/image/code_flow.hpp"
#include "gpu/image/operands.hpp"

namespace contextune::gpu {
namespace {

/// The operands of an operation, a byte each: its result and the three that follow.
struct Fields {
  std::uint32_t registers = 0;  ///< ones where an operand is a register
  bool is_matrix_product = false;
};

constexpr auto fields_of = [] {
  std::array<Fields, operands_of.size()> table{};
  for (std::size_t i = 0; i < table.size(); ++i)
    for (std::size_t k = 0; k < operands_of[i].widths.size(); ++k)
      if (operands_of[i].widths[k] != OperandWidth::None) table[i].registers |= 0xffU << 8 * k;
  for (const unsigned product : {0x237U, 0x23cU, 0x23fU, 0x9f0U, 0x9f1U, 0x9f3U, 0xdf0U})
    table[product].is_matrix_product = true;
  return table;
}();

/// Whether any operand is R0 or R1, of which the second is the stack pointer.
constexpr bool uses_first_registers(const Fields& fields, const Instruction& instruction) {
  const std::uint32_t numbers = static_cast<std::uint32_t>(instruction.low >> 16 & 0xffffff) |
                                static_cast<std::uint32_t>(instruction.high & 0xff) << 24;
  const std::uint32_t pairs = (numbers | ~fields.registers) & 0xfefefefe;
  return ((pairs - 0x01010101) & ~pairs & 0x80808080) != 0;  // a byte is zero
}

/// A sparse product of matrices names a further register there.
constexpr bool has_further_register(const Fields& fields, const Instruction& instruction) {
  return fields.is_matrix_product && (instruction.low >> 40 & 0xff) != 0;
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
    const Fields& fields = fields_of[code[i].operation()];
    if (has_further_register(fields, code[i])) return false;
    // Few instructions get beyond the first question.
    if (uses_first_registers(fields, code[i]) && uses_stack_pointer(code[i])) return false;
  }
  return flow_of(code) == CodeFlow::Inside;
}

}  // namespace contextune::gpu
