#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// Which operands of an instruction of sm_90 are registers. The table was read off the disassembly
/// of 110 million instructions of compilers, and of those of NVIDIA's that an assembler wrote. The
/// disassembly came with the registers that each instruction reads and writes.
namespace contextune::gpu {

/// How many registers an operand has that begins at R0.
enum class OperandWidth : std::uint8_t {
  None,     ///< it is no register
  One,      ///< whatever the instruction's modifiers are
  Several,  ///< perhaps
  OfMemory  ///< as many as the size of what is read or written says
};

/// An operation's operands: its result and the three that follow.
struct Operands {
  bool known = false;
  std::array<OperandWidth, 4> widths{};
};

/// A letter for each operand: '-' none, '1' one, 'n' several, 'm' by the size in memory.
struct OperandRow {
  std::string_view widths;
  std::string_view operations;  ///< their low 12 bits, in hexadecimal
};

inline constexpr std::array operand_rows = {
    // The uniform datapath, branches whose target is checked, barriers and what moves no data.
    OperandRow{
        "----",
        "287 28c 290 291 292 297 299 29b 2a4 2a5 2bd 2be 2bf 3b4 3b5 3ba 3bb 3c6 499 4a4 547 "
        "5ab 5b2 5b4 81c 82f 882 883 886 887 88c 890 891 892 896 897 899 89a 89b 89c 8a4 8a5 "
        "918 91a 91b 941 942 944 945 946 947 948 94d 95c 95d 992 9ab 9af 9b7 9b9 9c3 9c5 9c7 "
        "9c8 9c9 ab9 abb b1d c82 dc7"},
    // Arithmetic on one register: integers, floats, halves, bits, predicates, shuffles.
    OperandRow{"1---", "802 806 906 908 919 c02 c13 c45 d00 d04 d05 d06 d07 d08 d09"},
    OperandRow{"1-1-", "202 213 245 300 301 304 305 306 307 308 309"},
    OperandRow{"--1-", "31d 35d 51d 91d"},
    OperandRow{"-1--", "2ca 348 3c4 434 804 80b 80c 902 c0b c0c d02"},
    OperandRow{"-11-", "20b 20c 234 302"},
    OperandRow{
        "11--",
        "421 430 433 803 807 808 809 80a 81a 81b 820 832 836 848 c07 c08 c09 c0a c1a c1b c20 "
        "c32 c36 c40 c48 e21 f89"},
    OperandRow{
        "11-1",
        "411 419 423 424 431 435 446 810 811 812 816 819 823 824 831 835 846 989 c0f c10 c11 "
        "c12 c19 c23 c24 c26 c31 c3e c46 e16 e19 e23 e24 e27 e46"},
    OperandRow{"111-", "207 208 209 20a 21a 21b 220 221 230 232 233 240 248 589"},
    OperandRow{"1111", "20f 210 211 212 216 219 223 224 226 231 235 239 23e 243 246 389"},
    // Products and conversions of 64 bits.
    OperandRow{"--n-", "356"},
    OperandRow{"n---", "31c 355 805 94e d10 d11 d12 d13"},
    OperandRow{"n-n-", "310 311 312 313"},
    OperandRow{"-n--", "343 42a e2a"},
    OperandRow{"-nn-", "22a"},
    OperandRow{"nn--", "429 828 c28 e29"},
    OperandRow{"nn-n", "229 42b 82b c2b e2b"},
    OperandRow{"nnn-", "228"},
    OperandRow{"nnnn", "22b"},
    OperandRow{"11-n", "827 c27"},
    OperandRow{"111n", "227"},
    OperandRow{"n11n", "225"},
    OperandRow{"n1-n", "825 c25"},
    OperandRow{"n1-1", "e25"},
    // Matrices.
    OperandRow{"nnnn", "237 23c 23f"},
    OperandRow{"n--n", "9f0 9f1 9f3"},
    OperandRow{"nn-n", "df0"},
    // Memory: addresses of 64 bits, or of local memory, which may have them; then those of 32 bits.
    OperandRow{"mn--", "381 980 981 983"},
    OperandRow{"-n-m", "385"},
    OperandRow{"-nm-", "386 387 985 986 987"},
    OperandRow{"m1--", "984 b82"},
    OperandRow{"-1m-", "388 988"},
    OperandRow{"n1--", "83b f8c"},
    OperandRow{"-1n-", "844"},
    OperandRow{"1n--", "3a1 dae fae"},
    // Atomics, multimemory, transactions, textures.
    OperandRow{"n1n-", "38c"},
    OperandRow{"n1nn", "38d"},
    OperandRow{"n-n-", "98c"},
    OperandRow{"-n--", "950 98f 9b0"},
    OperandRow{"nn--", "23a 3aa 9aa 9a4 9a5"},
    OperandRow{"-nn-", "98e 9a6 dbd"},
    OperandRow{"-1n-", "5a7"},
    OperandRow{"n1n-", "9a7"},
    OperandRow{"nnn-", "3a3 3a8 98a 9a2 9a3 9a8"},
    OperandRow{"nnnn", "38b 3a9 f66"},
};

/// By operation.
inline constexpr auto operands_of = [] {
  constexpr auto width_of = [](char letter) {
    switch (letter) {
      case '1':
        return OperandWidth::One;
      case 'n':
        return OperandWidth::Several;
      case 'm':
        return OperandWidth::OfMemory;
      default:
        return OperandWidth::None;
    }
  };
  constexpr auto digit = [](char letter) {
    return static_cast<unsigned>(letter <= '9' ? letter - '0' : letter - 'a' + 10);
  };
  std::array<Operands, 0x1000> table{};
  for (const OperandRow& row : operand_rows) {
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

}  // namespace contextune::gpu
