#include "core/stored_winner.hpp"

#include <algorithm>
#include <utility>

namespace contextune {

std::optional<StoredWinner> stored_winner(const StoredSite& stored,
                                          std::span<const Config> configs) {
  if (stored.reason == WinnerReason::NoSamples) return std::nullopt;
  const auto number_of = [&](const Config& config) -> std::optional<std::uint32_t> {
    const auto at = std::find(configs.begin(), configs.end(), config);
    if (at == configs.end()) return std::nullopt;
    return static_cast<std::uint32_t>(at - configs.begin());
  };
  const auto winner = number_of(stored.winner);
  if (!winner) return std::nullopt;
  StoredWinner found;
  found.config = *winner;
  found.needs_confirm = !stored.same_software && *winner != 0;
  found.seconds = stored.seconds;
  found.default_seconds = stored.default_seconds;
  std::vector<bool> tried(configs.size(), false);
  tried[0] = tried[*winner] = true;
  for (const StoredTrial& trial : stored.trials) {
    const auto number = number_of(trial.config);
    if (number && trial.status != TrialStatus::Untried) tried[*number] = true;
  }
  for (std::uint32_t config = 0; config < tried.size(); ++config)
    if (!tried[config]) found.untried.push_back(config);
  return found;
}

bool is_same_declaration(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  while (!a.empty()) {
    const std::string_view word = a.substr(0, a.find(' '));
    a.remove_prefix(std::min(a.size(), word.size() + 1));
    const std::size_t at = b.find(word);  // a hash is no part of another one's text
    if (at == b.npos) return false;
  }
  return true;
}

bool keeps_default(const StoredSite& stored) {
  // What is only noted of a site names no default among its trials.
  if (stored.reason == WinnerReason::NoSamples || stored.winner.empty()) return true;
  return !stored.trials.empty() && stored.winner == stored.trials.front().config;
}

bool is_open(const StoredSite& stored) {
  if (stored.reason == WinnerReason::NoSamples) return true;
  if (!stored.same_software && !keeps_default(stored)) return true;
  return std::any_of(stored.trials.begin(), stored.trials.end(),
                     [](const StoredTrial& trial) { return trial.status == TrialStatus::Untried; });
}

StoredVote vote_on_stored(std::span<const std::optional<StoredWinner>> ranks) {
  StoredVote vote;
  if (ranks.empty() || !ranks.front()) {
    vote.split = std::any_of(ranks.begin(), ranks.end(), [](const auto& one) { return !!one; });
    return vote;
  }
  const StoredWinner& first = *ranks.front();
  vote.winner = first;
  bool same_environment = true;
  for (const auto& one : ranks) {
    if (!one || one->config != first.config || one->untried != first.untried) vote.split = true;
    if (one && one->environment != first.environment) same_environment = false;
    if (one && one->needs_confirm) vote.winner->needs_confirm = true;
  }
  if (vote.split && !same_environment) vote.winner.reset();
  return vote;
}

}  // namespace contextune
