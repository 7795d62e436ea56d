// Which operands are registers, of every instruction that compilers were seen to write for sm_90:
// read off the disassembly of 110 million instructions, with the registers that each of them reads
// and writes.
#include "gpu/image/stack_pointer.hpp"

#include <array>
#include <string_view>

namespace contextune::gpu {
namespace {

/// How many registers an operand has that begins at R0.
enum class Width : std::uint8_t {
  None,     ///< it is no register
  One,      ///< whatever the instruction's modifiers are
  Several,  ///< perhaps
  OfMemory  ///< as many as the size of what is read or written says
};

/// An operation's operands: its result and the three that follow.
struct Operands {
  bool known = false;
  std::array<Width, 4> widths{};
};

/// A letter for each operand: '-' none, '1' one, 'n' several, 'm' by the size in memory.
struct Row {
  std::string_view widths;
  std::string_view operations;  ///< their low 12 bits, in hexadecimal
};

constexpr std::array rows = {
    // The uniform datapath, branches whose target is checked, barriers and what moves no data.
    Row{"----",
        "287 28c 290 291 292 297 299 29b 2a4 2a5 2bd 2be 2bf 3b4 3b5 3ba 3bb 3c6 4a4 5ab 5b2 5b4 "
        "81c 82f 882 883 886 887 88c 890 891 892 896 899 89a 89b 89c 8a4 8a5 918 91a 91b 941 942 "
        "944 945 946 947 948 94d 95c 95d 992 9ab 9af 9b7 9b9 9c3 9c5 9c7 9c8 9c9 ab9 abb b1d c82 "
        "dc7"},
    // Arithmetic on one register: integers, floats, halves, bits, predicates, shuffles.
    Row{"1---", "802 806 906 908 919 c02 c13 c45 d00 d04 d05 d06 d07 d08 d09"},
    Row{"1-1-", "202 213 245 300 301 304 305 306 307 308 309"},
    Row{"--1-", "31d 35d 51d 91d"},
    Row{"-1--", "2ca 348 3c4 434 804 80b 80c 902 c0b c0c d02"},
    Row{"-11-", "20b 20c 234 302"},
    Row{"11--",
        "421 430 433 803 807 808 809 80a 81a 81b 820 832 836 848 c07 c08 c09 c0a c1a c1b c20 "
        "c32 c36 c40 c48 e21 f89"},
    Row{"11-1",
        "419 423 424 431 435 446 810 811 812 816 819 823 824 831 835 846 989 c0f c10 c11 c12 c19 "
        "c23 c24 c26 c31 c3e c46 e16 e19 e23 e24 e27 e46"},
    Row{"111-", "207 208 209 20a 21a 21b 220 221 230 232 233 240 248 589"},
    Row{"1111", "20f 210 211 212 216 219 223 224 226 231 235 239 23e 243 246 389"},
    // Products and conversions of 64 bits.
    Row{"--n-", "356"},
    Row{"n---", "31c 355 805 d10 d11 d12 d13"},
    Row{"n-n-", "310 311 312 313"},
    Row{"-n--", "42a e2a"},
    Row{"-nn-", "22a"},
    Row{"nn--", "429 828 c28 e29"},
    Row{"nn-n", "229 42b 82b c2b e2b"},
    Row{"nnn-", "228"},
    Row{"nnnn", "22b"},
    Row{"11-n", "827 c27"},
    Row{"111n", "227"},
    Row{"n11n", "225"},
    Row{"n1-n", "825 c25"},
    Row{"n1-1", "e25"},
    // Matrices.
    Row{"nnnn", "237 23c 23f"},
    Row{"n--n", "9f0 9f1 9f3"},
    Row{"nn-n", "df0"},
    // Memory: addresses of 64 bits, or of local memory, which may have them; then those of 32 bits.
    Row{"mn--", "381 980 981 983"},
    Row{"-n-m", "385"},
    Row{"-nm-", "386 387 985 986 987"},
    Row{"m1--", "984 b82"},
    Row{"-1m-", "388 988"},
    Row{"n1--", "83b f8c"},
    Row{"-1n-", "844"},
    Row{"1n--", "3a1 dae fae"},
    // Atomics, multimemory, transactions, textures.
    Row{"n1n-", "38c"},
    Row{"n1nn", "38d"},
    Row{"n-n-", "98c"},
    Row{"-n--", "950 98f 9b0"},
    Row{"nn--", "23a 3aa 9aa 9a4 9a5"},
    Row{"-nn-", "98e 9a6 dbd"},
    Row{"-1n-", "5a7"},
    Row{"n1n-", "9a7"},
    Row{"nnn-", "3a3 3a8 98a 9a2 9a3 9a8"},
    Row{"nnnn", "38b 3a9 f66"},
};

constexpr Width width_of(char letter) {
  switch (letter) {
    case '1':
      return Width::One;
    case 'n':
      return Width::Several;
    case 'm':
      return Width::OfMemory;
    default:
      return Width::None;
  }
}

constexpr unsigned digit(char letter) {
  return static_cast<unsigned>(letter <= '9' ? letter - '0' : letter - 'a' + 10);
}

constexpr auto operands_of = [] {
  std::array<Operands, 0x1000> table{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.operations.size(); i += 4) {
      const std::string_view word = row.operations.substr(i, 3);
      Operands& one = table[digit(word[0]) << 8 | digit(word[1]) << 4 | digit(word[2])];
      if (one.known) throw "an operation stands in two rows";
      one.known = true;
      for (std::size_t k = 0; k < one.widths.size(); ++k) one.widths[k] = width_of(row.widths[k]);
    }
  }
  return table;
}();

constexpr unsigned operation_reconverge = 0x945;  // BSSY
constexpr unsigned operation_return = 0x950;      // RET
// BRA, CALL.REL, WARPSYNC.COLLECTIVE twice.
constexpr std::array<unsigned, 4> branches = {0x947, 0x944, 0x348, 0x948};
constexpr std::array<unsigned, 7> matrix_products = {0x237, 0x23c, 0x23f, 0x9f0,
                                                     0x9f1, 0x9f3, 0xdf0};

template <std::size_t N>
constexpr bool is_among(unsigned operation, const std::array<unsigned, N>& those) {
  for (const unsigned one : those) {
    if (operation == one) return true;
  }
  return false;
}

/// What is read or written has more than four bytes.
constexpr bool is_wide_in_memory(const Instruction& instruction) {
  constexpr unsigned four_bytes = 4;  // below stand bytes and halves
  return (instruction.high >> 9 & 7) > four_bytes;
}

constexpr bool uses_stack_pointer(const Instruction& instruction, const Operands& operands) {
  const std::array<std::uint64_t, 4> registers = {
      instruction.low >> 16 & 0xff, instruction.low >> 24 & 0xff, instruction.low >> 32 & 0xff,
      instruction.high & 0xff};
  for (std::size_t i = 0; i < registers.size(); ++i) {
    const Width width = operands.widths[i];
    if (width == Width::None || registers[i] > 1) continue;
    if (registers[i] == 1 || width == Width::Several) return true;
    if (width == Width::OfMemory && is_wide_in_memory(instruction)) return true;
  }
  return false;
}

}  // namespace

bool keeps_off_stack_pointer(std::span<const Instruction> code) noexcept {
  constexpr auto step = static_cast<std::int64_t>(instruction_bytes);
  const auto target = [](std::size_t index, std::int64_t bytes) {
    return (static_cast<std::int64_t>(index) + 1) * step + bytes;
  };
  const auto is_inside = [&](std::int64_t to) {
    return to % step == 0 && to >= 0 && to / step < static_cast<std::int64_t>(code.size());
  };
  for (std::size_t i = 1; i < code.size(); ++i) {
    const Instruction& one = code[i];
    const unsigned operation = one.operation();
    const Operands& operands = operands_of[operation];
    if (!operands.known || uses_stack_pointer(one, operands)) return false;
    if (is_among(operation, branches) && !is_inside(target(i, branch_bytes(one)))) return false;
    if (operation == operation_reconverge &&
        !is_inside(target(i, (static_cast<std::int64_t>(one.low) >> 34) * 4))) {
      return false;
    }
    // Return addresses count from the kernel's entry. They are made by what calls, which all stands
    // in this code: nobody calls a kernel.
    if (operation == operation_return && target(i, branch_bytes(one)) != 0) return false;
    // A sparse one names a further register there.
    if (is_among(operation, matrix_products) && (one.low >> 40 & 0xff) != 0) return false;
  }
  return true;
}

}  // namespace contextune::gpu
