// What every kept winner is worth to the region: each is left out once.
#include "catch.hpp"
#include "fake_region.hpp"
#include "several_ranks.hpp"

using namespace contextune;
using namespace contextune::tests;

namespace {

/// Two kernels whose own times both fall; the second one's winner costs its neighbour more.
double rides_along(const Configs& c) {
  return (c[0] == 1 ? 7e-6 : 10e-6) + (c[1] == 1 ? 10.5e-6 : 10e-6);
}

TuningOptions without_refine() {
  TuningOptions options;
  options.refine = false;
  return options;
}

}  // namespace

TEST_CASE("A winner that rides along with a better one goes back to its default", "[left_out]") {
  FakeRegion region(without_refine());
  region.noise = 0.003;
  region.sites.push_back({"good", {10e-6, 7e-6}});
  region.sites.push_back({"rides along", {10e-6, 9e-6}});
  region.region_time = rides_along;
  region.bounded = GENERATE(true, false);
  region.lag = GENERATE(0U, 3U);
  region.run();
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 0);
  CHECK(region.recorder.winner_of(0)->reason == WinnerReason::Fastest);
  CHECK(region.recorder.winner_of(1)->reason == WinnerReason::Dropped);

  // It was left out first, as it gains least; what is then alone needs no more than the whole's.
  REQUIRE(region.recorder.left_out_events.size() == 1);
  const LeftOutEvent& event = region.recorder.left_out_events[0];
  CHECK(event.site == 1);
  CHECK_FALSE(event.kept);
  CHECK(event.gain == Approx(-0.5 / 17).margin(0.01));
  CHECK(event.pairs >= 4);
  CHECK(event.without_seconds == Approx(17e-6).epsilon(0.01));
  CHECK(event.with_seconds == Approx(17.5e-6).epsilon(0.01));

  // What stays was compared as it stays.
  REQUIRE(region.recorder.confirms.size() == 1);
  const ConfirmEvent& confirm = region.recorder.confirms[0];
  CHECK(confirm.verdict == ConfirmVerdict::Reduced);
  CHECK(confirm.tries == 2);
  CHECK(confirm.after_seconds == Approx(17e-6).epsilon(0.01));
  CHECK(confirm.gain == Approx(0.15).margin(0.01));
}

TEST_CASE("Winners that each help are kept, each after it was left out once, in alternation",
          "[left_out]") {
  FakeRegion region(without_refine());
  region.noise = 0.002;
  region.sites.push_back({"much", {10e-6, 7e-6}});
  region.sites.push_back({"little", {10e-6, 9e-6}});
  std::vector<Configs> ran;
  while (!region.tuning.finished()) {
    const PassPlan plan = region.entry();
    if (plan.stage != Stage::Confirm) continue;
    CHECK(plan.measure == Measure::Span);
    ran.push_back(region.configs_run);
  }
  const Configs all{1, 1};
  const Configs none{0, 0};
  const Configs much{1, 0};
  const Configs little{0, 1};
  CHECK(ran == std::vector<Configs>{all, none, all, all, none, none, all, all, none, much, all, all,
                                    much, little, all, all, little});
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 1);
  REQUIRE(region.recorder.left_out_events.size() == 2);
  CHECK(region.recorder.left_out_events[0].site == 1);
  CHECK(region.recorder.left_out_events[1].site == 0);
  for (const LeftOutEvent& event : region.recorder.left_out_events) {
    CHECK(event.kept);
    CHECK(event.pairs == 2);
    CHECK(event.gain > 0);
  }
  REQUIRE(region.recorder.confirms.size() == 1);
  CHECK(region.recorder.confirms[0].verdict == ConfirmVerdict::Kept);
  CHECK(region.recorder.confirms[0].tries == 1);
}

TEST_CASE("Leaving out winners whose own times leave no doubt takes few passes of a short region",
          "[left_out]") {
  FakeRegion region(without_refine());
  region.noise = 0.01;
  region.bounded = false;
  region.sites.push_back({"much", {10e-6, 7e-6}});
  region.sites.push_back({"little", {10e-6, 9e-6}});
  std::size_t passes = 0;
  while (!region.tuning.finished()) passes += region.entry().stage == Stage::Confirm ? 1U : 0U;
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 1);
  REQUIRE(region.recorder.left_out_events.size() == 2);
  // All pairs that the whole may have, for 5 ms of the region are more than those.
  const std::size_t of_whole = 2 * 32 + 1;
  CHECK(passes <= of_whole + 2 * 2 * 4);
}

TEST_CASE("A winner whose own times may be the default's is left out for as long as the whole",
          "[left_out]") {
  FakeRegion region(without_refine());
  region.noise = 0.02;
  region.bounded = false;
  region.sites.push_back({"clear", {10e-6, 7e-6}});
  region.sites.push_back({"may be", {10e-6, 9.7e-6}});
  region.run();
  REQUIRE(region.winner(1) == 1);
  REQUIRE(region.recorder.left_out_events.size() == 2);
  CHECK(region.recorder.left_out_events[0].site == 1);
  CHECK(region.recorder.left_out_events[0].pairs == 32);
  CHECK(region.recorder.left_out_events[1].site == 0);
  CHECK(region.recorder.left_out_events[1].pairs < 8);
}

TEST_CASE("Of two winners of which either is enough one stays", "[left_out]") {
  FakeRegion region(without_refine());
  region.sites.push_back({"a", {10e-6, 8e-6}});
  region.sites.push_back({"b", {10e-6, 9e-6}});
  region.region_time = [](const Configs& c) { return c[0] == 1 || c[1] == 1 ? 16e-6 : 20e-6; };
  region.run();
  CHECK(region.winner(0) + region.winner(1) == 1);
  CHECK(region.recorder.confirms[0].gain == Approx(0.2).margin(0.02));
}

TEST_CASE("A winner that was chosen on the region's time alone is left out first", "[left_out]") {
  FakeRegion region(TuningOptions{});
  region.noise = 0.003;
  region.sites.push_back({"compute", {10e-6, 7e-6}});
  region.sites.push_back(
      {.name = "collective", .seconds = {5e-6, 4e-6}, .objective = Objective::Region});
  region.run();
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 1);
  REQUIRE(region.recorder.left_out_events.size() == 2);
  CHECK(region.recorder.left_out_events[0].site == 1);
}

TEST_CASE("Leaving out many winners takes a bounded number of passes", "[left_out]") {
  TuningOptions options = without_refine();
  options.margin = 0;
  FakeRegion region(options);
  region.noise = 0.05;
  const std::size_t num_sites = 100;
  for (std::size_t i = 0; i < num_sites; ++i)
    region.sites.push_back({"kernel-" + std::to_string(i), {10e-6, 9.7e-6}});
  std::size_t passes = 0;
  while (!region.tuning.finished()) passes += region.entry().stage == Stage::Confirm ? 1U : 0U;
  CHECK(region.recorder.left_out_events.size() > 10);
  CHECK(passes <= 2 * 4 * num_sites + 3 * 65);
}

TEST_CASE("The limit on passes ends the leaving out, and what was shown together stays",
          "[left_out]") {
  TuningOptions options = without_refine();
  // The table, the whole's comparison, and half of what it takes to leave out one.
  options.max_passes = 16 + 9 + 2;
  FakeRegion region(options);
  region.noise = 0.002;
  region.sites.push_back({"a", {10e-6, 7e-6}});
  region.sites.push_back({"b", {10e-6, 9e-6}});
  region.run();
  CHECK(region.tuning.progress().passes == options.max_passes);
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 1);
  CHECK(region.recorder.left_out_events.empty());
  REQUIRE(region.recorder.confirms.size() == 1);
  CHECK(region.recorder.confirms[0].verdict == ConfirmVerdict::Kept);
  CHECK(region.recorder.confirms[0].gain == Approx(0.2).margin(0.01));
}

TEST_CASE("A winner that fails while another is left out leaves, and the rest is compared anew",
          "[left_out]") {
  FakeRegion region(without_refine());
  region.noise = 0.003;
  region.sites.push_back({"a", {10e-6, 7e-6}});
  region.sites.push_back({"b", {10e-6, 8e-6}});
  region.sites.push_back({"c", {10e-6, 9e-6}});
  while (region.tuning.progress().stage != Stage::Confirm) region.entry();
  for (int pass = 0; pass < 11; ++pass) region.entry();
  REQUIRE(region.recorder.left_out_events.empty());
  region.sites[0].failing = {1};
  region.run();
  CHECK(region.winner(0) == 0);
  CHECK(region.recorder.winner_of(0)->reason == WinnerReason::Failed);
  CHECK(region.winner(1) == 1);
  CHECK(region.winner(2) == 1);
  CHECK(region.recorder.confirms[0].verdict == ConfirmVerdict::Reduced);
  CHECK(region.recorder.confirms[0].gain == Approx(0.1).margin(0.01));
}

TEST_CASE("Without a sample nothing is dropped that was shown with the others", "[left_out]") {
  FakeRegion region(without_refine());
  region.noise = 0.003;
  region.sites.push_back({"a", {10e-6, 7e-6}});
  region.sites.push_back({"b", {10e-6, 9e-6}});
  while (region.tuning.progress().stage != Stage::Confirm) region.entry();
  for (int pass = 0; pass < 10; ++pass) region.entry();
  for (std::uint64_t pass = region.tuning.progress().passes; pass < 1000; ++pass)
    region.throttled.insert(pass);
  region.run();
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 1);
}

TEST_CASE("Ranks leave out the same winner, which one of them is slower with", "[left_out]") {
  SeveralRanks ranks(2, without_refine());
  ranks.add("good", {{10e-6, 7e-6}, {10e-6, 7e-6}});
  ranks.add("rides along", {{10e-6, 9e-6}, {10e-6, 9e-6}});
  ranks[0].region_time = [](const Configs& c) {
    return (c[0] == 1 ? 7e-6 : 10e-6) + (c[1] == 1 ? 9e-6 : 10e-6);
  };
  ranks[1].region_time = rides_along;
  ranks.run();
  require_same_passes(ranks);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(ranks[rank].winner(0) == 1);
    CHECK(ranks[rank].winner(1) == 0);
    const RankRecorder& recorder = ranks[rank].recorder;
    REQUIRE(recorder.left_out_events.size() == 1);
    CHECK(recorder.left_out_events[0].site == 1);
    CHECK_FALSE(recorder.left_out_events[0].kept);
    REQUIRE(recorder.confirms.size() == 1);
    CHECK(recorder.confirms[0].verdict == ConfirmVerdict::Reduced);
  }
}
