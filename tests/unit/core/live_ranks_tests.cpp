// Ranks whose programs make the entries, each at its own time.
#include <random>

#include "catch.hpp"
#include "several_ranks.hpp"
#include "tests/case_step.hpp"

namespace contextune::tests {
namespace {

TEST_CASE("live, no rank waits for one that is behind, and batches begin at the same entry") {
  for (const int behind : {0, 1, 50}) {
    INFO(behind << " entries behind");
    SeveralRanks ranks(2, ancestor(1, 2));
    ranks.add("kernel", {{4e-3, 3e-3, 1e-3}, {4e-3, 3e-3, 1e-3}});
    std::map<std::uint64_t, std::uint64_t> entry_of_pass[2];
    for (int round = 0; round < 5000 && !ranks.all_finished(); ++round) {
      for (std::size_t rank = 0; rank < 2; ++rank) {
        if (rank == 1 && round < behind) continue;
        const auto before = ranks[rank].ran.size();
        ranks[rank].entry(true);
        if (ranks[rank].ran.size() > before)
          entry_of_pass[rank][ranks[rank].ran.rbegin()->first] = ranks[rank].num_entries;
      }
    }
    REQUIRE(ranks.all_finished());
    CHECK(entry_of_pass[0] == entry_of_pass[1]);
    if (behind == 0) CHECK(ranks.meeting.num_waits() == 0);
    CHECK(ranks[0].winner(0) == 2);
    CHECK(ranks[1].winner(0) == 2);
    require_same_passes(ranks);
  }
}

TEST_CASE(
    "live, ranks go on asking as long as one of them may be late, however quick entries are") {
  constexpr int behind = 20000;
  for (const double entry_seconds : {1e-6, 1e-3}) {
    INFO("entries of " << entry_seconds << " s");
    SeveralRanks ranks(2, ancestor(1, 2));
    ranks.add("kernel", {{4 * entry_seconds, entry_seconds}, {4 * entry_seconds, entry_seconds}});
    for (auto& rank : ranks.ranks) rank->region_time = [=](const auto&) { return entry_seconds; };
    for (int entry = 0; entry < behind; ++entry) ranks[0].entry(true);
    const bool too_late = behind * entry_seconds > 5;
    CHECK(ranks[0].tuning.finished() == too_late);
    for (int round = 0; round < 40 * behind && !ranks.all_finished(); ++round)
      for (auto& rank : ranks.ranks) rank->entry(true);
    REQUIRE(ranks.all_finished());
    for (auto& rank : ranks.ranks) CHECK(rank->winner(0) == (too_late ? 0 : 1));
  }
}

TEST_CASE("live, results are asked for between batches only, where all ranks are at one entry") {
  SeveralRanks ranks(2, ancestor(1, 4));
  ranks.add("kernel", {{4e-3, 3e-3, 1e-3}, {4e-3, 3e-3, 1e-3}});
  std::set<std::uint64_t> asked_at[2];
  for (int round = 0; round < 500 && !ranks.all_finished(); ++round) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const bool wanted = ranks[rank].tuning.wants_results();
      const auto before = ranks[rank].ran.size();
      ranks[rank].entry(true);
      if (ranks[rank].ran.size() > before && wanted)
        asked_at[rank].insert(ranks[rank].ran.rbegin()->first);
    }
  }
  REQUIRE(ranks.all_finished());
  CHECK(asked_at[0] == asked_at[1]);
  CHECK(asked_at[0].size() <= ranks.meeting.num_decided());
  CHECK(ranks[0].ran.size() > asked_at[0].size());
}

TEST_CASE("live, a program that ends before the others came has it said why, once") {
  SeveralRanks ranks(2, ancestor(1, 2));
  ranks.add("kernel", {{4e-3, 1e-3}, {4e-3, 1e-3}});
  ranks[0].tuning.explain_unfinished();
  for (int entry = 0; entry < 20; ++entry) ranks[0].entry(true);
  REQUIRE(ranks[0].recorder.count(FallbackReason::NoAgreement) == 0);
  ranks[0].tuning.explain_unfinished();
  ranks[0].tuning.explain_unfinished();
  REQUIRE(ranks[0].recorder.count(FallbackReason::NoAgreement) == 1);
  CHECK(ranks[0].recorder.fallbacks[0].text.find("was entered again before all had spoken") !=
        std::string::npos);
  for (int entry = 0; entry < 200; ++entry)
    for (auto& rank : ranks.ranks) rank->entry(true);
  CHECK(ranks.all_finished());
}

TEST_CASE("live, a decision that was not committed is issued again as it was") {
  SeveralRanks ranks(2, ancestor(1, 2));
  ranks.add("kernel", {{4e-3, 3e-3, 1e-3}, {4e-3, 3e-3, 1e-3}});
  ranks.meeting.unlucky_questions = {0, 2, 3};
  for (int round = 0; round < 2000 && !ranks.all_finished(); ++round)
    for (auto& rank : ranks.ranks) rank->entry(true);
  REQUIRE(ranks.all_finished());
  CHECK(ranks[0].ran == ranks[1].ran);
  CHECK(ranks[0].ran.size() == 9);
  CHECK(ranks[0].winner(0) == 2);
}

TEST_CASE("whatever the order of entries, late results and losses, ranks run the same or default") {
  for (std::uint32_t seed = 0; seed < 300; seed += case_step) {
    std::mt19937 engine(seed);
    const auto draw = [&] { return static_cast<std::uint32_t>(engine()); };
    INFO("seed " << seed);
    const std::uint32_t num_ranks = 2 + draw() % 4;
    const bool live = draw() % 2 == 0;
    TuningOptions options;
    options.n_warmup = static_cast<int>(draw() % 3);
    options.n_repeat = 1 + static_cast<int>(draw() % 3);
    options.refine = draw() % 2 == 0;
    options.result_patience_seconds = 0;
    SeveralRanks ranks(num_ranks, options);
    const std::uint32_t num_sites = 1 + draw() % 4;
    for (std::uint32_t site = 0; site < num_sites; ++site) {
      const std::size_t num_configs = 1 + draw() % 4;
      std::vector<std::vector<double>> seconds(num_ranks);
      for (auto& row : seconds)
        for (std::size_t config = 0; config < num_configs; ++config)
          row.push_back(1e-4 * (1 + draw() % 50));
      ranks.add("kernel-" + std::to_string(site), seconds);
    }
    for (auto& rank : ranks.ranks) {
      rank->lag = live ? draw() % 4 : 0;
      for (auto& site : rank->sites) {
        if (draw() % 8 == 0) site.failing.insert(1 + draw() % 3);
        if (draw() % 5 == 0)
          site.when = [from = draw() % 60](std::uint64_t entry) { return entry >= from; };
      }
      if (draw() % 6 == 0) rank->sites.pop_back();
    }
    const std::uint64_t loss = draw() % 3 == 0 ? draw() % 400 : ~0ULL;
    const std::uint32_t lost = draw() % num_ranks;
    std::uint64_t stuck = 0;
    for (std::uint64_t step = 0; step < 400000 && !ranks.all_finished(); ++step) {
      if (step == loss) ranks.meeting.lose(lost);
      FakeRank& rank = *ranks.ranks[draw() % num_ranks];
      if (!live && rank.tuning.finished()) continue;
      // A rank that asks about what only it has is alone.
      if (!rank.entry(live) && rank.waiting == Waiting::Ranks && ++stuck % 2000 == 0)
        rank.tuning.ranks().await();
    }
    REQUIRE(ranks.all_finished());
    require_same_passes(ranks);
    for (std::size_t rank = 1; rank < num_ranks; ++rank) {
      for (std::size_t site = 0; site < ranks[rank].sites.size(); ++site) {
        if (site >= ranks[0].sites.size() || loss != ~0ULL) continue;
        const auto a = ranks[0].sites[site].index;
        const auto b = ranks[rank].sites[site].index;
        if (a == no_site || b == no_site) continue;
        CHECK(ranks[0].winner(a) == ranks[rank].winner(b));
      }
    }
  }
}

}  // namespace
}  // namespace contextune::tests
