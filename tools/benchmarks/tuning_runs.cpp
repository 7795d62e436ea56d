#include "tuning_runs.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <utility>
#include <vector>

#include <contextune/contextune.hpp>

#include "child.hpp"
#include "settings.hpp"
#include "tuning_log.hpp"

namespace tuning_bench {
namespace {

using contextune::Config;
using contextune::ConfigSpace;

constexpr const char* usage =
    "Tunes a region of two kernels from nothing, each time in a fresh process, and compares what "
    "the\n"
    "tunings chose.\n"
    "  --runs N     tunings (10)\n"
    "  --rounds N   rounds of the comparison (200)\n"
    "  --keep DIR   keep the rank logs there\n"
    "  --help\n";

struct Settings {
  int runs = 10;
  int rounds = 200;
  std::string keep;
  std::string child;  ///< file for the result of one tuning
};

/// What one tuning gave.
struct Outcome {
  double seconds = 0;
  int body_runs = 0;
  std::size_t axpy = 0;
  std::size_t softmax = 0;
  Parts parts;
  double region = 0;
};

Settings read_settings(int argc, char** argv) {
  Settings settings;
  bench::read_settings(argc, argv, usage,
                       {{"--runs", &settings.runs},
                        {"--rounds", &settings.rounds},
                        {"--keep", &settings.keep},
                        {"--child", &settings.child}});
  return settings;
}

/// One tuning, in a process of its own. Its result goes to a file: the GPU's libraries may print.
int tune_once(Gpu& gpu, const std::string& result) {
  gpu.prepare();
  contextune::Tunable axpy("axpy", axpy_space(),
                           [&gpu](const Config& config) { return gpu.axpy(config); });
  contextune::Tunable softmax("softmax", softmax_space(),
                              [&gpu](const Config& config) { return gpu.softmax(config); });
  std::size_t last_axpy = 0;
  std::size_t last_softmax = 0;
  const auto number_in = [](const auto& tunable, const Config& config) {
    const auto& configs = tunable.configs();
    return static_cast<std::size_t>(std::find(configs.begin(), configs.end(), config) -
                                    configs.begin());
  };
  int body_runs = 0;
  gpu.synchronise();
  const auto begin = std::chrono::steady_clock::now();
  CONTEXTUAL_AUTOTUNE("bench", {.repeatable = true, .n_warmup = 3, .n_repeat = 5}) {
    ++body_runs;
    axpy();
    softmax();
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  gpu.synchronise();
  contextune::Tunable axpy_winner(
      "axpy", axpy_space(), [&](const Config& config) { last_axpy = number_in(axpy, config); });
  contextune::Tunable softmax_winner("softmax", softmax_space(), [&](const Config& config) {
    last_softmax = number_in(softmax, config);
  });
  axpy_winner();
  softmax_winner();
  std::ofstream out(result);
  out << elapsed.count() << ' ' << body_runs << ' ' << last_axpy << ' ' << last_softmax << '\n';
  if (!gpu.check()) {
    std::fputs("tuning: the region's output is wrong\n", stderr);
    return 1;
  }
  return out.flush() ? 0 : 1;
}

/// Runs this program again for one tuning.
Outcome run_child(const std::string& folder) {
  std::filesystem::create_directories(folder);
  const std::string result = folder + "/result";
  bench::run_program({bench::this_program(), "--child", result},
                     {"CONTEXTUNE_DISABLE", "CONTEXTUNE_LOG_DIR=" + folder});
  Outcome outcome;
  std::ifstream in(result);
  if (!(in >> outcome.seconds >> outcome.body_runs >> outcome.axpy >> outcome.softmax)) {
    throw std::runtime_error("a tuning gave no result in " + result);
  }
  outcome.parts = read_parts(folder);
  return outcome;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// Times the winners of all tunings in alternation, so that drift hits all alike.
void compare(Gpu& gpu, int rounds, std::vector<Outcome>& outcomes) {
  constexpr int times = 20;  // regions an event pair, whose own cost would show otherwise
  const auto axpy = axpy_space().configs();
  const auto softmax = softmax_space().configs();
  std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> samples;
  for (const Outcome& outcome : outcomes) samples[{outcome.axpy, outcome.softmax}];
  for (int round = 0; round < rounds + 5; ++round) {
    for (auto& [pair, seconds] : samples) {
      const double sample = gpu.time_region(axpy[pair.first], softmax[pair.second], times);
      if (round >= 5) seconds.push_back(sample);
    }
  }
  for (Outcome& outcome : outcomes)
    outcome.region = median(samples[{outcome.axpy, outcome.softmax}]);
}

void report(const std::vector<Outcome>& outcomes, bool simulated) {
  const auto axpy = axpy_space().configs();
  const auto softmax = softmax_space().configs();
  std::printf("\n%3s %9s %9s %9s %9s %9s %9s %9s %7s %6s  %-24s %-12s %9s\n", "run", "total ms",
              "open", "table", "refine", "confirm", "release", "other", "passes", "table", "axpy",
              "softmax", "region us");
  double best = outcomes.front().region;
  for (const Outcome& outcome : outcomes) best = std::min(best, outcome.region);
  int within = 0;
  int in_time = 0;
  int table_as_wanted = 0;
  std::vector<double> totals;
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    const Parts& parts = outcome.parts;
    const double other =
        outcome.seconds - parts.open - parts.table - parts.refine - parts.confirm - parts.release;
    std::printf("%3zu %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %7d %6d  %-24s %-12s %9.3f\n", i,
                outcome.seconds * 1e3, parts.open * 1e3, parts.table * 1e3, parts.refine * 1e3,
                parts.confirm * 1e3, parts.release * 1e3, other * 1e3, outcome.body_runs,
                parts.table_passes, axpy[outcome.axpy].to_string().c_str(),
                softmax[outcome.softmax].to_string().c_str(), outcome.region * 1e6);
    totals.push_back(outcome.seconds);
    within += outcome.region <= best * 1.01 ? 1 : 0;
    in_time += outcome.seconds - parts.open <= 0.025 ? 1 : 0;
    table_as_wanted += parts.table_passes == 96 ? 1 : 0;
  }
  const auto [least, most] = std::minmax_element(totals.begin(), totals.end());
  std::printf("\ntotal: median %.2f ms, %.2f to %.2f ms%s\n", median(totals) * 1e3, *least * 1e3,
              *most * 1e3,
              simulated ? " (wall time of a simulation: says nothing about a GPU)" : "");
  std::printf("within 1 %% of the best region time: %d of %zu\n", within, outcomes.size());
  std::printf("table in 96 passes: %d of %zu\n", table_as_wanted, outcomes.size());
  if (!simulated) {
    std::printf("at most 25 ms after CUPTI has opened: %d of %zu\n", in_time, outcomes.size());
  }
}

}  // namespace

ConfigSpace axpy_space() {
  ConfigSpace space;
  space.parameter("block", {256, 128, 512, 1024}).parameter("per_sm", {1, 2, 8});
  return space;
}

ConfigSpace softmax_space() {
  ConfigSpace space;
  space.parameter("block", {1024, 512, 256, 128, 64});
  return space;
}

int run(int argc, char** argv, Gpu& gpu) {
  try {
    const Settings settings = read_settings(argc, argv);
    if (!settings.child.empty()) return tune_once(gpu, settings.child);
    // The comparison launches what it wants to time, and nothing else.
    setenv("CONTEXTUNE_DISABLE", "1", 1);
    const std::string folder = settings.keep.empty()
                                   ? std::filesystem::temp_directory_path() /
                                         ("contextune-bench-" + std::to_string(getpid()))
                                   : std::filesystem::path(settings.keep);
    std::vector<Outcome> outcomes;
    std::printf(
        "axpy (%zu configs) and row softmax (%zu configs) over %d x %d floats, n_warmup=3 "
        "n_repeat=5, body mode\n",
        axpy_space().configs().size(), softmax_space().configs().size(), rows, columns);
    for (int i = 0; i < settings.runs; ++i) {
      outcomes.push_back(run_child(folder + "/run-" + std::to_string(i)));
      std::printf("tuning %d of %d: %.2f ms\n", i + 1, settings.runs,
                  outcomes.back().seconds * 1e3);
      std::fflush(stdout);
    }
    const std::string name = gpu.prepare();
    std::printf("%s%s, timer %s\n", name.c_str(), gpu.simulated() ? " (simulated)" : "",
                outcomes.front().parts.timer.c_str());
    compare(gpu, settings.rounds, outcomes);
    report(outcomes, gpu.simulated());
    if (settings.keep.empty()) std::filesystem::remove_all(folder);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tuning: %s\n", error.what());
    return 1;
  }
}

}  // namespace tuning_bench
