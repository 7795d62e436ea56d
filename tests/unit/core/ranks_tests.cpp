// Ranks whose regions are repeated until tuned.
#include "catch.hpp"
#include "core/agreement/batch_message.hpp"
#include "several_ranks.hpp"

namespace contextune::tests {
namespace {

TEST_CASE(
    "two ranks rotate as the iteration table says, and run the same pass with the same plan") {
  SeveralRanks ranks(2, ancestor(0, 2));
  ranks.add("kernel-0", {{2e-3, 1e-3}, {2e-3, 1e-3}});
  ranks.add("kernel-1", {{3e-3, 2e-3, 1e-3}, {3e-3, 2e-3, 1e-3}});
  ranks.run();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    Configs first;
    Configs second;
    for (const auto& [pass, configs] : ranks[rank].ran) {
      first.push_back(configs.at("kernel-0"));
      second.push_back(configs.at("kernel-1"));
    }
    CHECK(second == Configs{0, 0, 1, 1, 2, 2});
    CHECK(first == Configs{0, 0, 1, 1, 1, 1});
    CHECK(ranks[rank].winner(0) == 1);
    CHECK(ranks[rank].winner(1) == 2);
  }
  require_same_passes(ranks);
}

TEST_CASE("a kernel that has run its last trial runs its best config while others of many go on") {
  SeveralRanks ranks(2, ancestor(0, 2));
  std::map<std::string, std::size_t> num_configs;
  for (const std::size_t configs : {2U, 3U, 7U, 24U}) {
    std::vector<double> seconds(configs, 2e-6);
    seconds.back() = 1e-6;
    const std::string name = "kernel-" + std::to_string(configs);
    ranks.add(name, {seconds, seconds});
    num_configs[name] = configs;
  }
  ranks.run();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    REQUIRE(ranks[rank].ran.size() == 48);
    for (const auto& [pass, configs] : ranks[rank].ran) {
      for (const auto& [name, config] : configs) {
        INFO("rank " << rank << ", pass " << pass << ", " << name);
        CHECK(config == std::min<std::size_t>(pass / 2, num_configs[name] - 1));
      }
    }
  }
}

TEST_CASE("the slowest rank decides which config wins") {
  SeveralRanks ranks(3, ancestor(1, 2));
  // Rank 0 alone would take config 1, rank 2 alone config 2.
  ranks.add("kernel", {{4, 1, 3}, {4, 2, 3}, {4, 9, 2}});
  ranks.run();
  for (std::size_t rank = 0; rank < 3; ++rank) CHECK(ranks[rank].winner(0) == 2);
}

TEST_CASE("every rank logs the same winners and hashes, and times of its own") {
  SeveralRanks ranks(2, ancestor(0, 1));
  ranks.add("kernel", {{4, 1}, {5, 2}});
  ranks.run();
  const auto& first = ranks[0].recorder;
  const auto& second = ranks[1].recorder;
  REQUIRE(first.winners.size() == 1);
  REQUIRE(second.winners.size() == 1);
  CHECK(first.winners[0].config == second.winners[0].config);
  CHECK(first.winners[0].seconds == 1);
  CHECK(second.winners[0].seconds == 2);
  REQUIRE(first.syncs.size() == second.syncs.size());
  for (std::size_t i = 0; i < first.syncs.size(); ++i) {
    CHECK(first.syncs[i].verdict == Verdict::Committed);
    CHECK(first.syncs[i].hash == second.syncs[i].hash);
  }
}

TEST_CASE("all sites share one agreement: three of them need no more than one") {
  const auto agreements = [](int sites) {
    SeveralRanks ranks(2, ancestor(1, 2));
    for (int i = 0; i < sites; ++i)
      ranks.add("kernel-" + std::to_string(i), {{3e-3, 1e-3}, {3e-3, 1e-3}});
    ranks.run();
    return ranks.meeting.num_decided();
  };
  CHECK(agreements(3) <= agreements(1));
}

TEST_CASE("a site that one rank lacks adds nothing there, and is tuned by the others") {
  SeveralRanks ranks(2, ancestor(0, 2));
  ranks.add("common", {{2, 1}, {2, 1}});
  FakeRank::Site lone;
  lone.name = "lone";
  lone.seconds = {3, 2, 1};
  ranks[1].sites.push_front(lone);
  ranks.run();
  CHECK(ranks[0].winner(0) == 1);
  CHECK(ranks[1].winner(0) == 2);
  CHECK(ranks[1].winner(1) == 1);
  require_same_passes(ranks);
}

TEST_CASE(
    "a config that cannot be launched on one rank fails on all, and each log names the rank") {
  for (const std::uint32_t failing : {1U, 2U, 3U}) {
    SeveralRanks ranks(3, ancestor(1, 2));
    ranks.add("kernel", {{4, 3, 2, 1}, {4, 3, 2, 1}, {4, 3, 2, 1}});
    ranks[1].sites[0].failing = {failing};
    ranks.run();
    for (std::size_t rank = 0; rank < 3; ++rank) {
      CHECK(ranks[rank].winner(0) == (failing == 3 ? 2 : 3));
      REQUIRE(ranks[rank].recorder.count(FallbackReason::LaunchFailed) == 1);
      CHECK(ranks[rank].recorder.fallbacks[0].text.find("rank 1") != std::string::npos);
    }
    require_same_passes(ranks);
  }
}

TEST_CASE("a winner that one rank cannot launch while it is confirmed is dropped on all") {
  TuningOptions options;
  options.refine = false;
  SeveralRanks ranks(2, options);
  ranks.add("kernel", {{4e-3, 1e-3}, {4e-3, 1e-3}});
  std::uint64_t before = 0;
  ranks[1].region_time = [&](const Configs& configs) {
    // It works as long as the table lasts.
    if (ranks[1].tuning.progress().stage == Stage::Confirm) ranks[1].sites[0].failing = {1};
    ++before;
    return configs.empty() || configs[0] == 0 ? 4e-3 : 1e-3;
  };
  ranks.run();
  for (std::size_t rank = 0; rank < 2; ++rank) CHECK(ranks[rank].winner(0) == 0);
  CHECK(ranks[0].recorder.count(FallbackReason::LaunchFailed) == 1);
}

TEST_CASE("what one rank could not build counts as failed on all") {
  SeveralRanks ranks(2, ancestor(0, 1));
  ranks.add("kernel", {{4, 3, 1}, {4, 3, 1}});
  ranks[1].sites[0].ready = false;
  int rounds = 0;
  ranks[1].region_time = [&](const Configs&) {
    if (++rounds == 1) {
      const std::uint32_t unusable[] = {2};
      ranks[1].tuning.site_ready(0, unusable);
    }
    return 1.0;
  };
  ranks.run();
  CHECK(ranks[0].winner(0) == 1);
  CHECK(ranks[1].winner(0) == 1);
}

TEST_CASE("a site waits until it is built on the last rank") {
  SeveralRanks ranks(2, ancestor(0, 1));
  ranks.add("kernel", {{4, 1}, {4, 1}});
  ranks[1].sites[0].ready = false;
  for (int round = 0; round < 50; ++round)
    for (auto& rank : ranks.ranks) rank->entry(false);
  CHECK_FALSE(ranks[0].tuning.finished());
  for (const auto& [pass, configs] : ranks[0].ran) CHECK(configs.at("kernel") == 0);
  ranks[1].tuning.site_ready(0);
  ranks.run();
  CHECK(ranks[0].winner(0) == 1);
}

TEST_CASE("a config that one rank finds to compute something else wins nowhere") {
  SeveralRanks ranks(2, ancestor(0, 2));
  ranks.add("kernel", {{4, 1, 3}, {4, 1, 3}});
  ranks[0].entry(false);
  ranks[1].entry(false);
  ranks[1].tuning.reject_config(0, 1, "it is wrong");
  ranks.run();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(ranks[rank].winner(0) == 2);
    CHECK(ranks[rank].recorder.count(FallbackReason::WrongResult) == 1);
  }
}

TEST_CASE("a config that is found wrong before anything was agreed on is never run, on any rank") {
  SeveralRanks ranks(2, ancestor(0, 2));
  ranks.add("kernel", {{4, 1, 3}, {4, 1, 3}});
  // First they meet.
  ranks[0].entry(false);
  ranks[1].entry(false);
  while (!ranks[0].sites[0].added) ranks[0].entry(false);
  ranks[0].tuning.reject_config(0, 1, "it is wrong");
  ranks.run();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (const auto& [pass, configs] : ranks[rank].ran) CHECK(configs.at("kernel") != 1);
    CHECK(ranks[rank].winner(0) == 2);
    REQUIRE(ranks[rank].recorder.count(FallbackReason::WrongResult) == 1);
    CHECK(ranks[rank].recorder.fallbacks[0].text.find("rank 0") != std::string::npos);
  }
}

TEST_CASE("a config that is found wrong in the middle of a batch is not run again here") {
  SeveralRanks ranks(2, ancestor(0, 4));
  ranks.add("kernel", {{4, 1}, {4, 1}});
  for (int round = 0; round < 50 && ranks[0].last["kernel"] != 1; ++round)
    for (auto& rank : ranks.ranks) rank->entry(false);
  REQUIRE(ranks[0].last["kernel"] == 1);
  const auto before = ranks[0].ran.size();
  ranks[0].tuning.reject_config(0, 1, "it is wrong");
  while (!ranks.all_finished())
    for (auto& rank : ranks.ranks) {
      if (rank->tuning.finished()) continue;
      rank->entry(false);
      if (rank == ranks.ranks[0]) CHECK(rank->last["kernel"] == 0);
    }
  CHECK(ranks[0].ran.size() > before);
  CHECK(ranks[1].winner(0) == 0);
}

TEST_CASE("a site that another rank met first is tuned here as well, once it comes up") {
  SeveralRanks ranks(2, ancestor(0, 4));
  ranks.add("early", {{4, 3, 2, 1}, {4, 3, 2, 1}});
  ranks.add("shared", {{4, 1}, {4, 9}});
  ranks[1].sites[1].when = [](std::uint64_t entry) { return entry >= 3; };
  ranks.run();
  // Rank 1's figures count: it is far slower with config 1.
  CHECK(ranks[0].winner(1) == 0);
  CHECK(ranks[1].winner(1) == 0);
  require_same_passes(ranks);
}

TEST_CASE("a rank on which a site has fewer configs never runs what it does not have") {
  SeveralRanks ranks(2, ancestor(0, 2));
  ranks.add("early", {{4, 3, 2, 1}, {4, 3, 2, 1}});
  ranks.add("other", {{4, 1, 2, 3}, {4, 3}});
  ranks[1].sites[1].when = [](std::uint64_t entry) { return entry >= 3; };
  ranks.run();
  for (const auto& [pass, configs] : ranks[1].ran)
    if (configs.contains("other")) CHECK(configs.at("other") == 0);
  CHECK(ranks[0].winner(1) == 0);
  CHECK(ranks[0].recorder.count(FallbackReason::RanksDiffer) == 1);
}

TEST_CASE("a site that comes after the winners on one rank only costs nobody the winners") {
  SeveralRanks ranks(2, ancestor(0, 2));
  ranks.add("early", {{4, 1}, {4, 1}});
  ranks.run();
  SiteSpec spec;
  spec.name = "late";
  spec.configs = make_configs(3);
  (void)ranks[0].tuning.add_site(spec);
  for (int i = 0; i < 10 && !ranks[0].tuning.finished(); ++i) {
    ranks[0].entry(false);
    ranks[0].tuning.ranks().await();
  }
  CHECK(ranks[0].tuning.finished());
  CHECK(ranks[0].winner(0) == 1);
  CHECK(ranks[0].winner(1) == 0);
  CHECK(ranks[0].recorder.count(FallbackReason::NoAgreement) == 1);
}

TEST_CASE("numbers that no rank would send are refused, and cost rank 0 nothing") {
  GroupPlanners planners;
  std::string why;
  BatchReport report;
  report.new_sites.push_back({{"huge", "", 1, ~0U, Objective::Own, {}, {}, {}}, true, {}, {}});
  const Topic topic{1, 0, {0}};
  const Payload said[] = {encode(report)};
  Batch batch;
  REQUIRE(decode(planners.decide(topic, said, why), batch));
  CHECK(batch.new_sites.empty());
  // The same group of other ranks is another one.
  const Topic both{1, 1, {0, 1}};
  const Payload two[] = {encode(BatchReport{}), encode(BatchReport{})};
  CHECK_FALSE(planners.decide(both, two, why).empty());
}

TEST_CASE("a sample that one rank lacks is taken again on all") {
  SeveralRanks ranks(2, ancestor(0, 1));
  ranks.add("kernel", {{4, 3, 1}, {4, 3, 1}});
  ranks[1].lost_samples = {{2, 0}};
  ranks.run();
  CHECK(ranks[0].ran.size() == 4);
  CHECK(ranks[0].winner(0) == 2);
  CHECK(ranks[1].winner(0) == 2);
  require_same_passes(ranks);
}

TEST_CASE("a pass that was throttled on one rank counts on none") {
  SeveralRanks ranks(2, ancestor(0, 2));
  ranks.add("kernel", {{4, 1}, {4, 3}});
  ranks[1].throttled = {2};
  ranks.run();
  int throttled = 0;
  for (const TrialEvent& trial : ranks[0].recorder.trials) throttled += trial.throttled;
  CHECK(throttled == 1);
  CHECK(ranks[0].winner(0) == 1);
}

TEST_CASE("winners have to make the region faster on the slowest rank") {
  for (const std::size_t slow : {0U, 1U}) {
    TuningOptions options;
    options.refine = false;
    SeveralRanks ranks(2, options);
    ranks.add("kernel", {{4e-3, 1e-3}, {4e-3, 1e-3}});
    // Whatever its kernel says, this rank's region becomes slower.
    ranks[slow].region_time = [](const Configs& configs) {
      return configs.empty() || configs[0] == 0 ? 5e-3 : 6e-3;
    };
    ranks.run();
    for (std::size_t rank = 0; rank < 2; ++rank) {
      CHECK(ranks[rank].winner(0) == 0);
      CHECK(ranks[rank].recorder.count(FallbackReason::NotConfirmed) == 1);
    }
  }
}

TEST_CASE("ranks with other options run their defaults, and every log says which rank it was") {
  SeveralRanks ranks(2, ancestor(0, 2));
  TuningOptions other = ancestor(0, 3);
  ranks.ranks[1] = std::make_unique<FakeRank>(ranks.meeting, 1, 2, other);
  ranks.add("kernel", {{4, 1}, {4, 1}});
  ranks.run();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(ranks[rank].winner(0) == 0);
    REQUIRE(ranks[rank].recorder.count(FallbackReason::NoAgreement) == 1);
    CHECK(ranks[rank].recorder.fallbacks[0].text.find("rank 1") != std::string::npos);
  }
}

TEST_CASE("a site with other configs on one rank keeps its default, and the others are tuned") {
  SeveralRanks ranks(2, ancestor(0, 2));
  ranks.add("same", {{4, 1}, {4, 1}});
  ranks.add("other", {{4, 1}, {4, 1, 1}});
  ranks.run();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(ranks[rank].winner(0) == 1);
    CHECK(ranks[rank].winner(1) == 0);
    CHECK(ranks[rank].recorder.count(FallbackReason::RanksDiffer) == 1);
  }
}

TEST_CASE("once a rank is lost, the others finish their batch and run defaults") {
  SeveralRanks ranks(3, ancestor(1, 3));
  ranks.add("kernel", {{4e-3, 1e-3}, {4e-3, 1e-3}, {4e-3, 1e-3}});
  for (int round = 0; round < 4; ++round)
    for (auto& rank : ranks.ranks) rank->entry(false);
  ranks.meeting.lose(2);
  for (int round = 0; round < 100; ++round)
    for (std::size_t rank = 0; rank < 2; ++rank)
      if (!ranks[rank].tuning.finished()) ranks[rank].entry(false);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(ranks[rank].tuning.finished());
    CHECK(ranks[rank].winner(0) == 0);
    CHECK(ranks[rank].recorder.count(FallbackReason::NoAgreement) == 1);
  }
  CHECK(ranks[0].ran == ranks[1].ran);
}

TEST_CASE("a rank that waits for one that does not come gives up, and is not asked again") {
  SeveralRanks ranks(2, ancestor(0, 2));
  ranks.add("kernel", {{4, 1}, {4, 1}});
  ranks[0].entry(false);
  CHECK_FALSE(ranks[0].entry(false));
  CHECK(ranks[0].waiting == Waiting::Ranks);
  ranks[0].tuning.ranks().await();
  CHECK_FALSE(ranks[0].entry(false));
  CHECK(ranks[0].tuning.finished());
  REQUIRE(ranks[0].recorder.count(FallbackReason::NoAgreement) == 1);
  CHECK(ranks[0].recorder.fallbacks[0].text ==
        "All sites run their default: rank 0 did not answer in 5 s.");
}

TEST_CASE("why the ranks did not agree is told, and not that one of them has ended since") {
  SeveralRanks ranks(2, ancestor(0, 2));
  ranks.add("kernel", {{4, 1}, {4, 1}});
  ranks.meeting.refusal = "rank 1 is lost";
  for (auto& rank : ranks.ranks) {
    rank->entry(false);
    rank->entry(false);
  }
  ranks.meeting.coordinator_ended = true;
  for (auto& rank : ranks.ranks) {
    rank->entry(false);
    REQUIRE(rank->recorder.count(FallbackReason::NoAgreement) == 1);
    CHECK(rank->recorder.fallbacks[0].text == "All sites run their default: rank 1 is lost.");
  }
}

TEST_CASE("a site that appears after the winners is tuned by all ranks that go on") {
  SeveralRanks ranks(2, ancestor(0, 2));
  ranks.add("early", {{4, 1}, {4, 1}});
  ranks.run();
  ranks.add("late", {{4, 3, 1}, {4, 3, 1}});
  for (auto& rank : ranks.ranks) {
    SiteSpec spec;
    spec.name = "late";
    spec.configs = make_configs(3);
    rank->sites[1].index = rank->tuning.add_site(spec);
    rank->sites[1].added = true;
    CHECK_FALSE(rank->tuning.finished());
  }
  ranks.run();
  for (auto& rank : ranks.ranks) {
    CHECK(rank->winner(0) == 1);
    CHECK(rank->winner(1) == 2);
  }
}

}  // namespace
}  // namespace contextune::tests
