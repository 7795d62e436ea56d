// Refine and confirm: what is good together, and what is kept.
#include "catch.hpp"
#include "fake_region.hpp"

using namespace contextune;
using namespace contextune::tests;

TEST_CASE("Refine finds configs that are good only together", "[refine]") {
  // Alone each is best with config 1; together 1 and 1 hurt each other, and 2 with 2 is best.
  const auto coupled = [](const Configs& c) {
    const double own[3] = {10e-6, 8e-6, 8.1e-6};
    double sum = own[c[0]] + own[c[1]];
    if (c[0] == 1 && c[1] == 1) sum += 3e-6;
    if (c[0] == 2 && c[1] == 2) sum -= 2e-6;
    return sum;
  };
  const auto run = [&](bool refine) {
    FakeRegion region({.refine = refine});
    region.noise = 0.005;
    region.sites.push_back({"a", {10e-6, 8e-6, 8.1e-6}});
    region.sites.push_back({"b", {10e-6, 8e-6, 8.1e-6}});
    region.region_time = coupled;
    region.run();
    return coupled({region.winner(0), region.winner(1)});
  };
  CHECK(run(true) == Approx(14.2e-6));
  CHECK(run(false) > 15e-6);
}

TEST_CASE("Refine moves two neighbours at once where no single step helps", "[refine]") {
  const auto corner = [](const Configs& c) {
    if (c[0] == c[1]) return c[0] == 1 ? 15e-6 : 16e-6;
    return 16.5e-6;
  };
  FakeRegion region(TuningOptions{});
  region.noise = 0.003;
  region.sites.push_back({"a", {8e-6, 8.05e-6}});
  region.sites.push_back({"b", {8e-6, 8.05e-6}});
  region.region_time = corner;
  region.run();
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 1);
  CHECK(region.recorder.winner_of(0)->reason == WinnerReason::Region);
}

TEST_CASE("A site judged on the region keeps its default in the table and is chosen after it",
          "[refine]") {
  FakeRegion region(TuningOptions{});
  region.noise = 0.003;
  region.sites.push_back({"compute", {10e-6, 9e-6}});
  region.sites.push_back(
      {.name = "collective", .seconds = {5e-6, 4e-6, 6e-6}, .objective = Objective::Region});
  // Its own time misleads: what is fast alone keeps the compute kernel waiting.
  region.region_time = [](const Configs& c) {
    const double collective[3] = {5e-6, 8e-6, 3e-6};
    return (c[0] == 1 ? 9e-6 : 10e-6) + collective[c[1]];
  };
  region.run();
  for (int pass = 0; pass < 16; ++pass)
    CHECK(region.column(1)[static_cast<std::size_t>(pass)] == 0);
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 2);
  CHECK(region.recorder.winner_of(1)->reason == WinnerReason::Region);
}

TEST_CASE("Passes that are held are compared by their span, and by a noise of their own",
          "[refine]") {
  FakeRegion region(TuningOptions{});
  region.noise = 0.15;  // of the host, in the table
  region.sites.push_back({"a", {10e-6, 8e-6, 8.1e-6, 8.2e-6}});
  region.region_time = [](const Configs& c) {
    const double seconds[] = {20e-6, 18.4e-6, 18e-6, 18.3e-6};
    return seconds[c[0]];
  };
  std::size_t compared = 0;
  while (region.tuning.progress().stage != Stage::Confirm && !region.tuning.finished()) {
    region.tuning.hold_passes(true);
    const PassPlan plan = region.FakeProgram::entry(false);
    if (plan.stage != Stage::Refine) continue;
    region.noise = 0.01;
    CHECK(plan.measure == Measure::Span);
    ++compared;
  }
  CHECK(region.winner(0) == 2);
  CHECK(compared > 0);
  CHECK(compared < 25);  // 49 by the noise of the table
}

TEST_CASE("A config that fails in the refinement is left out and the rest goes on", "[refine]") {
  FakeRegion region(TuningOptions{});
  region.noise = 0.003;
  region.sites.push_back({.name = "a", .seconds = {10e-6, 8e-6, 8.1e-6}});
  region.sites.push_back({.name = "b", .seconds = {10e-6, 8e-6, 8.1e-6}});
  while (region.tuning.progress().stage == Stage::Table) region.entry();
  REQUIRE(region.tuning.progress().stage == Stage::Refine);
  region.sites[0].failing = {1};
  region.run();
  CHECK(region.winner(0) == 2);
  CHECK(region.recorder.count(FallbackReason::LaunchFailed) == 1);
  std::size_t launched = 0;
  for (const auto& [pass, configs] : region.rows) launched += pass >= 24 && configs[0] == 1;
  CHECK(launched <= 2);
}

TEST_CASE("Nothing to gain costs no confirmation", "[confirm]") {
  FakeRegion region(TuningOptions{});
  region.sites.push_back({"a", {1e-6, 2e-6, 3e-6}});
  region.run();
  CHECK(region.tuning.progress().passes == 24);
  REQUIRE(region.recorder.confirms.size() == 1);
  CHECK(region.recorder.confirms[0].verdict == ConfirmVerdict::Skipped);
}

TEST_CASE("A clear gain is confirmed with the fewest pairs, alternating, without CUPTI",
          "[confirm]") {
  FakeRegion region(TuningOptions{});
  region.noise = 0.002;
  region.sites.push_back({"a", {2e-6, 1e-6}});
  Configs confirm;
  while (!region.tuning.finished()) {
    const PassPlan plan = region.entry();
    if (plan.stage != Stage::Confirm) continue;
    CHECK(plan.measure == Measure::Span);
    confirm.push_back(region.configs_run[0]);
  }
  CHECK(confirm == Configs{1, 0, 1, 1, 0, 0, 1, 1, 0});  // one to warm up, then ABBA
  REQUIRE(region.recorder.confirms.size() == 1);
  const ConfirmEvent& event = region.recorder.confirms[0];
  CHECK(event.verdict == ConfirmVerdict::Kept);
  CHECK(event.pairs == 4);
  CHECK(event.gain == Approx(0.5).margin(0.01));
  CHECK(event.bound > 0.45);
  CHECK(event.bound < event.gain);
  CHECK(event.before_seconds == Approx(2e-6).epsilon(0.01));
  CHECK(event.after_seconds == Approx(1e-6).epsilon(0.01));
  REQUIRE(event.gains.size() == 4);
  for (const double gain : event.gains) CHECK(gain == Approx(0.5).margin(0.01));
}

TEST_CASE("Calls of several launches are refined without CUPTI, which makes each dearer",
          "[refine]") {
  FakeRegion region(TuningOptions{});
  region.noise = 0.002;
  // By CUPTI the second looks the slower, as it makes more launches.
  region.sites.push_back({"a", {16e-6, 21e-6}});
  region.region_time = [](const Configs& c) { return c[0] == 0 ? 16e-6 : 13e-6; };
  SECTION("and what makes more of them than another may still win") {
    region.sites[0].in_pieces = true;
    std::size_t spans = 0;
    while (!region.tuning.finished()) {
      const PassPlan plan = region.entry();
      if (plan.stage != Stage::Refine) continue;
      CHECK(plan.measure == Measure::Span);
      ++spans;
    }
    CHECK(spans > 0);
    CHECK(region.winner(0) == 1);
  }
  SECTION("also where nothing else is refined, unless nothing is confirmed either") {
    TuningOptions options;
    options.refine = false;
    options.confirm = GENERATE(true, false);
    FakeRegion alone(options);
    alone.noise = 0.002;
    alone.sites = region.sites;
    alone.sites[0].in_pieces = true;
    alone.region_time = region.region_time;
    alone.run();
    CHECK(alone.winner(0) == (options.confirm ? 1U : 0U));
  }
  SECTION("but single launches keep what their own times say") {
    region.run();
    CHECK(region.winner(0) == 0);
  }
}

TEST_CASE("Of calls of several launches more configs are refined", "[refine]") {
  FakeRegion region(TuningOptions{});
  region.noise = 0.002;
  region.sites.push_back({"a", {100e-6, 50e-6, 51e-6, 52e-6, 53e-6, 54e-6, 60e-6, 70e-6}});
  region.sites[0].in_pieces = true;
  region.region_time = [](const Configs& c) { return c[0] == 6 ? 40e-6 : 50e-6 + 1e-6 * c[0]; };
  region.run();
  CHECK(region.winner(0) == 6);
}

TEST_CASE("A winner that makes the region slower is dropped, the good one stays", "[confirm]") {
  FakeRegion region({.refine = false});
  region.noise = 0.003;
  region.sites.push_back({"good", {10e-6, 7e-6}});
  region.sites.push_back({"false", {10e-6, 9e-6}});
  // Alone it looks faster; it takes from its neighbour more than it gives.
  region.region_time = [](const Configs& c) {
    return (c[0] == 1 ? 7e-6 : 10e-6) + (c[1] == 1 ? 15e-6 : 10e-6);
  };
  region.run();
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 0);
  REQUIRE(region.recorder.confirms.size() == 1);
  CHECK(region.recorder.confirms[0].verdict == ConfirmVerdict::Reduced);
  CHECK(region.recorder.confirms[0].tries == 2);
  CHECK(region.recorder.winner_of(1)->reason == WinnerReason::Dropped);
  CHECK(region.recorder.winner_of(0)->reason == WinnerReason::Fastest);
}

TEST_CASE("After three tries all sites keep their defaults", "[confirm]") {
  FakeRegion region({.refine = false});
  region.noise = 0.003;
  for (const char* name : {"a", "b", "c", "d"}) region.sites.push_back({name, {10e-6, 9e-6}});
  region.region_time = [](const Configs& c) {
    double sum = 40e-6;
    for (const std::uint32_t config : c) sum += config * 1e-6;
    return sum;
  };
  region.run();
  for (SiteIndex site = 0; site < 4; ++site) CHECK(region.winner(site) == 0);
  REQUIRE(region.recorder.confirms.size() == 1);
  CHECK(region.recorder.confirms[0].verdict == ConfirmVerdict::Defaults);
  CHECK(region.recorder.confirms[0].tries == 3);
  CHECK(region.recorder.count(FallbackReason::NotConfirmed) == 1);
}

TEST_CASE("A gain hidden in noise gets more pairs before it is kept", "[confirm]") {
  FakeRegion region({.margin = 0, .refine = false});
  region.noise = 0.02;
  region.sites.push_back({"a", {10e-6, 9.6e-6}});
  region.run();
  REQUIRE(region.recorder.confirms.size() == 1);
  CHECK(region.recorder.confirms[0].pairs > 4);
  CHECK(region.recorder.confirms[0].verdict == ConfirmVerdict::Kept);
}

TEST_CASE("Confirm compares only passes in which the same sites were launched", "[confirm]") {
  FakeRegion region({.refine = false});
  region.noise = 0.003;
  region.sites.push_back({"a", {10e-6, 9e-6}});
  // A long kernel comes every third pass: a mean over everything would be all noise.
  region.sites.push_back({.name = "long", .seconds = {500e-6}, .when = [](std::uint64_t entry) {
                            return entry % 3 == 0;
                          }});
  region.run();
  CHECK(region.winner(0) == 1);
  REQUIRE(region.recorder.confirms.size() == 1);
  CHECK(region.recorder.confirms[0].verdict == ConfirmVerdict::Kept);
}

TEST_CASE("Late results delay refine and confirm and do not change them", "[confirm]") {
  FakeRegion region(TuningOptions{});
  region.noise = 0.003;
  region.lag = 3;
  region.sites.push_back({"a", {10e-6, 8e-6, 8.2e-6}});
  region.sites.push_back({"b", {10e-6, 9e-6}});
  region.run();
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 1);
  CHECK(region.recorder.confirms[0].verdict == ConfirmVerdict::Kept);
}

TEST_CASE("A short region that is repeated is compared for longer than one that the program enters",
          "[confirm]") {
  const auto pairs = [](double seconds, bool bounded, std::uint64_t max_passes = 0) {
    FakeRegion region({.refine = false, .max_passes = max_passes});
    region.bounded = bounded;
    region.noise = 0.001;
    region.sites.push_back({"a", {2 * seconds, seconds}});
    region.run();
    REQUIRE(region.recorder.confirms.size() == 1);
    CHECK(region.recorder.confirms[0].verdict == ConfirmVerdict::Kept);
    return region.recorder.confirms[0].pairs;
  };
  CHECK(pairs(1e-6, true) == 4);
  CHECK(pairs(1e-6, false) == 32);
  CHECK(pairs(200e-6, false) == 16);  // eight are 4.8 ms
  CHECK(pairs(5e-3, false) == 4);
  CHECK(pairs(1e-6, false, 100) == 4);
}

TEST_CASE("A winner that fails while it is confirmed leaves, and the others are confirmed",
          "[confirm]") {
  FakeRegion region({.refine = false});
  region.noise = 0.003;
  region.sites.push_back({"a", {10e-6, 8e-6}});
  region.sites.push_back({"b", {10e-6, 9e-6}});
  while (region.tuning.progress().stage == Stage::Table) region.entry();
  REQUIRE(region.tuning.progress().stage == Stage::Confirm);
  region.sites[0].failing = {1};
  region.run();
  CHECK(region.winner(0) == 0);
  CHECK(region.recorder.winner_of(0)->reason == WinnerReason::Failed);
  CHECK(region.winner(1) == 1);
}

TEST_CASE("Ten tunings of a twelve-config and a five-config kernel agree within 1 %, in few passes",
          "[refine]") {
  const std::vector<double> axpy = {12e-6,   11e-6,   10.5e-6, 10.1e-6, 10e-6,   10.02e-6,
                                    10.3e-6, 10.9e-6, 13e-6,   15e-6,   11.5e-6, 10.05e-6};
  const std::vector<double> softmax = {14e-6, 12.1e-6, 12e-6, 12.02e-6, 16e-6};
  int good = 0;
  for (unsigned seed = 1; seed <= 10; ++seed) {
    FakeRegion region(TuningOptions{});
    region.engine.seed(seed);
    region.noise = 0.005;
    region.sites.push_back({"axpy", axpy});
    region.sites.push_back({"softmax", softmax});
    region.run();
    good += axpy[region.winner(0)] + softmax[region.winner(1)] <= 22e-6 * 1.01;
    CHECK(region.tuning.progress().passes <= 96 + 140);
  }
  CHECK(good == 10);
}
