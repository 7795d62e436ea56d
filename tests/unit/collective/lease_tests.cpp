// What ranks agree on.
#include <set>
#include <span>
#include <vector>

#include "catch.hpp"
#include "cells.hpp"
#include "collective/lease.hpp"

using namespace contextune::collective;

namespace {

Lease trial() {
  Lease lease;
  lease.key = {77, 65536, 1, 3, Function::AllReduce, 5};
  lease.epoch = 1;
  lease.first_decision = 10;
  lease.spans = {{{}, 0, 4}, {ring, 1, 4}};
  return lease;
}

}  // namespace

TEST_CASE("A lease is as long as its spans", "[lease]") {
  CHECK(length_of(trial()) == 8);
  CHECK(length_of(Lease()) == 0);
}

TEST_CASE("Leases of the same content have one hash on all ranks", "[lease]") {
  const std::uint64_t hash = lockstep_hash(std::vector<Lease>{trial()});
  // It goes to other machines.
  CHECK(hash == 0x4c6486c1affb2ad8U);
  // A communicator and a region have other numbers elsewhere.
  Lease elsewhere = trial();
  elsewhere.key.communicator = 5;
  elsewhere.key.region = 0;
  CHECK(lockstep_hash(std::vector<Lease>{elsewhere}) == hash);
}

TEST_CASE("Leases that differ in anything that counts have other hashes", "[lease]") {
  const std::uint64_t hash = lockstep_hash(std::vector<Lease>{trial()});
  Lease other = trial();
  SECTION("bytes") {
    other.key.bytes = 65540;
  }
  SECTION("operations in the group") {
    other.key.operations = 2;
  }
  SECTION("function") {
    other.key.function = Function::Reduce;
  }
  SECTION("kind") {
    other.key.kind = 6;
  }
  SECTION("epoch") {
    other.epoch = 2;
  }
  SECTION("first decision") {
    other.first_decision = 11;
  }
  SECTION("algorithm") {
    other.spans[1].decision.cell.algorithm = Algorithm::Tree;
  }
  SECTION("protocol") {
    other.spans[1].decision.cell.protocol = Protocol::LL128;
  }
  SECTION("channels") {
    other.spans[1].decision.channels = 4;
  }
  SECTION("config") {
    other.spans[1].config = 2;
  }
  SECTION("decisions of a span") {
    other.spans[1].decisions = 5;
  }
  SECTION("order of spans") {
    std::swap(other.spans[0], other.spans[1]);
  }
  SECTION("a span less") {
    other.spans.pop_back();
  }
  SECTION("what comes afterwards") {
    other.afterwards = ring;
  }
  SECTION("its number") {
    other.config_afterwards = 1;
  }
  CHECK(lockstep_hash(std::vector<Lease>{other}) != hash);
}

TEST_CASE("Every datatype and operator is a kind of its own", "[lease]") {
  std::set<std::uint8_t> kinds{0};
  for (int datatype = 0; datatype_of_nccl(datatype); ++datatype) {
    for (int op = 0; op <= static_cast<int>(Operator::PreMulSum); ++op) {
      CHECK(kinds.insert(kind_of(*datatype_of_nccl(datatype), *operator_of_nccl(op))).second);
    }
  }
}

TEST_CASE("The order and number of leases count", "[lease]") {
  Lease second = trial();
  second.afterwards = tree;
  const std::uint64_t hash = lockstep_hash(std::vector<Lease>{trial(), second});
  CHECK(lockstep_hash(std::vector<Lease>{second, trial()}) != hash);
  CHECK(lockstep_hash(std::vector<Lease>{trial()}) != hash);
  CHECK(lockstep_hash(std::span<const Lease>()) != hash);
}
