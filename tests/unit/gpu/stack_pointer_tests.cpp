// Instructions as compilers write them, with registers and sizes put in.
#include "gpu/image/stack_pointer.hpp"

#include <vector>

#include "catch.hpp"
#include "gpu/image/code_flow.hpp"

using namespace contextune::gpu;

namespace stack_pointer_oracle {

constexpr Instruction load{0x00000a00ff017b82, 0x000fe20000000800};  // LDC R1, c[0x0][0x28]
constexpr Instruction exit{0x000000000000794d, 0x000fea0003800000};
constexpr Instruction nop{0x0000000000007918, 0x000fc00000000000};

bool keeps_off(const std::vector<Instruction>& code) {
  return keeps_off_stack_pointer(code);
}
bool keeps_off(const Instruction& one) {
  return keeps_off({load, one, exit, nop});
}

/// The instruction with another register in one of its operands: its result or one of the three
/// that follow.
Instruction with(Instruction one, int operand, std::uint64_t number) {
  constexpr int places[] = {16, 24, 32};
  if (operand == 3) {
    one.high = (one.high & ~std::uint64_t{0xff}) | number;
  } else {
    one.low = (one.low & ~(std::uint64_t{0xff} << places[operand])) | number << places[operand];
  }
  return one;
}

enum Size : std::uint64_t { Byte = 0, Half = 2, Four = 4, Eight = 5, Sixteen = 6 };
Instruction of_size(Instruction one, Size size) {
  one.high = (one.high & ~std::uint64_t{0xe00}) | size << 9;
  return one;
}

constexpr Instruction add{0x0000000302007210, 0x000fc60007ffe0ff};       // IADD3 R0, R2, R3, RZ
constexpr Instruction multiply{0x0000000800027824, 0x002fe400078e0203};  // IMAD R2, R0, 0x8, R3
constexpr Instruction set_one{0x00000001ff027424, 0x000fca00078e00ff};   // IMAD.MOV R2, RZ, RZ, 1
constexpr Instruction global_load{0x0000000402007981, 0x001164000c1e1900};   // LDG.E R0, [R2.64]
constexpr Instruction global_store{0x0000000002007986, 0x000fe8000c101904};  // STG.E [R2.64], R0
constexpr Instruction shared_store{0x0000001700007388, 0x000fe20000000800};  // STS [R0], R23
constexpr Instruction matrix{0x000000282404723c, 0x04afe20000001804};  // HMMA R4, R36, R40, R4

}  // namespace stack_pointer_oracle

TEST_CASE("Code uses the stack pointer where an operand is R1", "[stack_pointer]") {
  using namespace stack_pointer_oracle;
  CHECK(keeps_off(add));
  for (int operand = 0; operand < 4; ++operand) {
    INFO(operand);
    CHECK_FALSE(keeps_off(with(add, operand, 1)));
    CHECK(keeps_off(with(add, operand, 2)));
    CHECK(keeps_off(with(add, operand, 255)));
  }
  CHECK_FALSE(keeps_off({0xfffffff801017836, 0x001fe20000000000}));  // VIADD R1, R1, -8
  CHECK_FALSE(keeps_off({0x0000000d01007387, 0x0021e20000100800}));  // STL [R1], R13
  CHECK_FALSE(keeps_off({0x0000000001047983, 0x000ea20000100800}));  // LDL R4, [R1]
}

TEST_CASE("A constant, a uniform register or a predicate of that number is no R1",
          "[stack_pointer]") {
  using namespace stack_pointer_oracle;
  CHECK(keeps_off(set_one));
  CHECK(keeps_off({0x0000000100047882, 0x000fe20000000000}));  // UMOV UR4, 0x1
  CHECK(keeps_off({0x000000010a00780c, 0x000fe20003f06270}));  // ISETP P0, PT, R10, 0x1, PT
  CHECK(keeps_off(with({0x0000000a04047890, 0x000fe2000fffe03f}, 0, 1)));  // UIADD3 UR1
  CHECK(keeps_off(with(global_store, 3, 1)));                              // its descriptor
}

TEST_CASE("A result of 64 bits in R0 is R1 as well", "[stack_pointer]") {
  using namespace stack_pointer_oracle;
  CHECK(keeps_off(with(multiply, 0, 0)));
  Instruction wide = multiply;
  wide.low = (wide.low & ~std::uint64_t{0xfff}) | 0x825;  // IMAD.WIDE
  CHECK(keeps_off(wide));
  CHECK_FALSE(keeps_off(with(wide, 0, 0)));
  CHECK_FALSE(keeps_off(with(wide, 3, 0)));
  CHECK(keeps_off(with(wide, 1, 0)));                                // a factor has 32
  CHECK_FALSE(keeps_off({0x0000000000007805, 0x000fe2000001ff00}));  // CS2R R0, SRZ
  CHECK_FALSE(keeps_off(with(matrix, 0, 0)));
  CHECK_FALSE(keeps_off(with(matrix, 1, 0)));
  CHECK(keeps_off(matrix));
}

TEST_CASE("Memory of more than four bytes at R0 is R1 as well, and so is an address",
          "[stack_pointer]") {
  using namespace stack_pointer_oracle;
  for (const Size size : {Byte, Half, Four, Eight, Sixteen}) {
    INFO(size);
    const bool fits = size <= Four;
    CHECK(keeps_off(of_size(global_load, size)) == fits);
    CHECK(keeps_off(of_size(global_store, size)) == fits);
    CHECK(keeps_off(of_size(with(shared_store, 2, 0), size)) == fits);
    CHECK(keeps_off(with(of_size(global_load, size), 0, 4)));
    CHECK(keeps_off(of_size(shared_store, size)));  // an address of 32 bits
  }
  CHECK_FALSE(keeps_off(with(with(global_load, 0, 4), 1, 0)));
  CHECK_FALSE(keeps_off(with(with(global_store, 2, 4), 1, 0)));
}

TEST_CASE("A sparse product, which has a further operand, is not known", "[stack_pointer]") {
  using namespace stack_pointer_oracle;
  Instruction sparse = matrix;
  sparse.low |= std::uint64_t{0x45} << 40;
  CHECK_FALSE(keeps_off(sparse));
}

TEST_CASE("Functions of the driver need a stack pointer", "[stack_pointer]") {
  using namespace stack_pointer_oracle;
  const Instruction place{0x000000001014794e, 0x000fce0000000000};     // LEPC R20, behind the call
  const Instruction call_out{0x000000000e007343, 0x001fea0003c00000};  // CALL.ABS.NOINC R14
  const std::vector<Instruction> code = {load, place, call_out, nop, nop};
  REQUIRE(flow_of(code) == CodeFlow::CallsOut);
  CHECK_FALSE(keeps_off(code));
}
