// The golden tests of the schedule: who runs what in which pass.
#include "catch.hpp"
#include "fake_region.hpp"

using namespace contextune;
using namespace contextune::tests;

TEST_CASE("The iteration table of two kernels goes row by row as the design says", "[table]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"kernel-0", {3e-6, 2e-6}});
  region.sites.push_back({"kernel-1", {5e-6, 7e-6, 4e-6}});
  region.run();

  const std::vector<std::pair<std::uint64_t, Configs>> table = {
      {0, {0, 0}}, {1, {0, 0}}, {2, {1, 1}}, {3, {1, 1}}, {4, {1, 2}}, {5, {1, 2}},
  };
  CHECK(region.rows == table);
  CHECK(region.tuning.progress().passes == 6);
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 2);

  std::vector<std::pair<std::uint32_t, int>> steps;
  for (const TrialEvent& trial : region.recorder.trials)
    if (trial.site == 1) steps.emplace_back(trial.config, trial.iteration);
  CHECK(steps ==
        std::vector<std::pair<std::uint32_t, int>>{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}});

  const PassPlan after = region.entry();
  CHECK_FALSE(after.counted);
  CHECK(after.measure == Measure::Nothing);
  CHECK(region.configs_run == Configs{1, 2});
}

TEST_CASE("A site whose winner is the default runs it while the other goes on", "[table]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"a", {1e-6, 2e-6}});
  region.sites.push_back({"b", {1e-6, 2e-6, 3e-6}});
  region.run();
  CHECK(region.column(0) == Configs{0, 0, 1, 1, 0, 0});
}

TEST_CASE("Warm-up passes run and do not count", "[table]") {
  FakeRegion region(ancestor(1, 2));
  region.sites.push_back({"a", {2e-6, 1e-6}});
  std::vector<int> iterations;
  region.run();
  for (const TrialEvent& trial : region.recorder.trials) iterations.push_back(trial.iteration);
  CHECK(iterations == std::vector<int>{-1, 0, 1, -1, 0, 1});
  CHECK(region.column(0) == Configs{0, 0, 0, 1, 1, 1});
}

TEST_CASE("A region costs the longest site's passes, not the sum", "[table]") {
  FakeRegion region(ancestor(3, 5));
  region.sites.push_back({"axpy", std::vector<double>(12, 10e-6)});
  region.sites.push_back({"softmax", std::vector<double>(5, 10e-6)});
  region.run();
  CHECK(region.tuning.progress().passes == 96);
}

TEST_CASE("A site may have its own warm-up and repeats", "[table]") {
  Recorder recorder;
  Tuning tuning(ancestor(3, 5), &recorder);
  SiteSpec spec{"a", {}, make_configs(2), Objective::Own, 0, 1, {}, true};
  const SiteIndex site = tuning.add_site(spec);
  for (std::uint32_t pass = 0; pass < 2; ++pass) {
    const PassPlan plan = tuning.begin_pass(next_pass(), pass);
    CHECK(plan.configs[0] == pass);
    tuning.end_pass(plan.pass, std::vector{site}, {}, pass);
    tuning.add_result({plan.pass, {{site, pass, 1, 2.0 - pass, SiteResult::Status::Measured}}, 1},
                      pass);
  }
  CHECK(tuning.finished());
  CHECK(tuning.winners()[0] == 1);
}

TEST_CASE("Two keys of one kernel progress and win apart", "[table]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({.name = "saxpy", .seconds = {2e-6, 1e-6}, .key = {{"n", 1024}}});
  region.sites.push_back({.name = "saxpy",
                          .seconds = {2e-6, 3e-6},
                          .when = [](std::uint64_t entry) { return entry % 2 == 0; },
                          .key = {{"n", 4096}}});
  region.run();
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 0);
  CHECK(region.column(0) == Configs{0, 0, 1, 1, 1, 1, 1});
  // The second key moves on only when it is launched: in passes 0, 2, 4 and 6.
  CHECK(region.column(1) == Configs{0, 0, 0, 1, 1, 1, 1});
  CHECK(region.tuning.progress().passes == 7);
}

TEST_CASE("A site launched forty times a pass advances one step a pass", "[table]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({.name = "layer", .seconds = {2e-6, 1e-6}, .launches = 40});
  region.run();
  CHECK(region.column(0) == Configs{0, 0, 1, 1});
  REQUIRE(region.recorder.trials.size() == 4);
  CHECK(region.recorder.trials[0].launches == 40);
  CHECK(region.recorder.trials[0].seconds == Approx(2e-6));
  CHECK(region.winner(0) == 1);
}

TEST_CASE("A site that appears every other pass uses one step each time it appears", "[table]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"always", {2e-6, 1e-6}});
  region.sites.push_back({.name = "even",
                          .seconds = {2e-6, 3e-6, 1e-6},
                          .when = [](std::uint64_t entry) { return entry % 2 == 0; }});
  region.run();
  std::vector<std::pair<std::uint64_t, std::uint32_t>> seen;
  for (const TrialEvent& trial : region.recorder.trials)
    if (trial.site == 1) seen.emplace_back(trial.pass, trial.config);
  CHECK(seen == std::vector<std::pair<std::uint64_t, std::uint32_t>>{
                    {0, 0}, {2, 0}, {4, 1}, {6, 1}, {8, 2}, {10, 2}});
  CHECK(region.winner(1) == 2);
  CHECK(region.tuning.progress().passes == 11);
}

TEST_CASE("A site with one config is settled at once and costs no passes", "[table]") {
  FakeRegion region(ancestor(3, 5));
  region.sites.push_back({"only", {2e-6}});
  region.run();
  CHECK(region.tuning.progress().passes == 1);
  REQUIRE(region.recorder.winner_of(0) != nullptr);
  CHECK(region.recorder.winner_of(0)->reason == WinnerReason::Only);
  CHECK(region.recorder.winner_of(0)->default_seconds == Approx(2e-6));
}

TEST_CASE("A region without sites is finished after one pass", "[table]") {
  FakeRegion region(TuningOptions{});
  CHECK_FALSE(region.tuning.finished());
  region.entry();
  CHECK(region.tuning.finished());
  CHECK(region.tuning.progress().passes == 1);
  CHECK_FALSE(region.entry().counted);
}

TEST_CASE("Interleaved runs every config once before any runs again", "[schedules]") {
  TuningOptions options = ancestor(1, 2);
  options.schedule = ScheduleKind::Interleaved;
  FakeRegion region(options);
  region.sites.push_back({"a", {3e-6, 2e-6, 1e-6}});
  region.run();
  CHECK(region.column(0) == Configs{0, 1, 2, 0, 1, 2, 0, 1, 2});
  CHECK(region.winner(0) == 2);
}

TEST_CASE("Interleaved lets a drifting clock hit all configs alike", "[schedules]") {
  const auto winner_with = [](ScheduleKind kind) {
    TuningOptions options = ancestor(0, 4);
    options.schedule = kind;
    Recorder recorder;
    Tuning tuning(options, &recorder);
    const SiteIndex site = tuning.add_site({.name = "a", .key = {}, .configs = make_configs(2)});
    double slowdown = 1;
    while (!tuning.finished()) {
      const PassPlan plan = tuning.begin_pass(next_pass(), 0);
      const std::uint32_t config = plan.configs[0];
      tuning.end_pass(plan.pass, std::vector{site}, {}, 0);
      const double seconds = (config == 1 ? 0.9e-6 : 1e-6) * slowdown;
      slowdown *= 1.05;  // config 1 is faster, and the machine gets slower
      tuning.add_result(
          {plan.pass, {{site, config, 1, seconds, SiteResult::Status::Measured}}, seconds}, 0);
    }
    return tuning.winners()[0];
  };
  CHECK(winner_with(ScheduleKind::Interleaved) == 1);
  CHECK(winner_with(ScheduleKind::Table) == 0);
}

TEST_CASE("Racing drops what is clearly beaten and keeps the default to the end", "[schedules]") {
  TuningOptions options = ancestor(0, 5);
  options.schedule = ScheduleKind::Racing;
  options.cutoff = 0;
  FakeRegion region(options);
  region.noise = 0.002;
  region.sites.push_back({"a", {2e-6, 3e-6, 1e-6, 1.8e-6}});
  region.run();
  CHECK(region.winner(0) == 2);
  const Configs ran = region.column(0);
  // Two rounds show the noise, then only the leader and the default are left.
  CHECK(ran == Configs{0, 1, 2, 3, 0, 1, 2, 3, 0, 2, 0, 2, 0, 2});
}
