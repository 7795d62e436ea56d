// Results that come late, in another order, or never; limits on what a tuning may cost.
#include "catch.hpp"
#include "fake_region.hpp"

using namespace contextune;
using namespace contextune::tests;

TEST_CASE("Results that come passes later give the same table", "[results]") {
  const std::size_t lag = GENERATE(1U, 3U, 7U);
  const bool backwards = GENERATE(false, true);
  FakeRegion prompt(ancestor(0, 2));
  FakeRegion late(ancestor(0, 2));
  late.lag = lag;
  late.backwards = backwards;
  for (FakeRegion* region : {&prompt, &late}) {
    region->sites.push_back({"a", {2e-6, 1e-6, 3e-6}});
    region->sites.push_back({"b", {1e-6, 2e-6}});
    region->run();
  }
  CHECK(late.tuning.progress().passes == prompt.tuning.progress().passes);
  CHECK(late.winner(0) == 1);
  CHECK(late.winner(1) == 0);
  CHECK(late.recorder.trials.size() == prompt.recorder.trials.size());
  CHECK(late.num_entries > prompt.num_entries);
}

TEST_CASE("A repeated region waits for a site's last results, so that it runs its best config next",
          "[results]") {
  const std::size_t lag = GENERATE(1U, 3U, 100U);
  const auto schedule =
      GENERATE(ScheduleKind::Table, ScheduleKind::Interleaved, ScheduleKind::Racing);
  TuningOptions options = ancestor(0, 2);
  options.schedule = schedule;
  FakeRegion prompt(options);
  FakeRegion late(options);
  late.lag = lag;
  for (FakeRegion* region : {&prompt, &late}) {
    region->bounded = false;
    region->sites.push_back({"kernel-0", {3e-6, 2e-6}});
    region->sites.push_back({"kernel-1", {5e-6, 7e-6, 4e-6}});
    region->sites.push_back({"kernel-2", {5e-6, 4e-6, 3e-6, 2e-6, 1e-6}});
    region->run();
  }
  CHECK(late.rows == prompt.rows);
  if (schedule == ScheduleKind::Racing) return;
  CHECK(late.column(0) == (schedule == ScheduleKind::Table
                               ? Configs{0, 0, 1, 1, 1, 1, 1, 1, 1, 1}
                               : Configs{0, 1, 0, 1, 1, 1, 1, 1, 1, 1}));
}

TEST_CASE("Where the program makes the entries it is not kept waiting for a site's last results",
          "[results]") {
  FakeRegion region(ancestor(0, 2));
  region.lag = 100;
  region.sites.push_back({"kernel-0", {3e-6, 2e-6}});
  region.sites.push_back({"kernel-1", {5e-6, 7e-6, 4e-6}});
  for (int pass = 0; pass < 6; ++pass) CHECK(region.entry().counted);
  CHECK(region.column(0) == Configs{0, 0, 1, 1, 0, 0});
}

TEST_CASE("A site whose last results are lost is waited for once more, and not for ever",
          "[results]") {
  FakeRegion region(ancestor(0, 2));
  region.bounded = false;
  region.lag = 100;
  region.lost_samples = {{2, 0}, {3, 0}};
  region.sites.push_back({"kernel-0", {3e-6, 2e-6}});
  region.sites.push_back({"kernel-1", {5e-6, 7e-6, 4e-6, 3e-6, 2e-6}});
  region.run();
  CHECK(region.column(0) == Configs{0, 0, 1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(region.winner(0) == 1);
}

TEST_CASE("Entries that wait for results are not counted and run what is known so far",
          "[results]") {
  FakeRegion region(ancestor(0, 1));
  region.lag = 100;
  region.sites.push_back({"a", {2e-6, 1e-6}});
  region.entry();
  region.entry();
  std::vector<PassResult> held(region.results.begin(), region.results.end());
  region.results.clear();
  for (int i = 0; i < 10; ++i) {
    const PassPlan plan = region.entry();
    CHECK_FALSE(plan.counted);
    CHECK(plan.waiting == Waiting::Results);
    CHECK(plan.measure == Measure::Nothing);
    CHECK(region.configs_run == Configs{0});
  }
  CHECK_FALSE(region.tuning.finished());
  for (const PassResult& result : held) region.tuning.add_result(result, region.now);
  CHECK(region.tuning.finished());
  CHECK(region.winner(0) == 1);
}

TEST_CASE("A program that runs ahead of its GPU is waited for in time, not in entries",
          "[results]") {
  FakeRegion region(ancestor(0, 1));
  region.lag = 100'000;
  region.sites.push_back({"a", {2e-6, 1e-6}});
  const double patience = ancestor(0, 1).result_patience_seconds;
  while (region.now < 0.9 * patience) {
    region.entry();
    region.now += patience / 1000;
  }
  CHECK(region.num_entries > 2 * ancestor(0, 1).result_patience);
  CHECK(region.recorder.count(FallbackReason::LateResults) == 0);
  for (const PassResult& result : region.results) region.tuning.add_result(result, region.now);
  CHECK(region.tuning.finished());
  CHECK(region.winner(0) == 1);
}

TEST_CASE("A tuning whose results never come ends with the defaults", "[results]") {
  FakeRegion region({.result_patience_seconds = 0});
  region.lose_all = true;
  region.sites.push_back({"a", {2e-6, 1e-6}});
  region.run(2 * (16 + 70));
  CHECK(region.winner(0) == 0);
  CHECK(region.recorder.winner_of(0)->reason == WinnerReason::NoSamples);
  CHECK(region.recorder.count(FallbackReason::LateResults) == 2);
}

TEST_CASE("A lost pass costs its samples and nothing else", "[results]") {
  FakeRegion region(ancestor(0, 2));
  region.lost_passes = {3};
  region.sites.push_back({"a", {2e-6, 1e-6}});
  while (region.tuning.progress().passes < 4) region.entry();
  region.tuning.add_result(PassResult::none(PassId{3}), region.now);
  CHECK(region.tuning.finished());
  CHECK(region.winner(0) == 1);
}

TEST_CASE("A result that comes after it was given up, or twice, changes nothing", "[results]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"a", {2e-6, 1e-6}});
  region.run();
  const std::size_t trials = region.recorder.trials.size();
  region.tuning.add_result({PassId{2}, {{0, 1, 1, 9e-6, SiteResult::Status::Measured}}, 9e-6},
                           region.now);
  region.tuning.add_result({PassId{777}, {}, 1e-6}, region.now);
  CHECK(region.recorder.trials.size() == trials);
  CHECK(region.winner(0) == 1);
}

TEST_CASE("An entry that never ended uses up no step of the schedule", "[results]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"a", {2e-6, 1e-6}});
  region.entry();
  (void)region.tuning.begin_pass(region.next_pass(), region.now);  // left by an exception
  region.run();
  CHECK(region.column(0) == Configs{0, 0, 1, 1});
  CHECK(region.winner(0) == 1);
}

TEST_CASE("The same calls give the same tuning", "[results]") {
  const auto rows = [] {
    FakeRegion region(TuningOptions{});
    region.noise = 0.02;
    region.sites.push_back({"a", {3e-6, 2e-6, 2.1e-6, 4e-6}});
    region.sites.push_back({"b", {3e-6, 2.9e-6, 2.95e-6}});
    region.run();
    return region.rows;
  };
  CHECK(rows() == rows());
}

TEST_CASE("max_passes ends the table early and keeps passes to confirm with", "[limits]") {
  FakeRegion region({.max_passes = 40});
  region.noise = 0.001;
  region.sites.push_back({"a", {4e-6, 3e-6, 2e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6}});
  region.run();
  CHECK(region.tuning.progress().passes <= 40);
  CHECK(region.recorder.count(FallbackReason::Budget) == 1);
  CHECK(region.winner(0) == 3);  // measured by then, and shown to be faster
  REQUIRE(region.recorder.confirms.size() == 1);
  CHECK(region.recorder.confirms[0].verdict == ConfirmVerdict::Kept);
}

TEST_CASE("max_passes too small to show a gain keeps the defaults", "[limits]") {
  FakeRegion region({.max_passes = 12});
  region.sites.push_back({"a", {4e-6, 1e-6}});
  region.run();
  CHECK(region.tuning.progress().passes <= 12);
  CHECK(region.winner(0) == 0);
}

TEST_CASE("max_time ends a tuning", "[limits]") {
  FakeRegion region({.max_time = 50e-6});
  region.sites.push_back({"a", std::vector<double>(30, 1e-6)});
  region.run();
  CHECK(region.tuning.progress().seconds <= 51e-6);
  CHECK(region.recorder.count(FallbackReason::Budget) == 1);
  CHECK(region.winner(0) == 0);
}

TEST_CASE("Trials cost at most max_slowdown of the program's time in live mode", "[limits]") {
  FakeRegion region({.cutoff = 0, .max_slowdown = 0.1});
  region.sites.push_back({"a", {1e-6, 2.5e-6, 0.8e-6, 2.8e-6}});
  bool waited = false;
  double worst = 0;
  double trials = 0;
  while (!region.tuning.finished()) {
    const double before = region.now;
    const PassPlan plan = region.entry();
    waited = waited || plan.waiting == Waiting::Budget;
    if (plan.waiting == Waiting::Budget && plan.stage == Stage::Table) {
      CHECK(region.configs_run == Configs{0});
    }
    trials += std::max(0.0, region.now - before - 1e-6);
    if (region.num_entries > 20) worst = std::max(worst, trials / region.now);
    REQUIRE(region.num_entries < 3000);
  }
  CHECK(waited);
  // One more trial may start just below the limit.
  CHECK(worst < 0.17);
  CHECK(trials / region.now < 0.11);
  CHECK(region.winner(0) == 2);
}

TEST_CASE("What a trial takes once only counts against max_slowdown", "[limits]") {
  FakeRegion region({.max_slowdown = 0.1});
  region.sites.push_back({"a", {1e-6, 0.8e-6}});
  region.lag = 1;
  const PassPlan plan = region.entry();
  region.tuning.spend(100e-6, plan.pass);
  int waited = 0;
  while (region.now < 0.9e-3) waited += region.entry().waiting == Waiting::Budget ? 1 : 0;
  CHECK(waited > 800);
  region.run();
  CHECK(region.winner(0) == 1);
}

TEST_CASE("What is taken beside trials counts as they do, but for what every process may take",
          "[limits]") {
  constexpr double taken = 60e-6;
  for (const double grace : {0.0, 50e-6}) {
    TuningOptions options;
    options.max_slowdown = 0.1;
    options.grace_seconds = grace;
    FakeRegion region(options);
    region.sites.push_back({"a", {1e-6, 0.8e-6}});
    region.entry();
    region.tuning.spend(taken);
    while (region.entry().waiting == Waiting::Budget) {
    }
    INFO("grace " << grace);
    CHECK(region.now >= (taken - grace) / options.max_slowdown);
    CHECK(region.now < (taken - grace) / options.max_slowdown + 3e-6);
  }
}

TEST_CASE("Without max_slowdown every entry of the table is a pass", "[limits]") {
  FakeRegion region(ancestor(0, 5));
  region.sites.push_back({"a", {1e-6, 2.5e-6}});
  region.run();
  CHECK(region.num_entries == 10);
}
