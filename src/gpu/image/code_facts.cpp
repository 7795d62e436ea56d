#include "gpu/image/code_facts.hpp"

#include <array>

namespace contextune::gpu {
namespace {

/// How a fact in a kernel's table names instructions.
enum class Fact : std::uint8_t {
  Unknown,  ///< its numbers are too small to be of instructions, or it may say anything
  Plain,    ///< names no instruction
  Places,   ///< numbers of instructions, in four bytes each
  Marks,    ///< pairs of a small number and that of an instruction
  Masks     ///< pairs of an instruction's number and any other
};
// Parameters, registers, bounds of the block, stack, barriers, versions, external symbols.
constexpr std::array plain_facts = {0x05U, 0x0aU, 0x0fU, 0x10U, 0x17U, 0x19U, 0x1bU, 0x1eU,
                                    0x29U, 0x36U, 0x37U, 0x38U, 0x4cU, 0x50U, 0x5fU};
// Exits, operations of groups, operations of whole warps, calls of the driver.
constexpr std::array facts_with_places = {0x1cU, 0x28U, 0x31U, 0x46U};
constexpr unsigned fact_spills = 0x55;        // loads and stores of local memory
constexpr unsigned fact_unused_bytes = 0x44;  // loads of shared memory
constexpr auto facts = [] {
  std::array<Fact, 0x100> table{};
  for (const unsigned one : plain_facts) table[one] = Fact::Plain;
  for (const unsigned one : facts_with_places) table[one] = Fact::Places;
  table[fact_spills] = Fact::Marks;
  table[fact_unused_bytes] = Fact::Masks;
  return table;
}();

}  // namespace

std::optional<std::vector<std::uint64_t>> places_of_instructions(std::string_view table,
                                                                 std::uint64_t code_bytes) {
  std::vector<std::uint64_t> places;
  const bool are_known = for_each_fact(table, [&](std::uint8_t what, std::string_view value) {
    const Fact fact = facts[what];
    if (fact == Fact::Plain) return true;
    const bool are_pairs = fact == Fact::Marks || fact == Fact::Masks;
    if (are_pairs && value.size() % (2 * sizeof(std::uint32_t)) != 0) return false;
    bool is_place = fact == Fact::Places || fact == Fact::Masks;
    for (; !value.empty(); value.remove_prefix(std::min(value.size(), sizeof(std::uint32_t)))) {
      const std::uint32_t number = number_in(value);
      if (is_place) {
        if (value.size() < sizeof number || !is_later_instruction(number, code_bytes)) return false;
        places.push_back(static_cast<std::uint64_t>(value.data() - table.data()));
      } else if (fact != Fact::Masks && number >= instruction_bytes) {
        return false;
      }
      if (are_pairs) is_place = !is_place;
    }
    return true;
  });
  if (!are_known) return std::nullopt;
  return places;
}

}  // namespace contextune::gpu
