#include "collective/candidates.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <variant>

namespace contextune::collective {
namespace {

/// Whether a declared config lets a parameter have that value, or says nothing of it.
bool agrees(const Config& declared, const char* parameter, std::string_view value) {
  const Value* const named = declared.find(parameter);
  if (named == nullptr) return true;
  const auto* const text = std::get_if<std::string>(named);
  return text != nullptr && *text == value;
}

/// Numbers of channels to try in a cell, those that mean the same being one. 0: as NCCL chooses.
class ChannelChoices {
 public:
  ChannelChoices(bool may_be_set, int most) : may_be_set_(may_be_set), most_(most) {}

  void add_ladder() {
    add(0);
    for (const int channels : channel_ladder(most_)) add(channels);
  }

  void add(std::int64_t channels) {
    if (channels < 0 || (channels > 0 && !may_be_set_)) return;
    // More than the most are the most; and where that is one, NCCL has no choice either.
    const auto used = static_cast<int>(std::min<std::int64_t>(channels, most_));
    choices_.insert(most_ == 1 ? 0 : used);
  }

  [[nodiscard]] const std::set<int>& choices() const { return choices_; }

 private:
  bool may_be_set_;
  int most_;
  std::set<int> choices_;
};

void add_declared(ChannelChoices& choices, Cell cell, std::span<const Config> declared) {
  for (const Config& config : declared) {
    if (!agrees(config, algorithm_parameter, name_of(cell.algorithm)) ||
        !agrees(config, protocol_parameter, name_of(cell.protocol))) {
      continue;
    }
    const Value* const channels = config.find(channels_parameter);
    if (channels == nullptr) {
      choices.add_ladder();
    } else if (const auto* const number = std::get_if<std::int64_t>(channels)) {
      choices.add(*number);
    }
  }
}

struct Candidate {
  Decision decision;
  double estimate = 0;
};

void add_cell(std::vector<Candidate>& candidates, Cell cell, const CandidateSources& sources) {
  const int most = useful_channels(sources.function, sources.bytes, cell, sources.limits);
  ChannelChoices choices(takes_channels(cell.algorithm, sources.nodes), most);
  if (sources.declared.empty()) {
    choices.add_ladder();
  } else {
    add_declared(choices, cell, sources.declared);
  }
  for (const int channels : choices.choices()) {
    if (channels == 0 && sources.default_cell == cell) continue;  // the default by its name
    const double share = channels == 0 ? 1 : static_cast<double>(channels) / most;
    candidates.push_back({{true, cell, static_cast<std::uint8_t>(channels)},
                          double{sources.costs.cost(cell)} / share});
  }
}

}  // namespace

std::vector<Config> candidates_of(const CandidateSources& sources) {
  const CellSet may_run = sources.legal & sources.permission.cells;
  std::vector<Candidate> candidates;
  for (const Cell& cell : all_cells()) {
    if (may_run.has(cell)) add_cell(candidates, cell, sources);
  }
  // Stable, so that estimates that are the same keep the order of the table on every rank.
  std::ranges::stable_sort(candidates, {}, &Candidate::estimate);

  std::vector<Config> configs{Config()};
  for (const Candidate& candidate : candidates) configs.push_back(config_of(candidate.decision));
  return configs;
}

}  // namespace contextune::collective
