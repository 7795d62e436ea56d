// Trials that take too long, or do not end.
#include "catch.hpp"
#include "fake_region.hpp"
#include "several_ranks.hpp"

namespace contextune::tests {
namespace {

TuningOptions with_timeout(TuningOptions options, double seconds) {
  options.trial_timeout = seconds;
  return options;
}

TEST_CASE("a config that takes longer than trial_timeout is never chosen, and the tuning goes on") {
  FakeRegion region(with_timeout(ancestor(0, 2), 5));
  region.sites.push_back({"slow", {8, 6, 7}});
  region.sites.push_back({"fast", {4, 3, 2}});
  region.run();
  CHECK(region.winner(0) == 0);
  CHECK(region.winner(1) == 2);
  CHECK(region.recorder.count(FallbackReason::TrialTimeout) == 2);
  CHECK(region.tuning.progress().passes == 6);
}

TEST_CASE("a config in whose place another ran is not blamed for the time that it took") {
  TuningOptions options = with_timeout(ancestor(0, 2), 5);
  options.confirm = GENERATE(false, true);
  FakeRegion region(options);
  region.sites.push_back({.name = "kernel", .seconds = {8, 4, 3}, .replaced = {1}});
  region.run();
  CHECK(region.winner(0) == 2);
  CHECK(region.recorder.count(FallbackReason::TrialTimeout) == 0);
}

TEST_CASE("a config too slow in one pass all together is timed out, however short each launch") {
  FakeRegion region(with_timeout(ancestor(0, 2), 5));
  region.sites.push_back({.name = "often", .seconds = {1, 0.9, 0.7}, .launches = 6});
  region.run();
  CHECK(region.winner(0) == 2);
  CHECK(region.recorder.count(FallbackReason::TrialTimeout) == 1);
}

TEST_CASE(
    "a trial over trial_timeout on one rank costs it everywhere, and each log names the rank") {
  SeveralRanks ranks(3, with_timeout(ancestor(0, 2), 5));
  ranks.add("kernel", {{4, 1, 3}, {4, 9, 3}, {4, 1, 3}});
  ranks.run();
  for (std::size_t rank = 0; rank < 3; ++rank) {
    CHECK(ranks[rank].winner(0) == 2);
    REQUIRE(ranks[rank].recorder.count(FallbackReason::TrialTimeout) == 1);
    CHECK(ranks[rank].recorder.fallbacks[0].text.find("rank 1") != std::string::npos);
  }
  require_same_passes(ranks);
}

TEST_CASE("a pass that does not end stops the search with what it knows") {
  FakeRegion region(with_timeout(ancestor(0, 2), 5));
  region.sites.push_back({"early", {4, 1}});
  region.sites.push_back({"late", {4, 3, 1}});
  region.lost_passes = {4, 5};
  for (int entry = 0; entry < 7; ++entry) region.entry();
  region.tuning.overrun(40);
  CHECK(region.tuning.finished());
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 1);
  REQUIRE(region.recorder.count(FallbackReason::TrialTimeout) == 2);
  CHECK(region.recorder.fallbacks[0].text.find("Config 2 of 'late' had not ended") == 0);
}

TEST_CASE("where several configs are under way in a pass that does not end, none is blamed") {
  FakeRegion region(with_timeout(ancestor(0, 2), 5));
  region.sites.push_back({"one", {4, 1, 3}});
  region.sites.push_back({"other", {4, 3, 1}});
  region.lost_passes = {2, 3};
  for (int entry = 0; entry < 4; ++entry) region.entry();
  region.tuning.overrun(40);
  CHECK(region.tuning.finished());
  REQUIRE(region.recorder.count(FallbackReason::TrialTimeout) == 1);
  CHECK(region.recorder.fallbacks[0].text.find("under way is blamed for it yet") !=
        std::string::npos);
  // What was not measured is as if it had not been tried.
  for (const TrialEvent& trial : region.recorder.trials)
    CHECK((trial.config == 0 && trial.status == TrialStatus::Measured));
}

TEST_CASE("where a pass does not end on one rank, all keep the winners so far, the same ones") {
  for (const std::size_t hanging : {0U, 1U}) {
    SeveralRanks ranks(2, with_timeout(ancestor(0, 2), 5));
    ranks.add("early", {{4, 1}, {4, 1}});
    ranks.add("late", {{4, 3, 1}, {4, 3, 1}});
    // Its work of pass 4 does not end: none of the results come from then on.
    for (int round = 0; round < 200 && !ranks.all_finished(); ++round) {
      for (std::size_t r = 0; r < 2; ++r) {
        FakeRank& rank = ranks[r];
        if (rank.tuning.finished()) continue;
        const bool hangs = r == hanging && rank.ran.contains(4);
        rank.lag = r == hanging && rank.ran.contains(3) ? 100 : 0;
        if (!hangs) {
          rank.entry(false);
          continue;
        }
        rank.results.clear();
        rank.tuning.overrun(rank.now + 40);
        (void)rank.tuning.begin_pass(rank.next_pass(), rank.now + 40, false);
      }
    }
    REQUIRE(ranks.all_finished());
    for (std::size_t r = 0; r < 2; ++r) {
      CHECK(ranks[r].winner(0) == 1);
      CHECK(ranks[r].winner(1) == 1);
      CHECK(ranks[r].recorder.count(FallbackReason::NoAgreement) == 0);
      REQUIRE(ranks[r].recorder.count(FallbackReason::TrialTimeout) == 2);
      const std::string& text = ranks[r].recorder.fallbacks[0].text;
      CHECK(text.find("Config 2 of 'late' had not ended") == 0);
      CHECK(text.find("rank " + std::to_string(hanging)) != std::string::npos);
    }
  }
}

TEST_CASE("a pass that one rank cannot make is made by none, and that rank's trial is to blame") {
  for (const std::size_t late : {0U, 1U}) {
    SeveralRanks ranks(2, with_timeout(ancestor(0, 2), 5));
    ranks.add("early", {{4, 1}, {4, 1}});
    ranks.add("late", {{4, 3, 1}, {4, 3, 1}});
    // When all come to pass 5, the work of pass 4 has not ended on one of them.
    std::size_t met = 0;
    for (int round = 0; round < 200 && !ranks.all_finished(); ++round) {
      for (std::size_t r = 0; r < 2; ++r) {
        FakeRank& rank = ranks[r];
        if (rank.tuning.finished()) continue;
        rank.lag = r == late && rank.ran.contains(3) ? 100 : 0;
        if (!rank.ran.contains(4) || met == 2) {
          rank.entry(false);
          continue;
        }
        const PassPlan plan = rank.tuning.begin_pass(rank.next_pass(), rank.now, false);
        REQUIRE(plan.counted);
        CHECK(plan.agreed);
        CHECK(plan.number == 5);
        ++met;
        if (r == late) {
          rank.results.clear();
          rank.tuning.overrun(rank.now + 40);
        } else {
          rank.tuning.ranks().cut_short();
        }
      }
    }
    REQUIRE(ranks.all_finished());
    for (std::size_t r = 0; r < 2; ++r) {
      CHECK_FALSE(ranks[r].ran.contains(5));
      CHECK(ranks[r].winner(0) == 1);
      CHECK(ranks[r].winner(1) == 1);
      REQUIRE(ranks[r].recorder.count(FallbackReason::TrialTimeout) > 0);
      const std::string& text = ranks[r].recorder.fallbacks[0].text;
      CHECK(text.find("rank " + std::to_string(late)) != std::string::npos);
    }
  }
}

TEST_CASE("a rank alone shares its passes with nobody") {
  SeveralRanks ranks(1, ancestor(0, 2));
  ranks.add("kernel", {{4, 1}});
  CHECK(ranks[0].tuning.ranks().lockstep() == nullptr);
  (void)ranks[0].entry(false);
  CHECK_FALSE(ranks[0].tuning.begin_pass(ranks[0].next_pass(), ranks[0].now, false).agreed);
}

}  // namespace
}  // namespace contextune::tests
