// Leases as getCollInfo reads them, one thread at a time.
#include <memory>
#include <vector>

#include "catch.hpp"
#include "cells.hpp"
#include "collective/lease_table.hpp"

using namespace contextune::collective;

namespace {

using Refusal = LeaseTable::Refusal;

LeaseKey key_of(std::uint64_t communicator) {
  return {communicator, 65536, 1, Function::AllReduce, 0};
}
const LeaseKey key = key_of(100);

Lease lease_of(std::uint64_t epoch, std::uint64_t first_decision, std::vector<LeaseSpan> spans,
               Decision afterwards = {}) {
  return {
      key, epoch, first_decision, std::move(spans), afterwards, afterwards.is_default() ? 0U : 9U};
}

/// A table in which the key has had some decisions.
class Table {
 public:
  explicit Table(int decisions = 0) {
    for (int i = 0; i < decisions; ++i) static_cast<void>(decide());
  }
  Grant decide() { return table_->decide(key); }
  void install(const Lease& lease) {
    REQUIRE(table_->prepare(lease) == Refusal::None);
    const auto committed = table_->commit(lease.epoch);
    CHECK(committed.leases == 1);
    CHECK(committed.late == 0);
  }
  LeaseTable* operator->() { return table_.get(); }

 private:
  std::unique_ptr<LeaseTable> table_ = std::make_unique<LeaseTable>();
};

}  // namespace

TEST_CASE("Without a lease decisions are counted and are the default", "[lease_table]") {
  Table table;
  for (std::uint64_t n = 0; n < 5; ++n) {
    const Grant grant = table.decide();
    CHECK(grant.decision.is_default());
    CHECK(grant.is_counted);
    CHECK(grant.number == n);
    CHECK(grant.epoch == 0);
  }
  CHECK(table->decisions(key) == 5);
  CHECK(table->decisions(key_of(101)) == 0);
}

TEST_CASE("A lease gives its spans in turn, and then the default", "[lease_table]") {
  Table table(1);
  table.install(lease_of(1, 1, {{{}, 0, 2}, {ring, 1, 3}, {tree, 2, 1}}));
  std::vector<std::uint32_t> configs;
  std::vector<Decision> decisions;
  for (int i = 0; i < 9; ++i) {
    const Grant grant = table.decide();
    CHECK(grant.epoch == 1);
    configs.push_back(grant.config);
    decisions.push_back(grant.decision);
  }
  CHECK(configs == std::vector<std::uint32_t>{0, 0, 1, 1, 1, 2, 0, 0, 0});
  CHECK(decisions == std::vector<Decision>{{}, {}, ring, ring, ring, tree, {}, {}, {}});
}

TEST_CASE("A winner is a lease without end", "[lease_table]") {
  Table table(1);
  table.install(lease_of(1, 1, {}, nvls));
  for (int i = 0; i < 1000; ++i) {
    const Grant grant = table.decide();
    REQUIRE(grant.decision == nvls);
    REQUIRE(grant.config == 9);
  }
}

TEST_CASE("A lease that was not committed is never seen", "[lease_table]") {
  Table table(1);
  REQUIRE(table->prepare(lease_of(1, 1, {{ring, 1, 100}}, tree)) == Refusal::None);
  CHECK(table.decide().decision.is_default());
  CHECK(table.decide().epoch == 0);
  // Nor when another epoch is committed.
  CHECK(table->commit(2).leases == 0);
  CHECK(table.decide().decision.is_default());
  CHECK(table->prepare(lease_of(2, 50, {})) == Refusal::Prepared);
}

TEST_CASE("A rank that lost its peers goes on by the lease, and then comes to the default",
          "[lease_table]") {
  Table table(1);
  table.install(lease_of(1, 1, {{ring, 1, 2}, {tree, 2, 2}}));
  table.decide();
  // The next lease was prepared, and nobody will ever say whether to commit it.
  REQUIRE(table->prepare(lease_of(2, 3, {}, nvls)) == Refusal::None);
  std::vector<Decision> decisions;
  for (int i = 0; i < 5; ++i) decisions.push_back(table.decide().decision);
  CHECK(decisions == std::vector<Decision>{ring, tree, tree, {}, {}});
}

TEST_CASE("What holds goes on until a later lease begins", "[lease_table]") {
  Table table(1);
  table.install(lease_of(1, 1, {{ring, 1, 2}}, tree));
  table.decide();
  table.install(lease_of(2, 5, {{nvls, 3, 1}}));
  std::vector<Decision> decisions;
  std::vector<std::uint64_t> epochs;
  for (int i = 0; i < 5; ++i) {
    const Grant grant = table.decide();
    decisions.push_back(grant.decision);
    epochs.push_back(grant.epoch);
  }
  CHECK(decisions == std::vector<Decision>{ring, tree, tree, nvls, {}});
  CHECK(epochs == std::vector<std::uint64_t>{1, 1, 1, 2, 2});
}

TEST_CASE("A first lease in the future leaves the default until it begins", "[lease_table]") {
  Table table(1);
  table.install(lease_of(1, 3, {{ring, 1, 1}}));
  std::vector<Decision> decisions;
  for (int i = 0; i < 4; ++i) decisions.push_back(table.decide().decision);
  CHECK(decisions == std::vector<Decision>{{}, {}, ring, {}});
}

TEST_CASE("Ranks with the same leases decide alike, wherever they are", "[lease_table]") {
  // Two ranks, of which one commits much later, but before the first decision of the lease.
  const std::vector<Lease> leases = {lease_of(1, 10, {{ring, 1, 7}, {{}, 0, 3}, {tree, 2, 5}}),
                                     lease_of(2, 30, {{nvls, 3, 4}}, tree),
                                     lease_of(3, 50, {}, ring)};
  Table early(1);
  Table late(1);
  std::vector<Decision> of_early;
  std::vector<Decision> of_late;
  for (std::uint64_t n = 1; n < 70; ++n) {
    for (const Lease& lease : leases) {
      // As soon as the one before has begun, and in the last moment.
      const std::uint64_t soon = lease.first_decision <= 10 ? 1 : lease.first_decision - 20;
      if (n == std::max<std::uint64_t>(soon, 1)) early.install(lease);
      if (n == lease.first_decision) late.install(lease);
    }
    of_early.push_back(early.decide().decision);
    of_late.push_back(late.decide().decision);
  }
  CHECK(of_early == of_late);
}

TEST_CASE("A lease that cannot be kept is refused before anyone commits it", "[lease_table]") {
  Table table(5);
  const std::vector<LeaseSpan> some = {{ring, 1, 10}};
  CHECK(table->prepare(lease_of(1, 4, some)) == Refusal::TooLate);
  CHECK(table->prepare(lease_of(0, 5, some)) == Refusal::OldEpoch);
  CHECK(table->prepare(lease_of(1, 5, {{ring, 1, 0}})) == Refusal::TooLong);
  CHECK(table->prepare(lease_of(
            1, 5, std::vector<LeaseSpan>(LeaseTable::max_spans + 1, LeaseSpan{ring, 1, 1}))) ==
        Refusal::TooLong);
  CHECK(table->prepare(lease_of(1, ~std::uint64_t{0}, some)) == Refusal::TooLong);
  Lease unknown = lease_of(1, 0, some);
  unknown.key = key_of(101);
  CHECK(table->prepare(unknown) == Refusal::UnknownKey);

  REQUIRE(table->prepare(lease_of(3, 8, some)) == Refusal::None);
  CHECK(table->prepare(lease_of(4, 9, some)) == Refusal::Prepared);
  CHECK(table->commit(3).leases == 1);
  CHECK(table->prepare(lease_of(4, 9, some)) == Refusal::NotBegun);
  for (int i = 0; i < 3; ++i) static_cast<void>(table.decide());
  CHECK(table->prepare(lease_of(3, 9, some)) == Refusal::OldEpoch);
  CHECK(table->prepare(lease_of(4, 9, some)) == Refusal::None);
}

TEST_CASE("A lease of as many spans as fit is kept to the last", "[lease_table]") {
  Table table(1);
  std::vector<LeaseSpan> spans;
  for (std::uint32_t i = 0; i < LeaseTable::max_spans; ++i) {
    spans.push_back({{true, {}, static_cast<std::uint8_t>(i % 64)}, i, 1 + i % 3});
  }
  const Lease lease = lease_of(1, 1, spans, nvls);
  table.install(lease);
  for (const LeaseSpan& span : spans) {
    for (std::uint32_t i = 0; i < span.decisions; ++i)
      REQUIRE(table.decide().config == span.config);
  }
  CHECK(table.decide().decision == nvls);
}

TEST_CASE("A lease that is committed too late is told, and kept from there on", "[lease_table]") {
  Table table(1);
  REQUIRE(table->prepare(lease_of(1, 2, {{ring, 1, 3}}, tree)) == Refusal::None);
  for (int i = 0; i < 3; ++i)
    CHECK(table.decide().decision.is_default());  // 1, and wrongly 2 and 3
  const auto committed = table->commit(1);
  CHECK(committed.leases == 1);
  CHECK(committed.late == 1);
  CHECK(table.decide().decision == ring);  // 4, as on the other ranks
  CHECK(table.decide().decision == tree);
}

TEST_CASE("Leases of one epoch are committed together", "[lease_table]") {
  Table table(1);
  static_cast<void>(table->decide(key_of(101)));
  Lease other = lease_of(1, 1, {}, tree);
  other.key = key_of(101);
  REQUIRE(table->prepare(lease_of(1, 1, {}, ring)) == Refusal::None);
  REQUIRE(table->prepare(other) == Refusal::None);
  CHECK(table->commit(1).leases == 2);
  CHECK(table.decide().decision == ring);
  CHECK(table->decide(key_of(101)).decision == tree);
}

TEST_CASE("Keys are told apart by all that they hold", "[lease_table]") {
  Table table(1);
  table.install(lease_of(1, 1, {}, ring));
  LeaseKey other = key;
  SECTION("communicator") {
    other.communicator = 101;
  }
  SECTION("bytes") {
    other.bytes = 65540;
  }
  SECTION("operations in the group") {
    other.operations = 2;
  }
  SECTION("kind") {
    other.kind = 1;
  }
  SECTION("function") {
    other.function = Function::Reduce;
  }
  const Grant grant = table->decide(other);
  CHECK(grant.decision.is_default());
  CHECK(grant.number == 0);
  CHECK(table.decide().decision == ring);
}

TEST_CASE("A key that finds no place stays untuned, and so does every later one", "[lease_table]") {
  Table table(1);
  table.install(lease_of(1, 1, {}, ring));
  bool was_full = false;
  std::vector<LeaseKey> counted;
  for (std::uint64_t communicator = 1000; communicator < 1000 + 2 * LeaseTable::capacity;
       ++communicator) {
    const Grant grant = table->decide(key_of(communicator));
    REQUIRE(grant.decision.is_default());
    if (was_full) REQUIRE_FALSE(grant.is_counted);
    was_full = was_full || !grant.is_counted;
    if (grant.is_counted) counted.push_back(key_of(communicator));
  }
  CHECK(was_full);
  CHECK(counted.size() > LeaseTable::capacity / 4);
  // Not even where a place has become free: other ranks may have counted its first decisions.
  table->forget(counted.front().communicator);
  CHECK_FALSE(table->decide(key_of(999'999)).is_counted);
  // Those that have a place are not touched by that.
  for (std::size_t i = 1; i < counted.size(); ++i) {
    REQUIRE(table->decide(counted[i]).number == 1);
  }
  CHECK(table.decide().decision == ring);
}

TEST_CASE("The places of a communicator that ended are used again, and begin anew",
          "[lease_table]") {
  LeaseTable& table = *std::make_unique<LeaseTable>().release();
  const std::unique_ptr<LeaseTable> owner(&table);
  // Many more than there are places, one after another.
  for (std::uint64_t communicator = 1; communicator <= 10 * LeaseTable::capacity; ++communicator) {
    Lease lease = lease_of(1, 1, {}, ring);
    lease.key = key_of(communicator);
    const Grant first = table.decide(lease.key);
    REQUIRE(first.is_counted);
    REQUIRE(first.number == 0);
    REQUIRE(table.prepare(lease) == Refusal::None);
    REQUIRE(table.commit(1).leases == 1);
    REQUIRE(table.decide(lease.key).decision == ring);
    table.forget(communicator);
    REQUIRE(table.decisions(lease.key) == 0);
  }
}

TEST_CASE("A communicator that ends takes no other with it", "[lease_table]") {
  Table table(1);
  table.install(lease_of(1, 1, {}, ring));
  static_cast<void>(table->decide(key_of(101)));
  table->forget(101);
  CHECK(table.decide().decision == ring);
  CHECK(table->decisions(key) == 2);
}

TEST_CASE("Every refusal has words for the log", "[lease_table]") {
  for (int refusal = 0; refusal <= static_cast<int>(Refusal::DecisionNow); ++refusal) {
    CHECK(text_of(static_cast<Refusal>(refusal)) != "unknown");
  }
}

TEST_CASE("A decision at the seat of a key is one of the key", "[lease_table]") {
  Table table(2);
  const LeaseTable::Seat seat = table->seat_of(key);
  const auto at_seat = [&] { return table->decide(seat, key, false); };
  CHECK(at_seat().number == 2);
  CHECK(table->decisions(key) == 3);
  table.install(lease_of(1, 3, {{ring, 7, 2}}, tree));
  CHECK(at_seat().is_trial);
  CHECK(table.decide().number == 4);
  const Grant last = at_seat();
  CHECK(last.number == 5);
  CHECK(last.is_counted);
  CHECK_FALSE(last.is_trial);
  CHECK(last.config == 9);
}

TEST_CASE("The seat of a communicator that has ended is nobody's", "[lease_table]") {
  Table table(2);
  const LeaseTable::Seat seat = table->seat_of(key);
  CHECK(table->is_taken(seat));
  table->forget(key.communicator);
  CHECK_FALSE(table->is_taken(seat));
  CHECK_FALSE(table->is_taken({}));
}
