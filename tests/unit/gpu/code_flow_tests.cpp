// Code of branches, calls and returns, as compilers write them.
#include "gpu/image/code_flow.hpp"

#include <vector>

#include "catch.hpp"

using namespace contextune::gpu;
using enum CodeFlow;

namespace code_flow_oracle {

constexpr Instruction load{0x00000a00ff017b82, 0x000fe20000000800};  // LDC R1, c[0x0][0x28]
constexpr Instruction nop{0x0000000000007918, 0x000fc00000000000};
constexpr Instruction branch{0x0000000000007947, 0x000fea0003800000};          // BRA, to the next
constexpr Instruction uniform_branch{0x0000000100007547, 0x000fea000b800000};  // BRA.U UP0
constexpr Instruction call{0x0000000000007944, 0x000fea0003c00000};            // CALL.REL
constexpr Instruction give_back{0x0000000004007950, 0x000fea0003c00000};       // RET.REL.NODEC R4
constexpr Instruction converge{0x0000000000007945, 0x000fe20003800000};        // BSSY B0
constexpr Instruction place{0x000000001014794e, 0x000fce0000000000};  // LEPC R20, behind the next
constexpr Instruction call_out{0x000000000e007343, 0x001fea0003c00000};  // CALL.ABS.NOINC R14

/// The branch, call or return by so many instructions from the next.
Instruction by(Instruction one, std::int64_t instructions) {
  const auto words = static_cast<std::uint64_t>(instructions * 4);
  one.low |= (words & 0xff) << 16 | words >> 8 << 34;
  if (instructions < 0) one.high |= 0x3ffff;
  return one;
}

/// Eight instructions, with some at a place.
CodeFlow at(std::size_t index, const std::vector<Instruction>& some) {
  std::vector<Instruction> code(8, nop);
  code.front() = load;
  for (std::size_t i = 0; i < some.size(); ++i) code.at(index + i) = some[i];
  return flow_of(code);
}

}  // namespace code_flow_oracle

TEST_CASE("Branches and calls stay in the code and do not come back to its entry", "[code_flow]") {
  using namespace code_flow_oracle;
  for (const Instruction& one : {branch, uniform_branch, call}) {
    INFO(one.operation());
    CHECK(at(3, {by(one, 3)}) == Inside);
    CHECK(at(3, {by(one, 4)}) == Unknown);
    CHECK(at(7, {by(one, 0)}) == Unknown);
    CHECK(at(3, {by(one, -3)}) == Inside);
    CHECK(at(3, {by(one, -4)}) == Unknown);
    CHECK(at(3, {{one.low | 0x20000, one.high}}) == Unknown);  // between two instructions
  }
  CHECK(at(3, {{converge.low | std::uint64_t{12} << 34, converge.high}}) == Inside);
  CHECK(at(3, {{converge.low | std::uint64_t{16} << 34, converge.high}}) == Unknown);
  CHECK(at(3, {{converge.low | std::uint64_t{2} << 34, converge.high}}) == Unknown);
}

TEST_CASE("A return goes to an address that counts from the entry", "[code_flow]") {
  using namespace code_flow_oracle;
  CHECK(at(3, {by(give_back, -4)}) == Inside);
  CHECK(at(3, {by(give_back, -3)}) == Unknown);
  CHECK(at(3, {give_back}) == Unknown);
}

TEST_CASE("A function of the driver comes back to the place that was asked for before the call",
          "[code_flow]") {
  using namespace code_flow_oracle;
  CHECK(at(3, {place, call_out}) == CallsOut);
  CHECK(at(3, {call_out}) == Unknown);
  CHECK(at(3, {place, nop}) == Unknown);
  CHECK(at(7, {place}) == Unknown);
  CHECK(at(3, {{place.low + 0x10000000, place.high}, call_out}) == Unknown);
  CHECK(at(3, {{place.low, place.high | 1}, call_out}) == Unknown);
}

TEST_CASE("A branch to an address in a register and what nobody knows may go anywhere",
          "[code_flow]") {
  using namespace code_flow_oracle;
  CHECK(at(3, {nop}) == Inside);
  CHECK(at(3, {{0xfffffffc02007949, 0x000fea000383ffff}}) == Unknown);  // BRX R2
  CHECK(at(3, {{0x0000000000007000, 0x000fea0003800000}}) == Unknown);
}
