// Collective sites: every rank is told the same config at the same decision, whatever happens.
#include <algorithm>
#include <random>

#include "catch.hpp"
#include "several_ranks.hpp"
#include "tests/case_step.hpp"

namespace contextune::tests {
namespace {

void add_collective(SeveralRanks& ranks, const std::string& name,
                    const std::vector<double>& seconds, std::uint32_t decisions) {
  ranks.add(name, std::vector(ranks.ranks.size(), seconds));
  for (auto& rank : ranks.ranks) rank->sites.back().decisions = decisions;
}

/// The longer one of two ranks has only made more decisions.
void require_lockstep(SeveralRanks& ranks, const std::string& name) {
  for (auto& rank : ranks.ranks) {
    CHECK(rank->decisions.late == std::vector<std::string>{});
    const auto& first = ranks[0].decisions.told(name);
    const auto& told = rank->decisions.told(name);
    const std::size_t both = std::min(first.size(), told.size());
    REQUIRE(
        std::equal(told.begin(), told.begin() + static_cast<std::ptrdiff_t>(both), first.begin()));
  }
}

TEST_CASE("a collective's winner is found among configs that all ranks are told at one decision") {
  for (const bool live : {false, true}) {
    for (const std::uint32_t decisions : {1U, 3U}) {
      INFO("live " << live << ", " << decisions << " decisions an entry");
      SeveralRanks ranks(3, ancestor(1, 2));
      add_collective(ranks, "all_gather", {4e-3, 3e-3, 1e-3, 2e-3}, decisions);
      ranks.add("kernel", std::vector(3, std::vector<double>{2e-3, 1e-3}));
      for (int round = 0; round < 3000 && !ranks.all_finished(); ++round)
        for (auto& rank : ranks.ranks)
          if (live || !rank->tuning.finished()) rank->entry(live);
      REQUIRE(ranks.all_finished());
      for (int after = 0; after < 20; ++after)
        for (auto& rank : ranks.ranks) rank->entry(true);
      require_lockstep(ranks, "all_gather");
      for (auto& rank : ranks.ranks) {
        CHECK(rank->decisions.told("all_gather").back() == 2);
        CHECK(rank->tuning.winners()[0] == 2);
        CHECK(rank->off_plan == 0);
        CHECK(rank->decisions.leases > 0);
      }
    }
  }
}

TEST_CASE("a communicator that is made after the winners is told them, at one decision") {
  for (const bool of_all : {true, false}) {
    SeveralRanks ranks(3, ancestor(1, 2));
    add_collective(ranks, "all_gather", {4e-3, 3e-3, 1e-3, 2e-3}, 2);
    for (int round = 0; round < 3000 && !ranks.all_finished(); ++round)
      for (auto& rank : ranks.ranks) rank->entry(true);
    REQUIRE(ranks.all_finished());
    const double tuning_seconds = ranks[0].tuning.progress().seconds;
    for (std::size_t rank = 0; rank < 3; ++rank)
      if (of_all || rank > 0) ranks[rank].decisions.communicator = 78;
    for (int after = 0; after < 300; ++after)
      for (auto& rank : ranks.ranks) rank->entry(true);
    if (of_all) {
      require_lockstep(ranks, "all_gather");
    } else {
      // Not all of its ranks are asked: nobody is told anything, and nobody asks for ever.
      CHECK(ranks[1].decisions.told("all_gather") == ranks[2].decisions.told("all_gather"));
    }
    for (auto& rank : ranks.ranks) {
      const auto& told = rank->decisions.told("all_gather");
      CHECK(rank->decisions.late == std::vector<std::string>{});
      if (of_all) CHECK(told.front() == 0);
      CHECK(told.back() == (of_all || rank->decisions.communicator == 77 ? 2 : 0));
      CHECK(rank->tuning.finished());
    }
    CHECK(ranks[0].tuning.progress().seconds == tuning_seconds);
    const std::size_t syncs = ranks[1].recorder.syncs.size();
    for (int after = 0; after < 60; ++after)
      for (auto& rank : ranks.ranks) rank->entry(true);
    CHECK(ranks[1].recorder.syncs.size() == syncs);
  }
}

TEST_CASE("a collective takes as long as in the slowest of its communicators") {
  LeasePlanner planner;
  const auto report = [](std::uint64_t communicator) {
    BatchReport said;
    said.standings.push_back({0, communicator, 2, 1, 0, 1, 1});
    return said;
  };
  const std::uint32_t ranks[] = {0, 1, 2, 3};
  const BatchReport reports[] = {report(7), report(7), report(8), report(8)};
  planner.hear(ranks, reports, 1);
  // Ranks 1 and 3 came last to theirs; that rank 0 waited long says nothing.
  const std::vector<SecondsOfRank> all{{0, 9.0}, {1, 2.0}, {2, 4.0}, {3, 3.0}};
  const std::vector<SecondsOfRank> some{{0, 9.0}, {1, 2.0}};
  CHECK(planner.cost(0, all) == 3.0);
  CHECK(planner.cost(0, some) == 2.0);
  CHECK(planner.cost(1, some) == 2.0);  // of no communicator that there is
}

TEST_CASE("of a collective the rank that waits least tells how long it takes") {
  SeveralRanks ranks(2, ancestor(0, 1));
  // Rank 1 comes late to the second config only, and rank 0 waits for it.
  ranks.add("all_reduce", {{4e-3, 9e-3, 3e-3}, {4e-3, 1e-3, 3e-3}});
  for (auto& rank : ranks.ranks) rank->sites.back().decisions = 1;
  ranks.run();
  CHECK(ranks[0].tuning.winners()[0] == 1);
}

TEST_CASE("of a region with a collective the rank that enters it last tells how long it takes") {
  TuningOptions options = ancestor(1, 3);
  options.refine = true;
  const std::vector<double> seconds = {1.4e-3, 1.0e-3, 1.2e-3};
  std::mt19937 random(1);
  int good = 0;
  for (int tuning = 0; tuning < 20; ++tuning) {
    SeveralRanks ranks(2, options);
    add_collective(ranks, "all_reduce", seconds, 1);
    // Now and then one of them is early, and waits for longer than the collective takes.
    for (auto& rank : ranks.ranks) {
      rank->region_time = [&](const Configs& configs) {
        return seconds[configs[0]] + (random() % 4 == 0 ? 1.5e-3 : 0);
      };
    }
    for (int round = 0; round < 3000 && !ranks.all_finished(); ++round)
      for (auto& rank : ranks.ranks) rank->entry(true);
    REQUIRE(ranks.all_finished());
    good += ranks[0].tuning.winners()[0] == 1 ? 1 : 0;
  }
  CHECK(good >= 16);
}

TEST_CASE("a rank that comes to its last allowed decision first takes its word back") {
  SeveralRanks ranks(2, ancestor(1, 2));
  add_collective(ranks, "all_gather", {4e-3, 1e-3}, 1);
  for (int entry = 0; entry < 3; ++entry)
    for (auto& rank : ranks.ranks) rank->entry(true);
  // Rank 1 has said where it stands, and rank 0 has not. Outside of any entry, on another thread
  // say: nothing forbids the program that.
  for (int call = 0; call < 40; ++call)
    (void)ranks[1].decisions.decide("all_gather", no_site, ranks[1].now);
  CHECK(ranks[1].decisions.settled > 0);
  for (int call = 0; call < 40; ++call)
    (void)ranks[0].decisions.decide("all_gather", no_site, ranks[0].now);
  for (int round = 0; round < 3000 && !ranks.all_finished(); ++round)
    for (auto& rank : ranks.ranks) rank->entry(true);
  require_lockstep(ranks, "all_gather");
}

TEST_CASE("a rank that has voted makes no decision that is due before it knows the verdict") {
  SeveralRanks ranks(2, ancestor(1, 2));
  add_collective(ranks, "all_gather", {4e-3, 1e-3}, 1);
  bool hears = true;
  int asked = 0;
  // For so long the coordinating rank stands still.
  ranks.meeting.verdict_is_late = [&] { return !hears && ++asked % 60 != 0; };
  for (int round = 0; round < 400; ++round) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      hears = round < 10 || rank == 0;  // which decides, and is stopped before it can say so
      ranks[rank].entry(true);
    }
  }
  require_lockstep(ranks, "all_gather");
  CHECK(ranks.meeting.num_waits() == 0);
  CHECK(ranks[1].awaited > 0);
  for (auto& rank : ranks.ranks) {
    CHECK(rank->decisions.leases > 0);
    for (const SyncEvent& sync : rank->recorder.syncs) CHECK(sync.verdict != Verdict::Unknown);
  }
}

TEST_CASE("a collective whose decisions ranks count differently keeps its default, said once") {
  SeveralRanks ranks(2, ancestor(1, 2));
  add_collective(ranks, "all_gather", {4e-3, 1e-3}, 1);
  ranks.add("kernel", std::vector(2, std::vector<double>{2e-3, 1e-3}));
  const auto cause = GENERATE(0, 1, 2);
  if (cause == 0) ranks[1].sites[0].decisions = 2;
  if (cause == 1) (void)ranks[1].decisions.decide("all_gather", no_site, 0);
  if (cause == 2) ranks[1].decisions.unsound = true;
  for (int round = 0; round < 3000 && !ranks.all_finished(); ++round)
    for (auto& rank : ranks.ranks) rank->entry(true);
  REQUIRE(ranks.all_finished());
  for (auto& rank : ranks.ranks) {
    CHECK(rank->recorder.count(FallbackReason::RanksDiffer) == 1);
    CHECK(rank->decisions.leases == 0);
    CHECK(rank->tuning.winners()[0] == 0);
    CHECK(rank->tuning.winners()[1] == 1);
  }
}

TEST_CASE(
    "a collective that is called more often in some entries than in others keeps only itself "
    "from being tuned") {
  SeveralRanks ranks(2, ancestor(1, 2));
  add_collective(ranks, "varies", {4e-3, 1e-3}, 1);
  add_collective(ranks, "all_gather", {4e-3, 1e-3}, 1);
  ranks.add("kernel", std::vector(2, std::vector<double>{2e-3, 1e-3}));
  for (std::uint32_t round = 0; round < 3000 && !ranks.all_finished(); ++round) {
    for (auto& rank : ranks.ranks) {
      rank->sites[0].decisions = 1 + round % 2;
      rank->entry(true);
    }
  }
  REQUIRE(ranks.all_finished());
  require_lockstep(ranks, "varies");
  require_lockstep(ranks, "all_gather");
  for (auto& rank : ranks.ranks) {
    CHECK(rank->recorder.count(FallbackReason::NoAgreement) == 0);
    CHECK(rank->recorder.count(FallbackReason::RanksDiffer) == 1);
    CHECK(rank->tuning.winners()[0] == 0);
    CHECK(rank->tuning.winners()[1] == 1);
    CHECK(rank->tuning.winners()[2] == 1);
  }
}

TEST_CASE("a decision that is under way at whatever moment costs a collective no winner") {
  TuningOptions options = ancestor(1, 2);
  options.confirm = true;
  for (int unlucky = 0; unlucky < 150; unlucky += case_step) {
    SeveralRanks ranks(2, options);
    add_collective(ranks, "all_gather", {4e-3, 3e-3, 1e-3}, 1);
    for (int round = 0; round < 600; ++round) {
      ranks[1].decisions.unsound = round == unlucky;
      for (auto& rank : ranks.ranks) rank->entry(true);
    }
    INFO("in round " << unlucky);
    REQUIRE(ranks.all_finished());
    require_lockstep(ranks, "all_gather");
    for (auto& rank : ranks.ranks) {
      const WinnerEvent* const winner = rank->recorder.winner_of(0);
      REQUIRE(winner != nullptr);
      CHECK(winner->config == 2);
      // What is said to have won is what runs.
      CHECK(rank->decisions.told("all_gather").back() == winner->config);
      CHECK(rank->tuning.winners()[0] == winner->config);
    }
  }
}

TEST_CASE("decisions that are under way now and then cost a collective no winner") {
  for (int every = 3; every < 12; ++every) {
    SeveralRanks ranks(2, ancestor(8, 8));
    add_collective(ranks, "all_gather", {4e-3, 3e-3, 1e-3, 2e-3, 2e-3, 2e-3}, 1);
    for (int round = 0; round < 3000 && !ranks.all_finished(); ++round) {
      ranks[1].decisions.unsound = round % every == 2;
      for (auto& rank : ranks.ranks) rank->entry(true);
    }
    INFO("every " << every);
    REQUIRE(ranks.all_finished());
    require_lockstep(ranks, "all_gather");
    for (auto& rank : ranks.ranks) CHECK(rank->tuning.winners()[0] == 2);
  }
}

TEST_CASE(
    "a collective that falls out of step keeps its default, and none of its configs is blamed") {
  for (int from = 6; from < 120; from += 3) {
    SeveralRanks ranks(2, ancestor(8, 8));
    add_collective(ranks, "all_gather", {4e-3, 3e-3, 1e-3, 2e-3, 2e-3, 2e-3}, 1);
    ranks.add("kernel", std::vector(2, std::vector<double>{2e-3, 1e-3}));
    for (int round = 0; round < 3000 && !ranks.all_finished(); ++round) {
      ranks[1].decisions.unsound = round >= from;
      for (auto& rank : ranks.ranks) rank->entry(true);
    }
    INFO("from round " << from);
    REQUIRE(ranks.all_finished());
    for (auto& rank : ranks.ranks) {
      CHECK(rank->recorder.count(FallbackReason::RanksDiffer) == 1);
      CHECK(rank->recorder.count(FallbackReason::WrongResult) == 0);
      for (const TrialEvent& trial : rank->recorder.trials)
        CHECK(trial.status != TrialStatus::WrongResult);
      // What is not known to be better or worse is not to be stored as such.
      const auto& said = rank->recorder.winners;
      const auto last = std::find_if(said.rbegin(), said.rend(),
                                     [](const WinnerEvent& event) { return event.site == 0; });
      REQUIRE(last != said.rend());
      CHECK(last->config == 0);
      CHECK(last->reason == WinnerReason::NoSamples);
      CHECK(rank->tuning.winners()[0] == 0);
      CHECK(rank->tuning.winners()[1] == 1);
    }
  }
}

TEST_CASE("a communicator with ranks that are not tuned together keeps its default") {
  Meeting meeting(1);
  FakeRank rank(meeting, 0, 1, ancestor(1, 2));
  FakeDecisions of_two(rank.tuning, 2);
  (void)rank.tuning.ranks().keep_in_step(of_two);
  SiteSpec spec;
  spec.name = "all_gather";
  spec.configs = make_configs(3);
  spec.collective = true;
  const SiteIndex site = rank.tuning.add_site(spec);
  double now = 0;
  for (int entry = 0; entry < 200 && !rank.tuning.finished(); ++entry) {
    const PassPlan plan = rank.tuning.begin_pass(rank.next_pass(), now, true);
    (void)of_two.decide("all_gather", site, now);
    now += 1e-3;
    rank.tuning.end_pass(plan.pass, std::vector{site}, {}, now);
    rank.tuning.add_result(PassResult::none(plan.pass), now);
  }
  CHECK(rank.tuning.finished());
  CHECK(of_two.leases == 0);
  REQUIRE(rank.recorder.count(FallbackReason::RanksDiffer) == 1);
  CHECK(rank.recorder.fallbacks[0].text.find("1 of the 2 ranks") != std::string::npos);
}

TEST_CASE("what one rank is held up for once counts against max_slowdown of all") {
  const auto entries_until_tuned = [](double held_up) {
    TuningOptions options = ancestor(0, 50);
    options.max_slowdown = 0.1;
    SeveralRanks ranks(2, options);
    add_collective(ranks, "all_gather", {1e-3, 0.9e-3, 0.8e-3}, 1);
    ranks[1].held_up = held_up;
    for (int round = 0; round < 20000 && !ranks.all_finished(); ++round)
      for (auto& rank : ranks.ranks) rank->entry(true);
    REQUIRE(ranks.all_finished());
    require_lockstep(ranks, "all_gather");
    return ranks[0].num_entries;
  };
  CHECK(entries_until_tuned(1) > 2 * entries_until_tuned(0));
}

TEST_CASE("a rank that is lost in the middle leaves the others with what was agreed on") {
  for (const std::uint64_t loss : {5ULL, 30ULL, 61ULL, 90ULL}) {
    SeveralRanks ranks(3, ancestor(1, 2));
    add_collective(ranks, "all_gather", {4e-3, 3e-3, 1e-3, 2e-3}, 2);
    for (std::uint64_t round = 0; round < 400; ++round) {
      if (round == loss) ranks.meeting.lose(2);
      for (auto& rank : ranks.ranks) rank->entry(true);
    }
    INFO("lost in round " << loss);
    require_lockstep(ranks, "all_gather");
  }
}

TEST_CASE("whatever the order of entries, calls outside, and losses, decisions are told alike") {
  std::uint64_t leased = 0;
  std::uint64_t settled = 0;
  for (std::uint32_t seed = 0; seed < 300; seed += case_step) {
    std::mt19937 engine(seed);
    const auto draw = [&] { return static_cast<std::uint32_t>(engine()); };
    INFO("seed " << seed);
    const std::uint32_t num_ranks = 2 + draw() % 3;
    const bool live = draw() % 2 == 0;
    TuningOptions options;
    options.n_warmup = static_cast<int>(draw() % 3);
    options.n_repeat = 1 + static_cast<int>(draw() % 3);
    options.refine = draw() % 2 == 0;
    options.result_patience_seconds = 0;
    SeveralRanks ranks(num_ranks, options);
    const std::uint32_t num_sites = 1 + draw() % 3;
    for (std::uint32_t site = 0; site < num_sites; ++site) {
      std::vector<double> seconds;
      for (std::size_t config = 0, last = 2 + draw() % 3; config < last; ++config)
        seconds.push_back(1e-4 * (1 + draw() % 50));
      if (draw() % 3 == 0) {
        ranks.add("kernel-" + std::to_string(site), std::vector(num_ranks, seconds));
      } else {
        add_collective(ranks, "collective-" + std::to_string(site), seconds, 1 + draw() % 3);
      }
    }
    for (auto& rank : ranks.ranks) rank->lag = live ? draw() % 4 : 0;
    const std::uint64_t loss = draw() % 3 == 0 ? draw() % 400 : ~0ULL;
    const std::uint32_t lost = draw() % num_ranks;
    for (int i = 0; i < 3; ++i) ranks.meeting.unlucky_questions.insert(draw() % 12);
    // Calls outside of entries come at the same place of the program on every rank.
    const std::uint32_t outside_every = draw() % 3 == 0 ? 1 + draw() % 20 : 0;
    const std::uint32_t many_at = 3 + draw() % 80;
    if (draw() % 2 == 0) ranks.meeting.verdict_is_late = [&] { return draw() % 3 != 0; };
    std::uint64_t stuck = 0;
    for (std::uint64_t step = 0; step < 200000 && !ranks.all_finished(); ++step) {
      if (step == loss) ranks.meeting.lose(lost);
      FakeRank& rank = *ranks.ranks[draw() % num_ranks];
      if (!live && rank.tuning.finished()) continue;
      const bool made = rank.entry(live);
      if (!made && rank.waiting == Waiting::Ranks && ++stuck % 2000 == 0)
        rank.tuning.ranks().await();
      if (!made) continue;
      std::uint32_t outside = rank.num_entries == many_at ? 20 : 0;
      if (outside_every > 0 && rank.num_entries % outside_every == 0) ++outside;
      for (auto& site : rank.sites)
        for (std::uint32_t call = 0; call < outside && site.decisions > 0 && site.added; ++call)
          (void)rank.decisions.decide(site.name, no_site, rank.now);
    }
    REQUIRE(ranks.all_finished());
    for (auto& site : ranks[0].sites)
      if (site.decisions > 0) require_lockstep(ranks, site.name);
    leased += static_cast<std::uint64_t>(ranks[0].decisions.leases);
    settled += static_cast<std::uint64_t>(ranks[0].decisions.settled);
  }
  // The search for trouble went where trouble is.
  CHECK(leased > 300 / case_step);
  CHECK(settled > 20 / case_step);
}

}  // namespace
}  // namespace contextune::tests
