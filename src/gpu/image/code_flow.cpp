#include "gpu/image/code_flow.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/image/operands.hpp"

namespace contextune::gpu {
namespace {

/// How an operation bears on where code goes on.
enum class Flow : std::uint8_t {
  Unknown,
  Onward,
  Branch,       ///< BRA, BRA.U, CALL.REL, WARPSYNC.COLLECTIVE twice
  Reconverge,   ///< BSSY
  Return,       ///< RET
  CallAddress,  ///< CALL.ABS of one in a register
  Place         ///< LEPC: where code stands
};

constexpr auto flows = [] {
  std::array<Flow, operands_of.size()> table{};
  for (std::size_t i = 0; i < table.size(); ++i)
    if (operands_of[i].known) table[i] = Flow::Onward;
  for (const unsigned branch : {0x947U, 0x547U, 0x944U, 0x348U, 0x948U})
    table[branch] = Flow::Branch;
  table[0x945] = Flow::Reconverge;
  table[0x950] = Flow::Return;
  table[0x343] = Flow::CallAddress;
  table[0x94e] = Flow::Place;
  return table;
}();

constexpr Flow flow_of(const Instruction& one) {
  return flows[one.operation()];
}

/// Asks where the call behind it comes back to.
constexpr bool is_place_behind_call(const Instruction& instruction) {
  return flow_of(instruction) == Flow::Place && instruction.low >> 24 == instruction_bytes &&
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
    switch (flow_of(one)) {
      case Flow::Onward:
        break;
      case Flow::Unknown:
        return CodeFlow::Unknown;
      case Flow::Branch:
        if (!is_inside(target(i, branch_bytes(one)))) return CodeFlow::Unknown;
        break;
      case Flow::Reconverge:
        if (!is_inside(target(i, (static_cast<std::int64_t>(one.low) >> 34) * 4)))
          return CodeFlow::Unknown;
        break;
      case Flow::Return:
        // Return addresses count from the kernel's entry. They are made by what calls, which all
        // stands in this code: nobody calls a kernel.
        if (target(i, branch_bytes(one)) != 0) return CodeFlow::Unknown;
        break;
      case Flow::Place:
        if (!is_place_behind_call(one) || i + 1 == code.size() ||
            flow_of(code[i + 1]) != Flow::CallAddress) {
          return CodeFlow::Unknown;
        }
        break;
      case Flow::CallAddress:
        if (!is_place_behind_call(code[i - 1])) return CodeFlow::Unknown;
        flow = CodeFlow::CallsOut;
    }
  }
  return flow;
}

}  // namespace contextune::gpu
