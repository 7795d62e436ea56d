#include "gpu/image/code_flow.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "gpu/image/operands.hpp"

namespace contextune::gpu {
namespace {

constexpr unsigned operation_reconverge = 0x945;    // BSSY
constexpr unsigned operation_return = 0x950;        // RET
constexpr unsigned operation_call_address = 0x343;  // CALL.ABS of one in a register
constexpr unsigned operation_place = 0x94e;         // LEPC: where code stands
// BRA, BRA.U, CALL.REL, WARPSYNC.COLLECTIVE twice.
constexpr std::array<unsigned, 5> branches = {0x947, 0x547, 0x944, 0x348, 0x948};

constexpr bool is_branch(unsigned operation) {
  return std::ranges::find(branches, operation) != branches.end();
}

/// Asks where the call behind it comes back to.
constexpr bool is_place_behind_call(const Instruction& instruction) {
  return instruction.operation() == operation_place && instruction.low >> 24 == instruction_bytes &&
         (instruction.high & 0x3ffff) == 0;
}

}  // namespace

CodeFlow flow_of(std::span<const Instruction> code) noexcept {
  constexpr auto step = static_cast<std::int64_t>(instruction_bytes);
  const auto target = [](std::size_t index, std::int64_t bytes) {
    return (static_cast<std::int64_t>(index) + 1) * step + bytes;
  };
  const auto is_inside = [&](std::int64_t to) {
    return to % step == 0 && to >= step && to / step < static_cast<std::int64_t>(code.size());
  };
  auto flow = CodeFlow::Inside;
  for (std::size_t i = 1; i < code.size(); ++i) {
    const Instruction& one = code[i];
    const unsigned operation = one.operation();
    if (!operands_of[operation].known) return CodeFlow::Unknown;
    if (is_branch(operation) && !is_inside(target(i, branch_bytes(one)))) return CodeFlow::Unknown;
    if (operation == operation_reconverge &&
        !is_inside(target(i, (static_cast<std::int64_t>(one.low) >> 34) * 4))) {
      return CodeFlow::Unknown;
    }
    // Return addresses count from the kernel's entry. They are made by what calls, which all stands
    // in this code: nobody calls a kernel.
    if (operation == operation_return && target(i, branch_bytes(one)) != 0)
      return CodeFlow::Unknown;
    if (operation == operation_place && !(is_place_behind_call(one) && i + 1 < code.size() &&
                                          code[i + 1].operation() == operation_call_address)) {
      return CodeFlow::Unknown;
    }
    if (operation == operation_call_address) {
      if (!is_place_behind_call(code[i - 1])) return CodeFlow::Unknown;
      flow = CodeFlow::CallsOut;
    }
  }
  return flow;
}

}  // namespace contextune::gpu
