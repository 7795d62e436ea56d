// What one getCollInfo call writes.
#include <vector>

#include "catch.hpp"
#include "cells.hpp"
#include "collective/apply_decision.hpp"

using namespace contextune::collective;

namespace {

constexpr Cell collnet{Algorithm::CollnetChain, Protocol::Simple};

/// A table as NCCL hands it over, in which everything is legal, and what it would take.
struct Call {
  std::vector<float> table = std::vector<float>(num_cells, 10.0F);
  int channels = 0;
  int protocols = num_protocols;

  [[nodiscard]] TunerAnswer answer() {
    return {table.data(), static_cast<int>(table.size()) / protocols, protocols, &channels};
  }
  [[nodiscard]] Cell taken() const {
    return CostTable(table.data(), num_algorithms, num_protocols).cheapest().value();
  }
};

}  // namespace

TEST_CASE("NCCL takes the cell that was decided, with its channels", "[apply_decision]") {
  for (const Cell& cell : all_cells()) {
    Call call;
    REQUIRE(apply_decision({true, cell, 8}, 1, call.answer()));
    CHECK(call.taken() == cell);
    CHECK(call.channels == (takes_channels(cell.algorithm, 1) ? 8 : 0));
  }
}

TEST_CASE("The default leaves the table as it is", "[apply_decision]") {
  Call call;
  call.channels = 3;  // said by the program's own plugin
  const std::vector<float> before = call.table;
  CHECK(apply_decision({}, 1, call.answer()));
  CHECK(call.table == before);
  CHECK(call.channels == 3);
}

TEST_CASE("What was ruled out is never brought back", "[apply_decision]") {
  Call call;
  call.table[ring_simple.index()] = CostTable::illegal;
  const std::vector<float> before = call.table;
  CHECK_FALSE(apply_decision({true, ring_simple, 8}, 1, call.answer()));
  CHECK(call.table == before);
  CHECK(call.channels == 0);
}

TEST_CASE("A table without the cell is left as it is", "[apply_decision]") {
  Call call;
  call.table.resize(6 * num_protocols);  // an older NCCL, without PAT
  const std::vector<float> before = call.table;
  CHECK_FALSE(apply_decision({true, {Algorithm::Pat, Protocol::Simple}, 8}, 1, call.answer()));
  CHECK(call.table == before);

  Call narrow;
  narrow.table.resize(num_algorithms * 2);
  narrow.protocols = 2;
  CHECK_FALSE(apply_decision({true, ring_simple, 8}, 1, narrow.answer()));
}

TEST_CASE("Rows of a wider table are found by its own width", "[apply_decision]") {
  Call call;
  call.table.resize(9 * 4, 10.0F);
  call.protocols = 4;
  REQUIRE(apply_decision({true, ring_simple, 0}, 1, call.answer()));
  CHECK(call.table[1 * 4 + 2] == 0);
  CHECK(call.table[1 * 3 + 2] == 10);
}

TEST_CASE("A cell whose channels are not ours to set gets NCCL's own number", "[apply_decision]") {
  Call call;
  call.channels = 5;  // meant for the cell that the program's own plugin chose
  REQUIRE(apply_decision({true, collnet, 8}, 1, call.answer()));
  CHECK(call.channels == 0);
  Call several_nodes;
  REQUIRE(apply_decision({true, nvls_simple, 8}, 2, several_nodes.answer()));
  CHECK(several_nodes.channels == 0);
}

TEST_CASE("A cell that another plugin made free does not win over ours", "[apply_decision]") {
  Call call;
  call.table[tree_ll.index()] = 0;  // before Ring in the table, and the first of equals is taken
  REQUIRE(apply_decision({true, ring_simple, 0}, 1, call.answer()));
  CHECK(call.taken() == ring_simple);
  CHECK(call.table[tree_ll.index()] > 0);
}
