#include "core/search/race.hpp"

#include <cmath>
#include <random>
#include <vector>

#include "catch.hpp"
#include "core/search/confirm.hpp"
#include "core/search/experiment.hpp"
#include "core/search/refine.hpp"
#include "core/search/region_baseline.hpp"

using namespace contextune;

namespace {

/// Runs a race whose arms take these seconds; returns how many passes it took.
int run(Race& race, const std::vector<double>& seconds, double noise = 0, unsigned seed = 1) {
  std::mt19937_64 engine(seed);
  int passes = 0;
  while (!race.round().empty()) {
    std::vector<RegionSample> samples;
    for (const std::size_t arm : race.round()) {
      double sum = -6;
      for (int i = 0; i < 12; ++i) sum += static_cast<double>(engine() >> 11) * 0x1p-53;
      samples.push_back({seconds[arm] * (1 + noise * sum), 0});
      ++passes;
    }
    race.complete(samples);
  }
  return passes;
}

}  // namespace

TEST_CASE("A race finds the fastest arm", "[race]") {
  Race race(4, {}, {0.01, 8});
  run(race, {10, 9, 8, 9}, 0.01);
  CHECK(race.best() == 2);
  CHECK(race.relative_to_first(2) == Approx(0.8).margin(0.02));
}

TEST_CASE("A clear difference is decided in one round, a doubtful one takes more", "[race]") {
  Race clear(2, {}, {0.01, 8});
  CHECK(run(clear, {5, 10}, 0.01) == 2);
  int passes = 0;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    Race doubtful(2, {}, {0.02, 8});
    passes += run(doubtful, {10, 9.9}, 0.02, seed);
  }
  CHECK(passes > 20 * 3);
}

TEST_CASE("The arm that a race begins with does not lose it by one interrupted pass", "[race]") {
  Race race(3, {}, {0.005, 8});
  race.complete(std::vector<RegionSample>{{15, 0}, {10.5, 0}, {10.6, 0}});
  run(race, {10, 10.5, 10.6}, 0.005);
  CHECK(race.best() == 0);
}

TEST_CASE("Ties end as soon as they are known to be ties", "[race]") {
  Race quiet(3, {}, {0.002, 8});
  CHECK(run(quiet, {10, 10, 10}, 0.002) == 3);
}

TEST_CASE("A race ends after its most rounds", "[race]") {
  RaceLimits limits;
  limits.tolerance = 0;
  limits.max_rounds = 5;
  Race race(2, limits, {0.02, 8});
  CHECK(run(race, {10, 10}, 0.02) == 10);
}

TEST_CASE("Rounds go forwards and backwards in turn", "[race]") {
  RaceLimits limits;
  limits.tolerance = 0;
  Race race(3, limits, {});
  CHECK(race.round() == std::vector<std::size_t>{0, 1, 2});
  race.complete(std::vector<RegionSample>{{10, 0}, {10, 0}, {10, 0}});
  CHECK(race.round() == std::vector<std::size_t>{2, 1, 0});
}

TEST_CASE("Rounds that take less than a look are run without one in between", "[race]") {
  RaceLimits limits;
  limits.tolerance = 0;
  limits.passes_at_once = 11;
  limits.max_rounds = 7;
  Race race(2, limits, {});
  CHECK(race.round() == std::vector<std::size_t>{0, 1, 1, 0, 0, 1, 1, 0, 0, 1});
  race.complete(std::vector<RegionSample>(10, {10, 0}));
  CHECK(race.round() == std::vector<std::size_t>{1, 0, 0, 1});
  race.complete(std::vector<RegionSample>(4, {10, 0}));
  CHECK(race.round().empty());
}

TEST_CASE("Where looks are dear each is at four times as many rounds", "[race]") {
  RaceLimits limits;
  limits.tolerance = 0;
  limits.passes_at_once = 1;
  Race race(8, limits, {});
  CHECK(race.round().size() == 4 * 8);
  race.complete(std::vector<RegionSample>(4 * 8, {10, 0}));
  CHECK(race.round().size() == 12 * 8);
}

TEST_CASE("Without samples the first arm stays", "[race]") {
  Race race(2, {}, {});
  while (!race.round().empty())
    race.complete(std::vector<RegionSample>(race.round().size(), {NAN, 0}));
  CHECK(race.best() == 0);
  CHECK(std::isnan(race.relative_to_first(1)));
}

TEST_CASE("An arm that cannot be launched leaves the race", "[race]") {
  Race race(3, {}, {0.01, 8});
  race.complete(std::vector<RegionSample>{{10, 0}, {INFINITY, 0}, {9.9, 0}});
  for (const std::size_t arm : race.round()) CHECK(arm != 1);
  run(race, {10, 1, 9}, 0.005);
  CHECK(race.best() == 2);
}

TEST_CASE("Passes in other situations are compared among themselves", "[race]") {
  Race race(2, {}, {0.005, 8});
  // Situation 1 takes ten times as long; arm 1 is always 10 % faster.
  bool long_one = false;
  while (!race.round().empty()) {
    std::vector<RegionSample> samples;
    for (const std::size_t arm : race.round()) {
      const double base = long_one ? 100 : 10;
      samples.push_back({base * (arm == 1 ? 0.9 : 1), long_one ? 1U : 0U});
      long_one = !long_one;
    }
    race.complete(samples);
  }
  CHECK(race.best() == 1);
}

TEST_CASE("A comparison with no gain is wrongly kept in fewer than 5 % of tries", "[confirm]") {
  int kept = 0;
  std::mt19937_64 engine(11);
  for (int i = 0; i < 2000; ++i) {
    Comparison comparison({4, 32});
    while (!comparison.batch().empty()) {
      std::vector<RegionSample> samples;
      for (std::size_t pass = 0; pass < comparison.batch().size(); ++pass) {
        double sum = -6;
        for (int k = 0; k < 12; ++k) sum += static_cast<double>(engine() >> 11) * 0x1p-53;
        samples.push_back({1 + 0.02 * sum, 0});
      }
      comparison.complete(samples);
    }
    kept += comparison.verdict() == Comparison::Verdict::Faster;
  }
  CHECK(kept < 100);
  CHECK(kept > 0);
}

TEST_CASE("What a machine does for a moment is not taken for a gain of a short region",
          "[confirm]") {
  // The defaults take 100 or 140 us by turns that last 2 ms in the mean, the winners 120 us always;
  // between passes there are 150 us.
  constexpr double dwell = 2e-3, between = 150e-6;
  int kept = 0;
  std::mt19937_64 engine(3);
  const auto uniform = [&] { return (static_cast<double>(engine() >> 11) + 1) * 0x1p-53; };
  for (int i = 0; i < 1000; ++i) {
    Comparison comparison({4, 32, 5e-3});
    bool slow = uniform() < 0.5;
    double left = -dwell * std::log(uniform());
    while (!comparison.batch().empty()) {
      std::vector<RegionSample> samples;
      for (const bool winners : comparison.batch()) {
        const double seconds =
            (winners ? 120e-6 : (slow ? 140e-6 : 100e-6)) * (1 + 0.04 * (uniform() - 0.5));
        samples.push_back({seconds, 0});
        for (left -= seconds + between; left < 0; left -= dwell * std::log(uniform())) slow = !slow;
      }
      comparison.complete(samples);
    }
    kept += comparison.verdict() == Comparison::Verdict::Faster;
  }
  CHECK(kept < 80);  // 273 where four pairs are enough
}

TEST_CASE("A comparison without samples shows nothing", "[confirm]") {
  Comparison comparison({4, 8});
  int batches = 0;
  while (!comparison.batch().empty()) {
    comparison.complete(std::vector<RegionSample>(comparison.batch().size(), {NAN, 0}));
    REQUIRE(++batches < 10);
  }
  CHECK(comparison.verdict() == Comparison::Verdict::NotShown);
}

TEST_CASE("An experiment is complete when every slot is settled, in any order", "[experiment]") {
  Experiment experiment;
  experiment.start({{0}, {1}, {2}}, 1);
  CHECK(experiment.take_next() == Assignment{0});
  CHECK(experiment.next_slot() == 1);
  CHECK_FALSE(experiment.complete());
  experiment.settle(2, {3, 0});
  experiment.settle(0, {1, 0});
  CHECK_FALSE(experiment.complete());
  experiment.settle(1, {2, 0});
  CHECK(experiment.complete());
  REQUIRE(experiment.samples().size() == 2);
  CHECK(experiment.samples()[0].seconds == 2);
}

TEST_CASE("The baseline learns the noise from passes that change nothing", "[baseline]") {
  RegionBaseline baseline;
  CHECK(baseline.noise().degrees == 0);
  std::mt19937_64 engine(5);
  const std::vector<std::uint32_t> configs[2] = {{0, 0}, {1, 2}};
  for (int i = 0; i < 400; ++i) {
    double sum = -6;
    for (int k = 0; k < 12; ++k) sum += static_cast<double>(engine() >> 11) * 0x1p-53;
    const bool other = i / 8 % 2 == 1;
    baseline.add(Measure::Activity, 0, configs[other ? 1 : 0],
                 (other ? 30e-6 : 10e-6) * (1 + 0.01 * sum));
  }
  CHECK(baseline.noise().relative == Approx(0.01).epsilon(0.2));
  CHECK(baseline.excess(Measure::Activity, 0, 30e-6) == Approx(20e-6).epsilon(0.05));
  CHECK(baseline.excess(Measure::Activity, 0, 5e-6) == 0);
  CHECK(baseline.excess(Measure::Span, 0, 30e-6) == 0);
  CHECK(baseline.excess(Measure::Activity, 1, 30e-6) == 0);
}

TEST_CASE("A comparison that is not going to show a gain gives up early", "[confirm]") {
  Comparison comparison({4, 32});
  std::mt19937_64 engine(2);
  int passes = 0;
  while (!comparison.batch().empty()) {
    std::vector<RegionSample> samples;
    for (const bool winners : comparison.batch()) {
      double sum = -6;
      for (int k = 0; k < 12; ++k) sum += static_cast<double>(engine() >> 11) * 0x1p-53;
      samples.push_back({(winners ? 1.01 : 1) * (1 + 0.003 * sum), 0});
      ++passes;
    }
    comparison.complete(samples);
  }
  CHECK(comparison.verdict() == Comparison::Verdict::NotShown);
  CHECK(passes == 16);
}

TEST_CASE("A refinement of sites that make no difference ends after its most passes", "[refine]") {
  RefineLimits limits;
  limits.max_passes = 200;
  Refine refine(std::vector<RefineSite>(8, {0, {0, 1, 2, 3, 4, 5, 6, 7}}), limits, {});
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(1.0, 0.1);
  std::size_t passes = 0;
  while (!refine.batch().empty()) {
    std::vector<RegionSample> samples;
    for (std::size_t i = 0; i < refine.batch().size(); ++i) samples.push_back({noise(random), 0});
    passes += samples.size();
    REQUIRE(passes < 1000);
    refine.complete(samples);
  }
  // The race under way goes on to its end: eight arms, sixteen rounds.
  CHECK(passes >= 200);
  CHECK(passes < 200 + 8 * 16);
}

namespace {

/// Runs it where config 1 of each site is 10 % faster than any other.
/// @return how often it looked at samples
int run_to_the_end(Refine& refine) {
  int looks = 0;
  for (; !refine.batch().empty(); ++looks) {
    std::vector<RegionSample> samples;
    for (const Assignment& configs : refine.batch()) {
      double seconds = 0;
      for (const std::uint32_t config : configs) seconds += config == 1 ? 0.9 : 1;
      samples.push_back({seconds, 0});
    }
    refine.complete(samples);
  }
  return looks;
}

}  // namespace

TEST_CASE("Sites are raced at the same time where looks are dear", "[refine]") {
  const std::vector<RefineSite> sites(4, {0, {0, 1, 2}});
  RefineLimits limits;
  Refine in_turn(sites, limits, {0.01, 8});
  const int looks_in_turn = run_to_the_end(in_turn);
  limits.at_once = true;
  limits.race.passes_at_once = 1;
  Refine at_once(sites, limits, {0.01, 8});
  const Assignment first = at_once.batch().front();
  CHECK(first == Assignment{0, 0, 0, 0});
  // Each moves beside what the others had: four rounds of three configs for each of four sites.
  CHECK(at_once.batch().size() == 4 * 4 * 3);
  for (const Assignment& configs : at_once.batch())
    CHECK(std::count(configs.begin(), configs.end(), 0U) >= 3);
  const int looks = run_to_the_end(at_once);
  CHECK(at_once.best() == Assignment{1, 1, 1, 1});
  CHECK(in_turn.best() == at_once.best());
  CHECK(2 * looks < looks_in_turn);
}

TEST_CASE("No more sites are raced at the same time than make a look cheap", "[refine]") {
  RefineLimits limits;
  limits.at_once = true;
  limits.race.passes_at_once = 1;
  Refine refine(std::vector<RefineSite>(100, {0, {0, 1, 2, 3}}), limits, {0.01, 8});
  CHECK(refine.batch().size() >= 128);
  CHECK(refine.batch().size() < 128 + 4 * 4);
}

TEST_CASE("Sites that are faster only one at a time do not both move", "[refine]") {
  RefineLimits limits;
  limits.at_once = true;
  limits.race.passes_at_once = 1;
  Refine refine(std::vector<RefineSite>(2, {0, {0, 1}}), limits, {0.01, 8});
  const auto seconds = [](const Assignment& configs) {
    const bool first = configs[0] == 1;
    const bool second = configs[1] == 1;
    return first && second ? 2.1 : first ? 1.8 : second ? 1.9 : 2.0;
  };
  while (!refine.batch().empty()) {
    std::vector<RegionSample> samples;
    for (const Assignment& configs : refine.batch()) samples.push_back({seconds(configs), 0});
    refine.complete(samples);
  }
  CHECK(refine.best() == Assignment{1, 0});
}
