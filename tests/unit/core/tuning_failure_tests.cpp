// Configs that cannot be launched, that give no sample, that are hopeless.
#include <algorithm>

#include "catch.hpp"
#include "fake_region.hpp"

using namespace contextune;
using namespace contextune::tests;

TEST_CASE("A failing config is recorded, uses up its passes on the default, and never wins",
          "[failure]") {
  const std::uint32_t bad = GENERATE(1U, 2U, 3U);  // first after the default, middle, last
  FakeRegion region(ancestor(1, 2));
  region.sites.push_back({.name = "a", .seconds = {4e-6, 3e-6, 2.5e-6, 2e-6}, .failing = {bad}});
  region.sites.push_back({"b", {2e-6, 1e-6, 3e-6, 4e-6}});
  region.run();
  CHECK(region.tuning.progress().passes == 12);
  CHECK(region.winner(0) == (bad == 3 ? 2U : 3U));
  // Launched once, then the default for the rest of its passes; the neighbour stays in step.
  Configs expected;
  for (std::uint32_t config = 0; config < 4; ++config)
    for (int pass = 0; pass < 3; ++pass) expected.push_back(config == bad && pass > 0 ? 0 : config);
  CHECK(region.column(0) == expected);
  CHECK(region.column(1) == Configs{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3});
  CHECK(region.recorder.count(FallbackReason::LaunchFailed) == 1);
  int failed = 0;
  for (const TrialEvent& trial : region.recorder.trials) {
    if (trial.site != 0 || trial.config != bad) continue;
    CHECK(trial.status == TrialStatus::LaunchFailed);
    CHECK(std::isnan(trial.seconds));
    ++failed;
  }
  CHECK(failed == 3);
}

TEST_CASE("With all configs but the default failing the default wins", "[failure]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({.name = "a", .seconds = {4e-6, 3e-6, 2e-6}, .failing = {1, 2}});
  region.run();
  CHECK(region.winner(0) == 0);
  REQUIRE(region.recorder.winner_of(0) != nullptr);
  CHECK(region.recorder.winner_of(0)->reason == WinnerReason::Failed);
  CHECK(region.recorder.count(FallbackReason::LaunchFailed) == 2);
}

TEST_CASE("A failing default is left to the program: the site keeps it", "[failure]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({.name = "a", .seconds = {4e-6, 3e-6}, .failing = {0}});
  region.run();
  CHECK(region.winner(0) == 0);
  CHECK(region.recorder.count(FallbackReason::LaunchFailed) == 0);
}

TEST_CASE("A config that fails after it was measured loses all the same", "[failure]") {
  FakeRegion region(ancestor(0, 3));
  region.sites.push_back({"a", {4e-6, 1e-6, 3e-6}});
  for (int i = 0; i < 4; ++i) region.entry();
  region.sites[0].failing = {1};
  region.run();
  CHECK(region.winner(0) == 2);
}

TEST_CASE("A winner that can no longer be launched gives way to the default", "[failure]") {
  FakeRegion region(ancestor(0, 1));
  region.sites.push_back({"a", {2e-6, 1e-6}});
  region.run();
  REQUIRE(region.winner(0) == 1);
  region.sites[0].failing = {1};
  region.entry();
  CHECK(region.winner(0) == 0);
  CHECK(region.recorder.count(FallbackReason::WinnerFailed) == 1);
  region.entry();
  CHECK(region.configs_run == Configs{0});
}

TEST_CASE("A config that got no sample is queued once more", "[failure]") {
  FakeRegion region(ancestor(1, 2));
  region.sites.push_back({"a", {3e-6, 1e-6, 2e-6}});
  region.lost_samples = {{4, 0}, {5, 0}};  // both counted passes of config 1
  region.run();
  CHECK(region.winner(0) == 1);
  CHECK(region.column(0) == Configs{0, 0, 0, 1, 1, 1, 2, 2, 2, 1, 1, 1});
}

TEST_CASE("One sample of several is enough not to be queued again", "[failure]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"a", {3e-6, 1e-6, 2e-6}});
  region.lost_samples = {{2, 0}};
  region.run();
  CHECK(region.tuning.progress().passes == 6);
  CHECK(region.winner(0) == 1);
}

TEST_CASE("A config without a sample the second time counts as failed", "[failure]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"a", {3e-6, 1e-6, 2e-6}});
  for (std::uint64_t pass : {2U, 3U, 6U, 7U}) region.lost_samples.insert({pass, 0});
  region.run();
  CHECK(region.tuning.progress().passes == 8);
  CHECK(region.winner(0) == 2);
  CHECK(region.recorder.count(FallbackReason::NoSamples) == 1);
}

TEST_CASE("A result for another config than the planned one is no sample", "[failure]") {
  Recorder recorder;
  Tuning tuning(ancestor(0, 1), &recorder);
  const SiteIndex site = tuning.add_site({.name = "a", .key = {}, .configs = make_configs(2)});
  std::uint64_t counted = 0;
  while (!tuning.finished()) {
    const PassPlan plan = tuning.begin_pass(next_pass(), 0);
    counted += plan.counted;
    tuning.end_pass(plan.pass, std::vector{site}, {}, 0);
    // Another thread's graph ran the default all the time.
    tuning.add_result({plan.pass, {{site, 0, 1, 1e-6, SiteResult::Status::Measured}}, 1e-6}, 0);
  }
  CHECK(counted == 3);  // config 1 is asked for twice
  CHECK(tuning.winners()[site] == 0);
  CHECK(recorder.count(FallbackReason::NoSamples) == 1);
}

TEST_CASE("A region's time with other configs than the planned ones shows nothing", "[failure]") {
  Recorder recorder;
  TuningOptions options = ancestor(0, 1);
  options.confirm = true;
  Tuning tuning(options, &recorder);
  const SiteIndex site = tuning.add_site({.name = "a", .key = {}, .configs = make_configs(2)});
  while (!tuning.finished()) {
    const PassPlan plan = tuning.begin_pass(next_pass(), 0);
    const std::uint32_t due = plan.configs.empty() ? 0 : plan.configs[site];
    const bool compares = plan.stage == Stage::Confirm;
    tuning.end_pass(plan.pass, std::vector{site}, {}, 0);
    // In its table config 1 runs as planned; what is to be shown of it ranks cannot be told.
    const std::uint32_t ran = compares ? 0 : due;
    tuning.add_result({plan.pass,
                       {{site, ran, 1, 2e-6 - 1e-6 * due, SiteResult::Status::Measured}},
                       2e-6 - 1e-6 * due},
                      0);
  }
  REQUIRE(recorder.confirms.size() == 1);
  CHECK(recorder.confirms[0].pairs == 0);
  CHECK(tuning.winners()[site] == 0);
}

TEST_CASE("Samples taken under throttling do not count", "[failure]") {
  FakeRegion region(ancestor(0, 3));
  region.sites.push_back({"a", {2e-6, 1e-6}});
  region.throttled = {0, 3};
  region.run();
  int throttled = 0;
  for (const TrialEvent& trial : region.recorder.trials) throttled += trial.throttled;
  CHECK(throttled == 2);
  CHECK(region.tuning.progress().passes == 6);
  CHECK(region.winner(0) == 1);
}

TEST_CASE("A config throttled in all its passes is queued once more", "[failure]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"a", {2e-6, 1e-6}});
  region.throttled = {2, 3};
  region.run();
  CHECK(region.column(0) == Configs{0, 0, 1, 1, 1, 1});
  CHECK(region.winner(0) == 1);
}

TEST_CASE("A hopeless config is cut off after one sample and its passes run the default",
          "[failure]") {
  TuningOptions options = ancestor(0, 4);
  options.cutoff = 3;
  FakeRegion region(options);
  region.sites.push_back({"a", {2e-6, 100e-6, 1e-6, 5e-6}});
  region.run();
  CHECK(region.column(0) == Configs{0, 0, 0, 0, 1, 0, 0, 0, 2, 2, 2, 2, 3, 0, 0, 0});
  CHECK(region.winner(0) == 2);
}

TEST_CASE("A default beside which all was cut off is the fastest, for nothing failed",
          "[failure]") {
  TuningOptions options = ancestor(0, 4);
  options.cutoff = 3;
  FakeRegion region(options);
  region.sites.push_back({"a", {2e-6, 100e-6, 50e-6}});
  region.sites.push_back({.name = "b", .seconds = {2e-6, 100e-6, 1e-6}, .failing = {2}});
  region.run();
  for (const SiteIndex site : {0U, 1U}) {
    CHECK(region.winner(site) == 0);
    REQUIRE(region.recorder.winner_of(site) != nullptr);
    CHECK(region.recorder.winner_of(site)->reason == WinnerReason::Fastest);
  }
}

TEST_CASE("A slow first launch alone does not cut a config off", "[failure]") {
  Recorder recorder;
  TuningOptions options = ancestor(1, 2);
  options.cutoff = 3;
  Tuning tuning(options, &recorder);
  const SiteIndex site = tuning.add_site({.name = "a", .key = {}, .configs = make_configs(2)});
  while (!tuning.finished()) {
    const PassPlan plan = tuning.begin_pass(next_pass(), 0);
    const std::uint32_t config = plan.configs[0];
    const bool first = plan.number == 3;
    tuning.end_pass(plan.pass, std::vector{site}, {}, 0);
    const double seconds = first ? 8e-6 : config == 1 ? 1e-6 : 2e-6;
    tuning.add_result(
        {plan.pass, {{site, config, 1, seconds, SiteResult::Status::Measured}}, seconds}, 0);
  }
  CHECK(tuning.winners()[site] == 1);
}

TEST_CASE("A cutoff of 0 tries everything to the end", "[failure]") {
  TuningOptions options = ancestor(0, 2);
  options.cutoff = 0;
  FakeRegion region(options);
  region.sites.push_back({"a", {2e-6, 100e-6}});
  region.run();
  CHECK(region.column(0) == Configs{0, 0, 1, 1});
}

TEST_CASE("A config that computes something wrong is never run again and never chosen",
          "[failure]") {
  const bool early =
      GENERATE(true, false);  // before its site takes part, and after it was measured
  FakeRegion region(ancestor(1, 2));
  region.sites.push_back({"a", {4e-6, 1e-6, 3e-6}});
  region.sites.push_back({"b", {4e-6, 1e-6}});
  if (early) {
    SiteSpec spec;
    spec.name = "a";
    spec.configs = make_configs(3);
    region.sites[0].index = region.tuning.add_site(std::move(spec));
    region.sites[0].added = true;
  } else {
    for (int i = 0; i < 7; ++i) region.entry();
  }
  const std::size_t before = region.column(0).size();
  region.tuning.reject_config(0, 1, "Config 1 is wrong.");
  region.tuning.reject_config(0, 0, "The default cannot be.");
  region.run();
  CHECK(region.winner(0) == 2);
  CHECK(region.winner(1) == 1);
  const Configs ran = region.column(0);
  CHECK(std::count(ran.begin() + static_cast<std::ptrdiff_t>(before), ran.end(), 1U) == 0);
  CHECK(region.recorder.count(FallbackReason::WrongResult) == 1);
  CHECK(region.recorder.count(FallbackReason::LaunchFailed) == 0);
  const auto& trials = region.recorder.trials;
  const bool said = std::any_of(trials.begin(), trials.end(), [](const TrialEvent& trial) {
    return trial.site == 0 && trial.config == 1 && trial.status == TrialStatus::WrongResult;
  });
  CHECK(said == early);
  CHECK(to_string(TrialStatus::WrongResult) == "wrong_result");
}
