#include "collective_rotation.hpp"

#include <algorithm>
#include <stdexcept>

namespace collective_bench {
namespace {

using hand_tuner::Choice;

constexpr int short_rounds = 3;
constexpr double hopeless = 3;  // times the default's time
constexpr std::size_t finalists = 3;
constexpr int channel_counts[] = {0, 1, 2, 4, 6, 8, 12, 16, 20, 24, 32};

/// NCCL's table with what some rank must not run taken out.
hand_tuner::Costs costs_on_all(CollectiveWork& work) {
  hand_tuner::Costs costs = hand_tuner::last_costs();
  std::vector<double> illegal;
  for (const float cost : costs) illegal.push_back(cost >= 0 ? 0 : 1);
  illegal = work.largest(illegal);
  for (std::size_t i = 0; i < costs.size(); ++i)
    if (illegal[i] > 0) costs[i] = -1;
  return costs;
}

/// Microseconds a call, with the default and with a choice in turns.
struct Pairs {
  std::vector<double> default_us, choice_us;

  [[nodiscard]] std::vector<double> gains() const {
    std::vector<double> gains;
    for (std::size_t i = 0; i < default_us.size(); ++i)
      gains.push_back(default_us[i] / choice_us[i]);
    return gains;
  }
  void add(CollectiveWork& work, const Problem& problem, const Choice& choice, int entries) {
    hand_tuner::choose({});
    default_us.push_back(work.time_calls(problem, entries));
    hand_tuner::choose(choice);
    choice_us.push_back(work.time_calls(problem, entries));
    hand_tuner::choose({});
  }
  void agree(CollectiveWork& work) {
    default_us = work.largest(default_us);
    choice_us = work.largest(choice_us);
  }
};

struct Candidate {
  Choice choice;
  int entries = 0;  // of a block
  Pairs pairs;
};

std::vector<Candidate> candidates_of(CollectiveWork& work, const Problem& problem,
                                     const hand_tuner::Costs& costs, double default_us,
                                     double block_us, int& num_configs) {
  std::vector<Candidate> candidates;
  for (int cell = 0; cell < static_cast<int>(costs.size()); ++cell) {
    if (!(costs[static_cast<std::size_t>(cell)] >= 0)) continue;
    for (const int channels : channel_counts) {
      const Choice choice = {cell / hand_tuner::num_protocols, cell % hand_tuner::num_protocols,
                             channels};
      hand_tuner::choose(choice);
      work.enter(problem);  // the first of a cell makes its connections
      const double once = work.largest(work.time_calls(problem, 2));
      const bool is_hopeless = once > hopeless * default_us;
      const int entries = is_hopeless ? 0 : work.entries_for(problem, block_us);
      hand_tuner::choose({});
      ++num_configs;
      if (!is_hopeless) candidates.push_back({choice, entries, {}});
    }
  }
  return candidates;
}

void measure(CollectiveWork& work, const Problem& problem, std::vector<Candidate>& candidates,
             int rounds) {
  for (Candidate& one : candidates) one.pairs = {};
  for (int round = 0; round < rounds; ++round)
    for (Candidate& one : candidates) one.pairs.add(work, problem, one.choice, one.entries);
  for (Candidate& one : candidates) one.pairs.agree(work);
  // Of what is the same on all ranks, so all of them come to the same order.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) {
                     return spread_of(a.pairs.gains()).median > spread_of(b.pairs.gains()).median;
                   });
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

Spread time_blocks(CollectiveWork& work, const Problem& problem, Blocks blocks) {
  const int entries = work.entries_for(problem, blocks.us);
  std::vector<double> times;
  for (int round = 0; round < blocks.rounds; ++round)
    times.push_back(work.time_calls(problem, entries));
  return spread_of(work.largest(times));
}

Rotation rotate(CollectiveWork& work, const Problem& problem, Blocks blocks) {
  hand_tuner::choose({});
  const double default_us = work.largest(work.time_calls(problem, 4));
  work.enter(problem);
  work.wait();
  // Before anything else asks NCCL for a table.
  const hand_tuner::Costs own = hand_tuner::last_costs();
  const auto legal = [](float cost) { return cost >= 0; };
  const auto cheapest = std::min_element(
      own.begin(), own.end(), [&](float a, float b) { return legal(a) && (!legal(b) || a < b); });
  if (!legal(*cheapest))
    throw std::runtime_error(
        "NCCL did not ask the program's own tuner plugin (ncclTunerPlugin_v5)");
  const int cell = static_cast<int>(cheapest - own.begin());
  Rotation rotation;
  rotation.default_cell =
      hand_tuner::name_of({cell / hand_tuner::num_protocols, cell % hand_tuner::num_protocols, 0});
  const hand_tuner::Costs costs = costs_on_all(work);
  std::vector<Candidate> candidates =
      candidates_of(work, problem, costs, default_us, blocks.us, rotation.configs);
  if (candidates.empty()) {
    rotation.default_us = rotation.best_us = time_blocks(work, problem, blocks);
    rotation.gain = {1, 1, 1};
    return rotation;
  }
  measure(work, problem, candidates, short_rounds);
  candidates.resize(std::min(candidates.size(), finalists));
  measure(work, problem, candidates, blocks.rounds);
  const Pairs& best = candidates.front().pairs;
  rotation.default_us = spread_of(best.default_us);
  rotation.gain = spread_of(best.gains());
  if (rotation.gain.median > 1) {
    rotation.best = candidates.front().choice;
    rotation.best_us = spread_of(best.choice_us);
  } else {
    rotation.best_us = rotation.default_us;
    rotation.gain = {1, 1, 1};
  }
  return rotation;
}

}  // namespace collective_bench
