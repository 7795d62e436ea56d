// Cells of NCCL's cost table, and decisions as configs.
#include <limits>
#include <vector>

#include <contextune/error.hpp>
#include "catch.hpp"
#include "collective/cell.hpp"

using namespace contextune::collective;

namespace {

std::vector<float> filled_table(int algorithms, int protocols, float cost) {
  return std::vector<float>(static_cast<std::size_t>(algorithms * protocols), cost);
}

}  // namespace

TEST_CASE("A decision is a config, and back", "[cell]") {
  CHECK(config_of({}).empty());
  CHECK(decision_of({}).is_default());
  for (const Cell& cell : all_cells()) {
    const Decision decision{true, cell, 24};
    CHECK(decision_of(config_of(decision)) == decision);
  }
  CHECK(config_of({true, {Algorithm::NvlsTree, Protocol::Simple}, 0}).to_string() ==
        "algorithm=NVLSTree protocol=Simple channels=0");
}

TEST_CASE("A config that is no decision is refused", "[cell]") {
  using contextune::Config;
  const std::int64_t channels = 8;
  CHECK_THROWS_AS(decision_of(Config{{"algorithm", "Ring"}}), contextune::Error);
  for (const Config& config :
       {Config{{"algorithm", "Rings"}, {"protocol", "LL"}, {"channels", channels}},
        Config{{"algorithm", "Ring"}, {"protocol", "ll"}, {"channels", channels}},
        Config{{"algorithm", "Ring"}, {"protocol", "LL"}, {"channels", std::int64_t{-1}}},
        Config{{"algorithm", "Ring"}, {"protocol", "LL"}, {"channels", std::int64_t{65}}},
        Config{{"algorithm", "Ring"}, {"protocol", "LL"}, {"channels", channels}, {"x", channels}}})
    CHECK_THROWS_AS(decision_of(config), contextune::Error);
}

TEST_CASE("Names of algorithms and protocols are read back", "[cell]") {
  for (const Cell& cell : all_cells()) {
    CHECK(parse_algorithm(name_of(cell.algorithm)) == cell.algorithm);
    CHECK(parse_protocol(name_of(cell.protocol)) == cell.protocol);
  }
  CHECK_FALSE(parse_algorithm("ring").has_value());
  CHECK_FALSE(parse_protocol("").has_value());
}

TEST_CASE("What NCCL rules out is not legal", "[cell]") {
  std::vector<float> table = filled_table(num_algorithms, num_protocols, -1.0F);
  table[3 + 2] = 50.0F;                                     // Ring, Simple
  table[0] = 0.0F;                                          // Tree, LL
  table[12 + 2] = std::numeric_limits<float>::quiet_NaN();  // NVLS, Simple
  const CostTable costs(table.data(), num_algorithms, num_protocols);
  CellSet expected;
  expected.add({Algorithm::Ring, Protocol::Simple});
  expected.add({Algorithm::Tree, Protocol::LL});
  CHECK(costs.legal() == expected);
  CHECK(costs.cost({Algorithm::Ring, Protocol::Simple}) == 50.0F);
}

TEST_CASE("NCCL's own choice is the first of the cheapest legal cells", "[cell]") {
  std::vector<float> table = filled_table(num_algorithms, num_protocols, -1.0F);
  CHECK_FALSE(CostTable(table.data(), num_algorithms, num_protocols).cheapest().has_value());
  table[3 + 2] = 5.0F;   // Ring, Simple
  table[3 + 1] = 5.0F;   // Ring, LL128
  table[12 + 2] = 9.0F;  // NVLS, Simple
  CHECK(CostTable(table.data(), num_algorithms, num_protocols).cheapest() ==
        Cell{Algorithm::Ring, Protocol::LL128});
}

TEST_CASE("A table of another NCCL is read as far as it goes", "[cell]") {
  // An older one: no PAT. A newer one: more of both.
  CHECK(CostTable(filled_table(6, 3, 1.0F).data(), 6, 3).legal().bits() == (1U << 18U) - 1);
  std::vector<float> newer = filled_table(9, 4, -1.0F);
  newer[1 * 4 + 2] = 7.0F;  // Ring, Simple
  newer[1 * 4 + 3] = 1.0F;  // a protocol that is not known here
  newer[8 * 4 + 0] = 1.0F;  // an algorithm likewise
  const CostTable costs(newer.data(), 9, 4);
  CHECK(costs.legal().has({Algorithm::Ring, Protocol::Simple}));
  CHECK(costs.legal().bits() == 1U << (Cell{Algorithm::Ring, Protocol::Simple}.index()));
}

TEST_CASE("A set of cells from another version has no cells that are not known here", "[cell]") {
  CHECK(CellSet(~0U).bits() == (1U << num_cells) - 1);
}

TEST_CASE("Channels are never set where NCCL would believe any number", "[cell]") {
  CHECK(takes_channels(Algorithm::Ring, 4));
  CHECK(takes_channels(Algorithm::Tree, 4));
  CHECK(takes_channels(Algorithm::NvlsTree, 4));
  CHECK(takes_channels(Algorithm::Pat, 4));
  CHECK(takes_channels(Algorithm::Nvls, 1));
  CHECK_FALSE(takes_channels(Algorithm::Nvls, 2));
  CHECK_FALSE(takes_channels(Algorithm::CollnetDirect, 1));
  CHECK_FALSE(takes_channels(Algorithm::CollnetChain, 2));
}
