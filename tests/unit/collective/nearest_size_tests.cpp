// What decisions of a size without a lease are answered from.
#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "catch.hpp"
#include "cells.hpp"
#include "collective/lease_table.hpp"

using namespace contextune::collective;

namespace {

LeaseKey of_size(std::uint64_t bytes, std::uint64_t communicator = 100) {
  return {communicator, bytes, 1, Function::AllReduce, 0};
}

/// One rank: its table numbers communicators in its own way.
class Rank {
 public:
  explicit Rank(std::uint64_t communicator) : communicator_(communicator) {}
  Grant decide(LeaseKey at) { return table_->decide(here(at), true); }
  void install(const LeaseKey& at, std::uint64_t epoch, std::vector<LeaseSpan> spans,
               Decision afterwards) {
    const LeaseKey own = here(at);
    REQUIRE(table_->prepare({own, epoch, table_->decisions(own), std::move(spans), afterwards,
                             1}) == LeaseTable::Refusal::None);
    REQUIRE(table_->commit(epoch).late == 0);
  }
  LeaseTable& table() { return *table_; }
  [[nodiscard]] LeaseKey here(LeaseKey at) const {
    at.communicator += communicator_;
    return at;
  }

 private:
  std::uint64_t communicator_;
  std::unique_ptr<LeaseTable> table_ = std::make_unique<LeaseTable>();
};

}  // namespace

TEST_CASE("A size without a lease takes what holds at the nearest one", "[nearest_size]") {
  Rank rank(0);
  static_cast<void>(rank.decide(of_size(65536)));
  static_cast<void>(rank.decide(of_size(1U << 20U)));
  rank.install(of_size(65536), 1, {}, ring);
  rank.install(of_size(1U << 20U), 1, {}, tree);
  // Not before the first decision that the lease answers: other ranks may not know it sooner.
  CHECK(rank.decide(of_size(32768)).decision.is_default());
  static_cast<void>(rank.decide(of_size(65536)));
  static_cast<void>(rank.decide(of_size(1U << 20U)));
  const Grant near = rank.decide(of_size(32768));
  CHECK(near.decision == ring);
  CHECK(near.is_nearest);
  CHECK(near.config == 0);
  CHECK_FALSE(near.is_trial);
  CHECK(rank.decide(of_size(131072)).decision == ring);
  CHECK(rank.decide(of_size(524288)).decision == tree);
  SECTION("but not what is far away") {
    CHECK(rank.decide(of_size(8192)).decision.is_default());
    CHECK(rank.decide(of_size(16U << 20U)).decision.is_default());
  }
  SECTION("nor what is of another kind") {
    LeaseKey other = of_size(32768);
    SECTION("communicator") {
      other.communicator += 1;
    }
    SECTION("function") {
      other.function = Function::ReduceScatter;
    }
    SECTION("operations") {
      other.operations = 2;
    }
    SECTION("datatype") {
      other.kind = 7;
    }
    CHECK(rank.decide(other).decision.is_default());
  }
  SECTION("unless it is told not to") {
    CHECK(rank.table().decide(rank.here(of_size(32768))).decision.is_default());
  }
  SECTION("until it has a lease of its own, of the default as well") {
    rank.install(of_size(32768), 1, {}, {});
    const Grant own = rank.decide(of_size(32768));
    CHECK(own.decision.is_default());
    CHECK_FALSE(own.is_nearest);
  }
  SECTION("and goes on with what comes after that") {
    rank.install(of_size(65536), 2, {{nvls, 2, 1}}, tree);
    CHECK(rank.decide(of_size(32768)).decision == ring);
    CHECK(rank.decide(of_size(65536)).decision == nvls);
    // A trial is nothing to take over.
    CHECK(rank.decide(of_size(32768)).decision == tree);
  }
}

TEST_CASE("A key without a place takes what holds at the nearest size as well", "[nearest_size]") {
  Rank rank(0);
  static_cast<void>(rank.decide(of_size(65536)));
  rank.install(of_size(65536), 1, {}, ring);
  static_cast<void>(rank.decide(of_size(65536)));
  LeaseKey other = of_size(32768);
  for (std::uint64_t communicator = 1000; communicator < 1000 + 2 * LeaseTable::capacity;
       ++communicator) {
    static_cast<void>(rank.decide(of_size(65536, communicator)));
  }
  const Grant grant = rank.decide(other);
  CHECK_FALSE(grant.is_counted);
  CHECK(grant.decision == ring);
}

TEST_CASE("Ranks that learn of leases at other times take the same at the nearest size",
          "[nearest_size]") {
  // Rank 1 is told each lease as late as it may be, and its table is full of other communicators.
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Rank early(0), late(5000);
    for (std::uint64_t other = 0; other < random() % 600; ++other)
      static_cast<void>(late.decide(of_size(65536, 100000 + other)));
    struct Due {
      Lease lease;
      bool told = false;
    };
    std::vector<Due> due;
    std::map<std::uint64_t, std::uint64_t> made;
    std::uint64_t epoch = 0;
    for (int step = 0; step < 400; ++step) {
      const LeaseKey at = of_size(std::uint64_t{1024} << random() % 8);
      if (random() % 20 == 0 && made[at.bytes] > 0 &&
          std::none_of(due.begin(), due.end(), [&](const Due& one) {
            return one.lease.key.bytes == at.bytes && !one.told;
          })) {
        Lease lease{at, ++epoch, made[at.bytes] + random() % 4, {}, {}, 1};
        for (std::size_t spans = random() % 3; spans > 0; --spans)
          lease.spans.push_back({random() % 2 == 0 ? ring : nvls, 1, 1});
        lease.afterwards = random() % 3 == 0 ? Decision() : random() % 2 == 0 ? ring : tree;
        Lease own = lease;
        own.key = early.here(at);
        if (early.table().prepare(own) == LeaseTable::Refusal::None) {
          REQUIRE(early.table().commit(epoch).late == 0);
          due.push_back({lease, false});
        }
      }
      for (Due& one : due) {
        if (one.told || one.lease.key.bytes != at.bytes ||
            one.lease.first_decision > made[at.bytes]) {
          continue;
        }
        Lease own = one.lease;
        own.key = late.here(at);
        one.told = late.table().prepare(own) == LeaseTable::Refusal::None;
        if (one.told) REQUIRE(late.table().commit(own.epoch).late == 0);
      }
      const Grant first = early.decide(at);
      const Grant second = late.decide(at);
      ++made[at.bytes];
      // A key for which it has no place cannot be leased there, so no planner would have.
      if (first.is_counted != second.is_counted) break;
      REQUIRE(first.decision == second.decision);
      REQUIRE(first.is_nearest == second.is_nearest);
    }
  }
}
