// Which candidates may run without changing a result.
#include "catch.hpp"
#include "collective/all_to_all.hpp"
#include "collective/exactness.hpp"

using contextune::Exactness;
using namespace contextune::collective;

namespace {

constexpr CellSet every_cell(~0U);
constexpr CellSet no_cell;

CellSet cells_of(Algorithm algorithm) {
  CellSet cells;
  for (const Cell& cell : all_cells()) {
    if (cell.algorithm == algorithm) cells.add(cell);
  }
  return cells;
}

/// Whether an algorithm may run, with any protocol.
bool allows(const Permission& permission, Algorithm algorithm) {
  return (permission.cells & cells_of(algorithm)) == cells_of(algorithm);
}

constexpr Datatype floats[] = {Datatype::F16,  Datatype::F32,    Datatype::F64,
                               Datatype::BF16, Datatype::F8E4M3, Datatype::F8E5M2};
constexpr Datatype integers[] = {Datatype::I8,  Datatype::U8,  Datatype::I32,
                                 Datatype::U32, Datatype::I64, Datatype::U64};
constexpr Operator operators[] = {Operator::Sum, Operator::Prod, Operator::Max,
                                  Operator::Min, Operator::Avg,  Operator::PreMulSum};
constexpr Function reductions[] = {Function::AllReduce, Function::ReduceScatter, Function::Reduce};

Permission all_reduce(Datatype datatype, Operator op, int ranks,
                      Algorithm default_algorithm = Algorithm::Ring, RoundingOptions options = {}) {
  return permission_for(Function::AllReduce, datatype, op, ranks, default_algorithm, options);
}

}  // namespace

TEST_CASE("What only moves data may run with any config", "[exactness]") {
  for (const Function function : {Function::AllGather, Function::Broadcast}) {
    for (const Datatype datatype : floats) {
      const Permission permission =
          permission_for(function, datatype, Operator::Sum, 8, Algorithm::Nvls, RoundingOptions());
      CHECK(permission.cells == every_cell);
      CHECK(permission.is_exact);
    }
  }
  // Not even the datatype has to be known.
  CHECK(
      permission_for(Function::AllGather, std::nullopt, std::nullopt, 8, std::nullopt, {}).cells ==
      every_cell);
}

TEST_CASE("Integers may run with any config, whatever is done to them", "[exactness]") {
  for (const Function function : reductions) {
    for (const Datatype datatype : integers) {
      for (const Operator op : operators) {
        const Permission permission =
            permission_for(function, datatype, op, 64, Algorithm::Tree, RoundingOptions());
        CHECK(permission.cells == every_cell);
        CHECK(permission.is_exact);
      }
    }
  }
}

TEST_CASE("Sums and products of floats keep the default unless rounding is allowed",
          "[exactness]") {
  for (const Function function : reductions) {
    for (const Datatype datatype : floats) {
      for (const Operator op : {Operator::Sum, Operator::Prod}) {
        const Permission permission =
            permission_for(function, datatype, op, 3, Algorithm::Ring, RoundingOptions());
        CHECK(permission.cells == no_cell);
        CHECK(permission.reason.find("--allow-rounding") != std::string_view::npos);
      }
    }
  }
}

TEST_CASE("The exactness option alone allows no rounding", "[exactness]") {
  for (const Exactness exactness : {Exactness::Exact, Exactness::SameAlgorithm, Exactness::Any}) {
    const Permission permission =
        all_reduce(Datatype::F32, Operator::Sum, 8, Algorithm::Ring, {exactness, false});
    CHECK(permission.cells == no_cell);
    CHECK(permission.is_exact);
  }
}

TEST_CASE("Where rounding is allowed the algorithm is kept unless any may run", "[exactness]") {
  const Permission exact =
      all_reduce(Datatype::F32, Operator::Sum, 8, Algorithm::Tree, {Exactness::Exact, true});
  CHECK(exact.cells == no_cell);
  const Permission same = all_reduce(Datatype::F32, Operator::Sum, 8, Algorithm::Tree,
                                     {Exactness::SameAlgorithm, true});
  CHECK(allows(same, Algorithm::Tree));
  CHECK_FALSE(allows(same, Algorithm::Ring));
  // Channels and protocols change the order all the same.
  CHECK_FALSE(same.is_exact);
  CHECK(same.reason.find("not promised") != std::string_view::npos);
  const Permission any =
      all_reduce(Datatype::F32, Operator::Sum, 8, Algorithm::Tree, {Exactness::Any, true});
  CHECK(allows(any, Algorithm::Nvls));
  CHECK_FALSE(any.is_exact);
}

TEST_CASE("Two ranks add once, so any order is the same", "[exactness]") {
  for (const Datatype datatype : floats) {
    for (const Operator op : {Operator::Sum, Operator::Prod}) {
      const Permission permission = all_reduce(datatype, op, 2);
      CHECK(permission.is_exact);
      CHECK(allows(permission, Algorithm::Tree));
      CHECK(allows(permission, Algorithm::Ring));
      CHECK(allows(permission, Algorithm::Pat));
    }
  }
}

TEST_CASE("Scaling before adding rounds at one of two ranks only, so it is not exact",
          "[exactness]") {
  for (const Datatype datatype : floats) {
    for (const Operator op : {Operator::Avg, Operator::PreMulSum}) {
      CHECK(all_reduce(datatype, op, 2).cells == no_cell);
      const Permission allowed =
          all_reduce(datatype, op, 2, Algorithm::Ring, {Exactness::SameAlgorithm, true});
      CHECK(allowed.cells == cells_of(Algorithm::Ring));
      CHECK_FALSE(allowed.is_exact);
    }
  }
}

TEST_CASE("Extremes of floats have no order, on any number of ranks", "[exactness]") {
  for (const Datatype datatype : floats) {
    for (const Operator op : {Operator::Min, Operator::Max}) {
      const Permission permission = all_reduce(datatype, op, 64);
      CHECK(permission.is_exact);
      CHECK(allows(permission, Algorithm::Tree));
    }
  }
}

TEST_CASE("A switch does not take the place of the SMs for floats, nor they its", "[exactness]") {
  for (const Algorithm in_switch :
       {Algorithm::Nvls, Algorithm::NvlsTree, Algorithm::CollnetChain, Algorithm::CollnetDirect}) {
    CHECK_FALSE(allows(all_reduce(Datatype::F16, Operator::Max, 8), in_switch));
    CHECK_FALSE(allows(all_reduce(Datatype::F32, Operator::Sum, 2), in_switch));
    const Permission by_switch = all_reduce(Datatype::F16, Operator::Max, 8, in_switch);
    CHECK(allows(by_switch, in_switch));
    CHECK_FALSE(allows(by_switch, Algorithm::Ring));
    CHECK(by_switch.is_exact);
  }
  // Unless the user allows anything.
  CHECK(allows(all_reduce(Datatype::F16, Operator::Max, 8, Algorithm::Ring, {Exactness::Any, true}),
               Algorithm::Nvls));
}

TEST_CASE("Where ranks differ in NCCL's own choice nothing can be compared with it",
          "[exactness]") {
  CHECK(permission_for(Function::AllReduce, Datatype::F32, Operator::Max, 8, std::nullopt, {})
            .cells == no_cell);
  CHECK(permission_for(Function::AllReduce, Datatype::F32, Operator::Sum, 8, std::nullopt,
                       {Exactness::SameAlgorithm, true})
            .cells == no_cell);
  CHECK(permission_for(Function::AllReduce, Datatype::I32, Operator::Sum, 8, std::nullopt, {})
            .cells == every_cell);
}

TEST_CASE("What is not known or not asked of the tuner keeps the default", "[exactness]") {
  const RoundingOptions any{Exactness::Any, true};
  CHECK(permission_for(Function::AllReduce, std::nullopt, Operator::Sum, 8, Algorithm::Ring, any)
            .cells == no_cell);
  CHECK(permission_for(Function::AllReduce, Datatype::F32, std::nullopt, 8, Algorithm::Ring, any)
            .cells == no_cell);
  CHECK(all_reduce(Datatype::F32, Operator::Sum, 1, Algorithm::Ring, any).cells == no_cell);
  const Permission exchange =
      permission_for(Function::AllToAll, Datatype::F32, std::nullopt, 8, std::nullopt, any);
  CHECK(exchange.cells == no_cell);
  CHECK(exchange.reason == all_to_all_untunable);
}

TEST_CASE("What NCCL takes at a size says what may take its place there", "[exactness]") {
  const Cell own_ring{Algorithm::Ring, Protocol::LL};
  const Cell own_tree{Algorithm::Tree, Protocol::Simple};
  const Cell in_switch{Algorithm::Nvls, Protocol::Simple};
  const auto max_of_floats = [](std::optional<Cell> own, Cell cell) {
    return may_replace(own, cell, Function::AllReduce, Datatype::F32, Operator::Max, 8, {});
  };
  CHECK(max_of_floats(own_ring, own_tree));
  CHECK_FALSE(max_of_floats(in_switch, own_tree));
  CHECK(max_of_floats(in_switch, in_switch));
  CHECK_FALSE(max_of_floats(own_ring, in_switch));
  CHECK_FALSE(max_of_floats(std::nullopt, own_tree));
  CHECK(may_replace(in_switch, own_ring, Function::AllReduce, Datatype::I32, Operator::Sum, 8, {}));
  CHECK(may_replace(own_ring, own_tree, Function::AllReduce, Datatype::F32, Operator::Sum, 2, {}));
  CHECK_FALSE(
      may_replace(in_switch, own_tree, Function::AllReduce, Datatype::F32, Operator::Sum, 2, {}));
  const RoundingOptions keeps{Exactness::SameAlgorithm, true};
  CHECK(may_replace(own_ring, {Algorithm::Ring, Protocol::Simple}, Function::AllReduce,
                    Datatype::F32, Operator::Sum, 8, keeps));
  CHECK_FALSE(
      may_replace(own_tree, own_ring, Function::AllReduce, Datatype::F32, Operator::Sum, 8, keeps));
}
