// Kernels that every rank decides on by itself, beside collectives that all decide on.
#include <array>

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

TEST_CASE("with scope auto all ranks have the winners that they found together") {
  SeveralRanks ranks(2, ancestor(0, 2), Scope::Auto);
  // Each rank alone would take another one.
  ranks.add("kernel", {{4, 1, 2}, {4, 3, 2}});
  ranks.run();
  for (std::size_t rank = 0; rank < 2; ++rank) CHECK(ranks[rank].winner(0) == 2);
  require_same_passes(ranks);
}

TEST_CASE("with scope auto a rank that no other answers tunes its kernels by itself") {
  for (const bool live : {false, true}) {
    SeveralRanks ranks(2, ancestor(0, 2), Scope::Auto);
    ranks.add("kernel", {{4, 1}, {4, 1}});
    if (live) add_collective(ranks, "all_gather");
    ranks.meeting.lose(1);
    for (int entry = 0; entry < 3000 && !ranks[0].tuning.finished(); ++entry) ranks[0].entry(live);
    REQUIRE(ranks[0].tuning.finished());
    CHECK(ranks[0].winner(0) == 1);
    CHECK(ranks[0].winner(1) == 0);
    CHECK(ranks[0].decisions.leases == 0);
    REQUIRE(ranks[0].recorder.count(FallbackReason::NoAgreement) == 1);
    CHECK(ranks[0].recorder.fallbacks[0].text ==
          "With --scope auto this rank tunes its kernels and functions by itself, and collectives "
          "keep their default: a rank was lost.");
  }
}

TEST_CASE("with scope auto a rank that loses the others in mid-tuning goes on by itself") {
  for (const int passes : {1, 3, 5}) {
    SeveralRanks ranks(2, ancestor(0, 2), Scope::Auto);
    ranks.add("kernel", {{4, 1, 3}, {4, 3, 1}});
    for (int pass = 0; pass < passes; ++pass)
      for (int tries = 0; tries < 2; ++tries)
        for (auto& rank : ranks.ranks) rank->entry(false);
    ranks.meeting.lose(1);
    for (int entry = 0; entry < 100 && !ranks[0].tuning.finished(); ++entry) ranks[0].entry(false);
    REQUIRE(ranks[0].tuning.finished());
    CHECK(ranks[0].winner(0) == 1);
  }
}

TEST_CASE("with scope auto what is repeated and waits for other ranks runs its default") {
  for (const bool has_collective : {false, true}) {
    SeveralRanks ranks(2, ancestor(0, 2), Scope::Auto);
    ranks.add("kernel", {{4, 1}, {4, 1}});
    if (has_collective) {
      add_collective(ranks, "all_gather");
      for (int tries = 0; tries < 3; ++tries)
        for (auto& rank : ranks.ranks) rank->entry(false);
    } else {
      ranks[0].tuning.ranks().repeat_together({});
    }
    ranks.meeting.lose(1);
    for (int entry = 0; entry < 100 && !ranks[0].tuning.finished(); ++entry) ranks[0].entry(false);
    REQUIRE(ranks[0].tuning.finished());
    CHECK(ranks[0].winner(0) == 0);
    REQUIRE(ranks[0].recorder.count(FallbackReason::NoAgreement) == 1);
    CHECK(ranks[0].recorder.fallbacks[0].text ==
          "All sites run their default, because what is repeated waits for other ranks: a rank was "
          "lost.");
  }
}

TEST_CASE("what one rank alone repeats is tuned by it, and asks nobody") {
  SeveralRanks ranks(2, ancestor(0, 2), Scope::Auto);
  ranks.add("kernel", {{4, 1, 3}, {4, 3, 1}});
  for (std::uint32_t own = 0; own < 2; ++own) {
    RegionTuning& tuning = ranks[own].tuning;
    for (int entry = 0; entry < 100 && !tuning.finished(); ++entry) {
      tuning.ranks().repeat_together(std::array{own});
      CHECK(tuning.ranks().is_alone());
      ranks[own].entry(false);
    }
    REQUIRE(tuning.finished());
    CHECK(ranks[own].winner(0) == own + 1);
    CHECK(ranks[own].recorder.fallbacks.empty());
  }
  CHECK(ranks.meeting.num_decided() == 0);
}

TEST_CASE("what named ranks repeat waits for no other rank") {
  for (const Scope scope : {Scope::Auto, Scope::Global}) {
    SeveralRanks ranks(3, ancestor(0, 2), scope);
    ranks.add("kernel", {{4, 1, 2}, {4, 3, 2}, {4, 1, 8}});
    for (int entry = 0; entry < 300; ++entry) {
      for (const std::size_t rank : {0U, 1U}) {
        if (ranks[rank].tuning.finished()) continue;
        ranks[rank].tuning.ranks().repeat_together(std::array{0U, 1U});
        ranks[rank].entry(false);
      }
    }
    for (const std::size_t rank : {0U, 1U}) {
      REQUIRE(ranks[rank].tuning.finished());
      CHECK(ranks[rank].winner(0) == 2);
      CHECK(ranks[rank].recorder.fallbacks.empty());
    }
  }
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
  CHECK(ranks[0].rows.size() == ranks[1].rows.size());
  for (auto& rank : ranks.ranks) {
    CHECK(rank->winner(0) == 1);
    CHECK(rank->winner(1) == 1);
  }
}

}  // namespace
}  // namespace contextune::tests
