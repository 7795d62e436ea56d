// Kernels that every rank decides on by itself, beside collectives that all decide on.
#include "catch.hpp"
#include "several_ranks.hpp"

namespace contextune::tests {
namespace {

void add_collective(SeveralRanks& ranks, const std::string& name) {
  ranks.add(name, std::vector(ranks.ranks.size(), std::vector<double>{4e-3, 1e-3, 2e-3}));
  for (auto& rank : ranks.ranks) rank->sites.back().decisions = 1;
}

TEST_CASE("with scope local every rank has the winners of its own kernels, and asks nobody") {
  for (const bool live : {false, true}) {
    SeveralRanks ranks(2, ancestor(0, 2), Scope::Local);
    ranks.add("kernel", {{4, 1, 3}, {4, 3, 1}});
    for (int entry = 0; entry < 30; ++entry)
      for (auto& rank : ranks.ranks)
        if (!rank->tuning.finished()) rank->entry(live);
    REQUIRE(ranks.all_finished());
    CHECK(ranks[0].winner(0) == 1);
    CHECK(ranks[1].winner(0) == 2);
    CHECK(ranks.meeting.num_decided() == 0);
    for (auto& rank : ranks.ranks) {
      CHECK(rank->recorder.syncs.empty());
      REQUIRE(rank->recorder.winners.size() == 1);
      CHECK(rank->recorder.winners[0].site == 0);
    }
  }
}

TEST_CASE("kernels of scope local are tuned on a rank that no other answers") {
  SeveralRanks ranks(2, ancestor(0, 2), Scope::Local);
  ranks.add("kernel", {{4, 1}, {4, 1}});
  add_collective(ranks, "all_gather");
  ranks.meeting.lose(1);
  for (int entry = 0; entry < 3000 && !ranks[0].tuning.finished(); ++entry) ranks[0].entry(true);
  REQUIRE(ranks[0].tuning.finished());
  CHECK(ranks[0].winner(0) == 1);
  CHECK(ranks[0].winner(1) == 0);
  CHECK(ranks[0].decisions.leases == 0);
  CHECK(ranks[0].recorder.count(FallbackReason::NoAgreement) == 1);
}

TEST_CASE("live, collectives beside kernels of scope local are tuned by all ranks together") {
  // The ranks' kernels take another number of passes: they come to the collectives at other times.
  SeveralRanks ranks(2, ancestor(1, 2), Scope::Local);
  ranks.add("kernel", {{4e-3, 1e-3, 3e-3}, {4e-3, 3e-3}});
  add_collective(ranks, "all_gather");
  ranks.add("late", {{4e-3, 1e-3}, {1e-3, 4e-3}});
  for (auto& rank : ranks.ranks)
    rank->sites.back().when = [](std::uint64_t entry) { return entry > 12; };
  for (int entry = 0; entry < 600; ++entry)
    for (auto& rank : ranks.ranks) rank->entry(true);
  REQUIRE(ranks.all_finished());
  CHECK(ranks[0].decisions.told("all_gather") == ranks[1].decisions.told("all_gather"));
  for (auto& rank : ranks.ranks) {
    CHECK(rank->decisions.late == std::vector<std::string>{});
    CHECK(rank->decisions.told("all_gather").back() == 1);
    CHECK(rank->winner(1) == 1);
  }
  CHECK(ranks[0].winner(0) == 1);
  CHECK(ranks[1].winner(0) == 1);
  CHECK(ranks[0].winner(2) == 1);
  CHECK(ranks[1].winner(2) == 0);
}

TEST_CASE("a repeated body with collectives is repeated alike on all ranks, whatever the scope") {
  SeveralRanks ranks(2, ancestor(1, 2), Scope::Local);
  ranks.add("kernel", {{4e-3, 1e-3, 3e-3}, {4e-3, 3e-3, 2e-3}});
  add_collective(ranks, "all_gather");
  ranks.run();
  CHECK(ranks[0].decisions.told("all_gather") == ranks[1].decisions.told("all_gather"));
  CHECK(ranks[0].entries == ranks[1].entries);
  for (auto& rank : ranks.ranks) {
    CHECK(rank->winner(0) == 1);
    CHECK(rank->winner(1) == 1);
  }
}

}  // namespace
}  // namespace contextune::tests
