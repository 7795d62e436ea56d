// Which candidates may run without changing a result.
#include <contextune/error.hpp>
#include "catch.hpp"
#include "collective/all_to_all.hpp"
#include "collective/exactness.hpp"

using namespace contextune::collective;

namespace {

using Algorithms = Permission::Algorithms;

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
      CHECK(permission.algorithms == Algorithms::All);
      CHECK(permission.is_exact);
    }
  }
  // Not even the datatype has to be known.
  CHECK(permission_for(Function::AllGather, std::nullopt, std::nullopt, 8, std::nullopt, {})
            .algorithms == Algorithms::All);
}

TEST_CASE("Integers may run with any config, whatever is done to them", "[exactness]") {
  for (const Function function : reductions) {
    for (const Datatype datatype : integers) {
      for (const Operator op : operators) {
        const Permission permission =
            permission_for(function, datatype, op, 64, Algorithm::Tree, RoundingOptions());
        CHECK(permission.algorithms == Algorithms::All);
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
        CHECK(permission.algorithms == Algorithms::None);
        CHECK(permission.reason.find("--allow-rounding") != std::string_view::npos);
      }
    }
  }
}

TEST_CASE("The exactness option alone allows no rounding", "[exactness]") {
  for (const Exactness exactness : {Exactness::SameAlgorithm, Exactness::Any}) {
    const Permission permission =
        all_reduce(Datatype::F32, Operator::Sum, 8, Algorithm::Ring, {exactness, false});
    CHECK(permission.algorithms == Algorithms::None);
    CHECK(permission.is_exact);
  }
}

TEST_CASE("Where rounding is allowed the algorithm is kept unless any may run", "[exactness]") {
  for (const Exactness exactness : {Exactness::Exact, Exactness::SameAlgorithm}) {
    const Permission permission =
        all_reduce(Datatype::F32, Operator::Sum, 8, Algorithm::Tree, {exactness, true});
    CHECK(permission.allows(Algorithm::Tree, Algorithm::Tree));
    CHECK_FALSE(permission.allows(Algorithm::Ring, Algorithm::Tree));
    // Channels and protocols change the order all the same.
    CHECK_FALSE(permission.is_exact);
    CHECK(permission.reason.find("not promised") != std::string_view::npos);
  }
  const Permission any =
      all_reduce(Datatype::F32, Operator::Sum, 8, Algorithm::Tree, {Exactness::Any, true});
  CHECK(any.allows(Algorithm::Nvls, Algorithm::Tree));
  CHECK_FALSE(any.is_exact);
}

TEST_CASE("Two ranks add once, so any order is the same", "[exactness]") {
  for (const Datatype datatype : floats) {
    for (const Operator op : {Operator::Sum, Operator::Prod}) {
      const Permission permission = all_reduce(datatype, op, 2);
      CHECK(permission.is_exact);
      CHECK(permission.allows(Algorithm::Tree, Algorithm::Ring));
      CHECK(permission.allows(Algorithm::Ring, Algorithm::Ring));
      CHECK(permission.allows(Algorithm::Pat, Algorithm::Ring));
    }
  }
}

TEST_CASE("Scaling before adding rounds at one of two ranks only, so it is not exact",
          "[exactness]") {
  for (const Datatype datatype : floats) {
    for (const Operator op : {Operator::Avg, Operator::PreMulSum}) {
      CHECK(all_reduce(datatype, op, 2).algorithms == Algorithms::None);
      const Permission allowed =
          all_reduce(datatype, op, 2, Algorithm::Ring, {Exactness::SameAlgorithm, true});
      CHECK(allowed.algorithms == Algorithms::Default);
      CHECK_FALSE(allowed.is_exact);
    }
  }
}

TEST_CASE("Extremes of floats have no order, on any number of ranks", "[exactness]") {
  for (const Datatype datatype : floats) {
    for (const Operator op : {Operator::Min, Operator::Max}) {
      const Permission permission = all_reduce(datatype, op, 64);
      CHECK(permission.is_exact);
      CHECK(permission.allows(Algorithm::Tree, Algorithm::Ring));
    }
  }
}

TEST_CASE("A switch does not take the place of the SMs for floats, nor they its", "[exactness]") {
  for (const Algorithm in_switch :
       {Algorithm::Nvls, Algorithm::NvlsTree, Algorithm::CollnetChain, Algorithm::CollnetDirect}) {
    CHECK_FALSE(all_reduce(Datatype::F16, Operator::Max, 8).allows(in_switch, Algorithm::Ring));
    CHECK_FALSE(all_reduce(Datatype::F32, Operator::Sum, 2).allows(in_switch, Algorithm::Ring));
    const Permission by_switch = all_reduce(Datatype::F16, Operator::Max, 8, in_switch);
    CHECK(by_switch.allows(in_switch, in_switch));
    CHECK_FALSE(by_switch.allows(Algorithm::Ring, in_switch));
    CHECK(by_switch.is_exact);
  }
  // Unless the user allows anything.
  CHECK(all_reduce(Datatype::F16, Operator::Max, 8, Algorithm::Ring, {Exactness::Any, true})
            .allows(Algorithm::Nvls, Algorithm::Ring));
}

TEST_CASE("Where ranks differ in NCCL's own choice nothing can be compared with it",
          "[exactness]") {
  CHECK(permission_for(Function::AllReduce, Datatype::F32, Operator::Max, 8, std::nullopt, {})
            .algorithms == Algorithms::None);
  CHECK(permission_for(Function::AllReduce, Datatype::F32, Operator::Sum, 8, std::nullopt,
                       {Exactness::SameAlgorithm, true})
            .algorithms == Algorithms::None);
  CHECK(permission_for(Function::AllReduce, Datatype::I32, Operator::Sum, 8, std::nullopt, {})
            .algorithms == Algorithms::All);
}

TEST_CASE("What is not known or not asked of the tuner keeps the default", "[exactness]") {
  const RoundingOptions any{Exactness::Any, true};
  CHECK(permission_for(Function::AllReduce, std::nullopt, Operator::Sum, 8, Algorithm::Ring, any)
            .algorithms == Algorithms::None);
  CHECK(permission_for(Function::AllReduce, Datatype::F32, std::nullopt, 8, Algorithm::Ring, any)
            .algorithms == Algorithms::None);
  CHECK(all_reduce(Datatype::F32, Operator::Sum, 1, Algorithm::Ring, any).algorithms ==
        Algorithms::None);
  const Permission exchange =
      permission_for(Function::AllToAll, Datatype::F32, std::nullopt, 8, std::nullopt, any);
  CHECK(exchange.algorithms == Algorithms::None);
  CHECK(exchange.reason == all_to_all_untunable);
}

TEST_CASE("Exactness is read as it is written", "[exactness]") {
  for (const Exactness exactness : {Exactness::Exact, Exactness::SameAlgorithm, Exactness::Any}) {
    CHECK(parse_exactness(name_of(exactness)) == exactness);
  }
  CHECK_THROWS_WITH(parse_exactness("bitwise"),
                    "exactness: \"bitwise\" is not known; give exact, same-algorithm or any");
}
