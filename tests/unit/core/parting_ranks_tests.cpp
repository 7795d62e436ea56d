// Ranks that part: for good, for a while, or because they will never run the same.
#include "catch.hpp"
#include "several_ranks.hpp"

namespace contextune::tests {
namespace {

/// One line of that reason on the rank, which names what is said.
void require_told(FakeRank& rank, const std::string& text) {
  REQUIRE(rank.recorder.count(FallbackReason::NoAgreement) == 1);
  INFO(rank.recorder.fallbacks.back().text);
  CHECK(rank.recorder.fallbacks.back().text.find(text) != std::string::npos);
}

TEST_CASE("a rank that leaves is waited for by nobody, and each log says why it left") {
  for (const bool live : {false, true}) {
    for (const int after : {0, 1, 3, 5, 9}) {
      INFO("live " << live << ", after " << after);
      SeveralRanks ranks(3, ancestor(1, 2));
      ranks.add("kernel", std::vector(3, std::vector<double>{4, 3, 1}));
      for (int round = 0; round < after; ++round)
        for (auto& rank : ranks.ranks) rank->entry(live);
      ranks[1].tuning.ranks().leave("the body was left early");
      for (int round = 0; round < 60; ++round)
        for (const std::size_t rank : {0U, 2U})
          if (!ranks[rank].tuning.finished()) ranks[rank].entry(live);
      CHECK(ranks.meeting.num_waits() == 0);
      for (const std::size_t rank : {0U, 2U}) {
        REQUIRE(ranks[rank].tuning.finished());
        CHECK(ranks[rank].winner(0) == 0);
        require_told(ranks[rank], "the body was left early");
      }
      require_same_passes(ranks);
    }
  }
}

TEST_CASE("a rank that leaves once there are winners costs nobody theirs") {
  SeveralRanks ranks(2, ancestor(0, 2));
  ranks.add("kernel", {{4, 1}, {4, 1}});
  ranks.run();
  ranks[1].tuning.ranks().leave("its winners are wrong");
  for (int entry = 0; entry < 20; ++entry) ranks[0].entry(true);
  CHECK(ranks[0].winner(0) == 1);
  CHECK(ranks[0].recorder.count(FallbackReason::NoAgreement) == 0);
}

TEST_CASE("a rank that leaves after its vote keeps what was agreed on about collectives") {
  SeveralRanks ranks(2, ancestor(1, 2));
  ranks.add("all_gather", {{4e-3, 1e-3}, {4e-3, 1e-3}});
  for (auto& rank : ranks.ranks) rank->sites.back().decisions = 2;
  for (int round = 0; round < 400; ++round) {
    for (auto& rank : ranks.ranks) rank->entry(true);
    if (round == 9) ranks.meeting.withhold = true;
    if (round == 10) ranks[1].tuning.ranks().leave("it has had enough");
    if (round == 10) ranks.meeting.withhold = false;
    if (round > 10) continue;
  }
  for (auto& rank : ranks.ranks) CHECK(rank->decisions.late == std::vector<std::string>{});
  const auto& first = ranks[0].decisions.told("all_gather");
  const auto& second = ranks[1].decisions.told("all_gather");
  CHECK(first == second);
}

TEST_CASE("live, ranks with other options are told so once") {
  SeveralRanks ranks(2, ancestor(0, 2));
  ranks.ranks[1] = std::make_unique<FakeRank>(ranks.meeting, 1, 2, ancestor(0, 3));
  ranks.add("kernel", {{4, 1}, {4, 1}});
  for (int entry = 0; entry < 300; ++entry)
    for (auto& rank : ranks.ranks) rank->entry(true);
  for (auto& rank : ranks.ranks) {
    CHECK(rank->tuning.finished());
    require_told(*rank, "rank 1 has other options");
    CHECK(rank->recorder.syncs.size() == 1);
  }
}

TEST_CASE("ranks in other modes tune nothing, and are told which is in which") {
  for (const std::size_t live : {0U, 1U}) {
    SeveralRanks ranks(2, ancestor(0, 2));
    ranks.add("kernel", {{4, 1}, {4, 1}});
    for (int entry = 0; entry < 300; ++entry)
      for (std::size_t rank = 0; rank < 2; ++rank)
        if (!ranks[rank].tuning.finished()) ranks[rank].entry(rank == live);
    CHECK(ranks.meeting.num_waits() == 0);
    for (auto& rank : ranks.ranks) {
      CHECK(rank->winner(0) == 0);
      require_told(*rank, "rank " + std::to_string(live) + " tunes it live");
    }
  }
}

TEST_CASE("a rank that pauses is waited for by nobody until it goes on, and then all go on") {
  for (const int after : {1, 2, 3, 4, 7}) {
    for (const bool asks : {false, true}) {
      INFO("after " << after << ", while it asks " << asks);
      SeveralRanks ranks(3, ancestor(1, 2));
      ranks.add("kernel", std::vector(3, std::vector<double>{4, 3, 1}));
      for (int round = 0; round < after; ++round)
        for (auto& rank : ranks.ranks) rank->entry(false);
      if (asks) ranks[1].entry(false);
      ranks[1].tuning.ranks().pause();
      ranks[1].tuning.ranks().pause();
      // The others run what was given to all, and then have no pass until it is there again.
      for (const std::size_t rank : {0U, 2U}) {
        for (int more = 0; more < 40 && ranks[rank].waiting != Waiting::Pause; ++more)
          ranks[rank].entry(false);
        for (const std::size_t other : {0U, 2U}) ranks[other].entry(false);
      }
      CHECK(ranks.meeting.num_waits() == 0);
      CHECK_FALSE(ranks[0].tuning.finished());
      CHECK_FALSE(ranks[2].tuning.finished());
      ranks.run();
      for (auto& rank : ranks.ranks) {
        CHECK(rank->winner(0) == 2);
        CHECK(rank->recorder.count(FallbackReason::NoAgreement) == 0);
      }
      require_same_passes(ranks);
    }
  }
}

TEST_CASE(
    "a rank without memory for what was agreed on takes it in before the collective is made") {
  SeveralRanks ranks(2, ancestor(1, 2));
  ranks.add("all_gather", {{4e-3, 3e-3, 1e-3}, {4e-3, 3e-3, 1e-3}});
  ranks.add("all_reduce", {{4e-3, 1e-3}, {4e-3, 1e-3}});
  for (auto& rank : ranks.ranks)
    for (auto& site : rank->sites) site.decisions = 1;
  int failures = 0;
  for (int round = 0; round < 400; ++round) {
    if (round % 7 == 0) ranks[1].decisions.no_memory = 1;
    for (auto& rank : ranks.ranks) {
      try {
        rank->entry(true);
      } catch (const std::bad_alloc&) {
        ++failures;  // nothing of the entry has run
        rank->entry(true);
      }
    }
  }
  CHECK(failures + ranks[1].decisions.out_of_memory > 0);
  for (const char* name : {"all_gather", "all_reduce"})
    CHECK(ranks[0].decisions.told(name) == ranks[1].decisions.told(name));
  for (auto& rank : ranks.ranks) CHECK(rank->decisions.late == std::vector<std::string>{});
}

}  // namespace
}  // namespace contextune::tests
