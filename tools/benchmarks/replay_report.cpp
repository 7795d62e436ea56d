#include "replay_report.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

namespace replay_bench {
namespace {

/// Of one figure over the rounds.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

template <class Figure>
Spread over(const std::vector<Outcome>& outcomes, Figure figure) {
  std::vector<double> values;
  for (const Outcome& outcome : outcomes) values.push_back(figure(outcome));
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  const double median =
      values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
  return {median, values.front(), values.back()};
}

std::string text(const Spread& spread, int digits) {
  char line[96];
  std::snprintf(line, sizeof line, "%.*f (%.*f-%.*f)", digits, spread.median, digits, spread.least,
                digits, spread.most);
  return line;
}

void print_modes(const std::vector<ModeOutcomes>& modes) {
  std::printf("\n%-7s %-15s %-18s %-28s %-28s %-24s %s\n", "mode", "visits", "passes", "tuning ms",
              "passes/s", "region us, defaults", "with the winners");
  for (const auto& [mode, outcomes] : modes) {
    const auto row = [&, &list = outcomes](auto figure, int digits) {
      return text(over(list, figure), digits);
    };
    const std::string name = mode;
    const auto visits = [&](const Outcome& one) {
      return name == "live" ? one.tuning.entries : name == "replay" ? one.tuning.visit : 1;
    };
    std::printf("%-7s %-15s %-18s %-28s %-28s %-24s %s\n", mode.c_str(), row(visits, 0).c_str(),
                row([](const Outcome& one) { return one.tuning.passes; }, 0).c_str(),
                row([](const Outcome& one) { return one.seconds * 1e3; }, 1).c_str(),
                row([](const Outcome& one) { return one.tuning.passes / one.seconds; }, 0).c_str(),
                row([](const Outcome& one) { return one.tuning.before * 1e6; }, 2).c_str(),
                row([](const Outcome& one) { return one.tuning.after * 1e6; }, 2).c_str());
  }
}

void print_winners(const std::vector<ModeOutcomes>& modes) {
  std::map<std::string, std::map<std::string, std::map<std::string, int>>> counts;
  for (const auto& [mode, outcomes] : modes)
    for (const Outcome& one : outcomes)
      for (const auto& [site, config] : one.tuning.winners) ++counts[site][config][mode];
  bool same = true;
  std::printf("\nwinners\n");
  for (const auto& [site, configs] : counts) {
    same = same && configs.size() == 1;
    for (const auto& [config, by_mode] : configs) {
      std::printf("  %-10s %-28s", site.c_str(), config.c_str());
      for (const auto& [mode, count] : by_mode) std::printf(" %s %d", mode.c_str(), count);
      std::printf("\n");
    }
  }
  if (same) {
    std::printf("  the same in all tunings\n");
    return;
  }
  std::vector<double> times;
  for (const ModeOutcomes& one : modes)
    times.push_back(over(one.outcomes, [](const Outcome& it) { return it.tuning.after; }).median);
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  std::printf("  not the same in all tunings; with them the region's time differs by %.1f %%\n",
              (*most / *least - 1) * 100);
}

void print_pass(const std::vector<Outcome>& outcomes) {
  const auto row = [&](const char* what, auto figure, int digits) {
    std::printf("  %-44s %s\n", what, text(over(outcomes, figure), digits).c_str());
  };
  constexpr double mib = 1048576;
  std::printf("\none run of the recording, us\n");
  row(
      "all of it",
      [](const Outcome& one) { return one.tuning.replay_seconds / one.tuning.replays * 1e6; }, 1);
  row(
      "the region itself, with the defaults",
      [](const Outcome& one) { return one.tuning.before * 1e6; }, 2);
  row(
      "putting the memory back", [](const Outcome& one) { return one.tuning.restore * 1e6; }, 1);
  row(
      "hashing it all, after some runs only",
      [](const Outcome& one) { return one.tuning.hash * 1e6; }, 1);
  std::printf("once a tuning\n");
  row(
      "saving the memory, us", [](const Outcome& one) { return one.tuning.save * 1e6; }, 1);
  row(
      "runs, those that check results included",
      [](const Outcome& one) { return one.tuning.replays; }, 0);
  std::printf("memory, MiB\n");
  row(
      "looked at", [](const Outcome& one) { return one.tuning.footprint_bytes / mib; }, 1);
  row(
      "put back before each run", [](const Outcome& one) { return one.tuning.dirty_bytes / mib; },
      1);
  row(
      "copies on the device", [](const Outcome& one) { return one.tuning.device_bytes / mib; }, 1);
  row(
      "copies on the host", [](const Outcome& one) { return one.tuning.host_bytes / mib; }, 1);
}

}  // namespace

void report(const std::vector<ModeOutcomes>& modes, bool simulated) {
  std::printf(
      "\nmedian (least-most) of the rounds%s\n",
      simulated ? "; SIMULATED: wall times of a simulation, they say nothing about a GPU" : "");
  print_modes(modes);
  print_winners(modes);
  for (const auto& [mode, outcomes] : modes)
    if (mode == "replay") print_pass(outcomes);
}

}  // namespace replay_bench
