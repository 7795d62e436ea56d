// How good the winners are: simulated regions with known times, tuned by the real engine.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "core/search/tuning.hpp"
#include "core/trials/statistics.hpp"
#include "quality_landscape.hpp"

namespace contextune::bench {
namespace {

struct Arguments {
  int seeds = 200;
  std::uint64_t first_seed = 1;
  double noise = 0.02;
  bool list = false;
};

constexpr const char* help =
    "contextune_bench_quality: regret of tuned regions, simulated.\n"
    "\n"
    "Draws landscapes (2-5 sites, 4-12 configs each, slowest config 1.2-4 times the best, 30 % of\n"
    "the configs within 1 % of another, each site slowed by up to 10-30 % by what the site before\n"
    "it runs), tunes each with the real engine on noisy readings, and compares the region's true\n"
    "time with the best of all joint configs. No GPU is involved: every figure is simulated.\n"
    "\n"
    "  --seeds N       landscapes, one a seed (default 200)\n"
    "  --first-seed N  the first seed (default 1)\n"
    "  --noise SHARE   standard deviation of every reading (default 0.02)\n"
    "  --list          also print one line a landscape\n"
    "  --help          this text\n";

/// Independent of the standard library's own normal distribution.
class Noise {
 public:
  Noise(std::uint64_t seed, double share) : engine_(seed), share_(share) {}
  double factor() {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(engine_() >> 11) * 0x1p-53;
    return 1 + share_ * sum;
  }

 private:
  std::mt19937_64 engine_;
  double share_;
};

struct Outcome {
  double regret = 0;
  double against_default = 0;  ///< above 0: slower
  double passes = 0;
};

Outcome tune(const Landscape& landscape, const TuningOptions& options, std::uint64_t seed,
             double noise) {
  TuningObserver quiet;
  Tuning tuning(options, &quiet);
  Noise reading(seed * 7919 + 17, noise);
  std::vector<SiteIndex> launched;
  for (std::size_t site = 0; site < landscape.num_sites(); ++site) {
    SiteSpec spec;
    spec.name = "site" + std::to_string(site);
    for (std::uint32_t i = 0; i < landscape.num_configs(site); ++i)
      spec.configs.push_back({{"variant", std::int64_t{i}}});
    launched.push_back(tuning.add_site(std::move(spec)));
  }
  double now = 0;
  while (!tuning.finished()) {
    const PassPlan plan = tuning.begin_pass(PassId{tuning.progress().entries}, now);
    const std::vector<std::uint32_t> configs(plan.configs.begin(), plan.configs.end());
    now += landscape.region_seconds(configs);
    tuning.end_pass(plan.pass, launched, {}, now);
    if (plan.measure == Measure::Nothing) continue;
    PassResult result;
    result.pass = plan.pass;
    result.region_seconds = landscape.region_seconds(configs) * reading.factor();
    for (std::size_t site = 0; plan.measure == Measure::Activity && site < configs.size(); ++site) {
      result.sites.push_back({static_cast<SiteIndex>(site), configs[site], 1,
                              landscape.site_seconds(site, configs) * reading.factor(),
                              SiteResult::Status::Measured});
    }
    tuning.add_result(result, now);
  }
  const std::vector<std::uint32_t> winners(tuning.winners().begin(), tuning.winners().end());
  const std::vector<std::uint32_t> defaults(winners.size(), 0);
  const double reached = landscape.region_seconds(winners);
  return {reached / landscape.best_seconds() - 1, reached / landscape.region_seconds(defaults) - 1,
          static_cast<double>(tuning.progress().passes)};
}

double percentile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
  return values[std::max<std::size_t>(rank, 1) - 1];
}

void report(const char* name, const std::vector<Outcome>& outcomes) {
  std::vector<double> regrets;
  std::vector<double> passes;
  double within_1 = 0;
  double within_5 = 0;
  int slower = 0;
  for (const Outcome& outcome : outcomes) {
    regrets.push_back(outcome.regret);
    passes.push_back(outcome.passes);
    within_1 += outcome.regret <= 0.01;
    within_5 += outcome.regret <= 0.05;
    slower += outcome.against_default > 1e-12;
  }
  const auto share = [&](double count) {
    return 100 * count / static_cast<double>(outcomes.size());
  };
  std::printf("%-28s %6.2f %6.2f %6.2f  %6.1f %6.1f  %6d  %5.0f %5.0f %5.0f  simulated\n", name,
              100 * percentile(regrets, 0.5), 100 * percentile(regrets, 0.95),
              100 * percentile(regrets, 1), share(within_1), share(within_5), slower,
              percentile(passes, 0.5), percentile(passes, 0.95), percentile(passes, 1));
}

template <typename Number>
bool read(const char* text, Number& number) {
  const char* end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, number);
  return error == std::errc{} && stop == end;
}

int fail(const char* what, const char* value) {
  std::fprintf(stderr, "contextune_bench_quality: %s '%s'; --help lists the options\n", what,
               value);
  return 2;
}

}  // namespace

int run(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--help") {
      std::fputs(help, stdout);
      return 0;
    }
    if (name == "--list") {
      arguments.list = true;
      continue;
    }
    if (name != "--seeds" && name != "--noise" && name != "--first-seed") {
      return fail("there is no option", argv[i]);
    }
    if (i + 1 == argc) return fail("a value is missing after", argv[i]);
    const char* value = argv[++i];
    const bool good = name == "--seeds"        ? read(value, arguments.seeds)
                      : name == "--first-seed" ? read(value, arguments.first_seed)
                                               : read(value, arguments.noise);
    if (!good || arguments.seeds < 1 || !(arguments.noise >= 0 && arguments.noise < 0.5)) {
      return fail((name + " cannot be").c_str(), value);
    }
  }

  struct Variant {
    const char* name;
    ScheduleKind schedule;
    bool refine;
    bool confirm;
  };
  const Variant variants[] = {
      {"table alone", ScheduleKind::Table, false, false},
      {"table + confirm", ScheduleKind::Table, false, true},
      {"table + refine + confirm", ScheduleKind::Table, true, true},
      {"interleaved + refine + conf.", ScheduleKind::Interleaved, true, true},
      {"racing + refine + confirm", ScheduleKind::Racing, true, true},
  };
  std::printf(
      "simulated: %d landscapes (seeds %llu to %llu), noise %.1f %% of every reading\n"
      "regret of the region against the best joint config, noise-free, in %%; passes spent\n\n"
      "%-28s %6s %6s %6s  %6s %6s  %6s  %5s %5s %5s\n",
      arguments.seeds, static_cast<unsigned long long>(arguments.first_seed),
      static_cast<unsigned long long>(arguments.first_seed) +
          static_cast<unsigned long long>(arguments.seeds) - 1,
      100 * arguments.noise, "", "median", "95th", "worst", "<=1%", "<=5%", "slower", "p50", "p95",
      "max");
  for (const Variant& variant : variants) {
    TuningOptions options;
    options.schedule = variant.schedule;
    options.refine = variant.refine;
    options.confirm = variant.confirm;
    std::vector<Outcome> outcomes;
    for (int i = 0; i < arguments.seeds; ++i) {
      const std::uint64_t seed = arguments.first_seed + static_cast<std::uint64_t>(i);
      const Landscape landscape(seed);
      outcomes.push_back(tune(landscape, options, seed, arguments.noise));
      if (!arguments.list) continue;
      std::printf("%s seed=%llu sites=%zu regret=%.2f%% against_default=%.2f%% passes=%.0f\n",
                  variant.name, static_cast<unsigned long long>(seed), landscape.num_sites(),
                  100 * outcomes.back().regret, 100 * outcomes.back().against_default,
                  outcomes.back().passes);
    }
    report(variant.name, outcomes);
  }
  std::printf("\nslower: landscapes in which the tuned region is slower than with all defaults\n");
  return 0;
}

}  // namespace contextune::bench

int main(int argc, char** argv) {
  return contextune::bench::run(argc, argv);
}
