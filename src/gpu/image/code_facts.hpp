#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "gpu/image/instruction.hpp"

/// The facts that machine code has of its kernels, in sections .nv.info: a byte for their form, one
/// for what they are, and a value.
namespace contextune::gpu {

/// The number in the first four bytes, or in all of fewer.
[[nodiscard]] inline std::uint32_t number_in(std::string_view bytes) noexcept {
  std::uint32_t number = 0;
  std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof number));
  return number;
}

/// @param use  called with each fact and its value, which lies in `table`; ends where it is false
/// @return whether all could be read, and were used
template <typename Use>
[[nodiscard]] bool for_each_fact(std::string_view table, Use use) {
  constexpr std::uint8_t form_with_size = 4;  // in 16 bits; in those of other forms is the value
  while (!table.empty()) {
    if (table.size() < 4) return false;
    const auto form = static_cast<std::uint8_t>(table[0]);
    const auto fact = static_cast<std::uint8_t>(table[1]);
    std::string_view value = table.substr(2, 2);
    table.remove_prefix(4);
    if (form == form_with_size) {
      const std::uint32_t bytes = number_in(value);
      if (bytes > table.size()) return false;
      value = table.substr(0, bytes);
      table.remove_prefix(bytes);
    }
    if (!use(fact, value)) return false;
  }
  return true;
}

/// Whether an instruction of so much code, but not its first one, begins there.
[[nodiscard]] constexpr bool is_later_instruction(std::uint64_t place,
                                                  std::uint64_t code_bytes) noexcept {
  return place % instruction_bytes == 0 && place >= instruction_bytes && place < code_bytes;
}

/// Where a kernel's facts have numbers of its instructions, in four bytes each. Empty: they may
/// name instructions in a way that is not known here, or some that it has not.
[[nodiscard]] std::optional<std::vector<std::uint64_t>> places_of_instructions(
    std::string_view table, std::uint64_t code_bytes);

}  // namespace contextune::gpu
