#include "core/trials/stored_winner.hpp"

#include <algorithm>
#include <utility>

#include "core/value/result_tolerance.hpp"
#include "core/value/take_until.hpp"

namespace contextune {

namespace {

/// Whether `tolerance` accepts all that `stricter` accepts.
bool covers(const std::string& tolerance, const std::string& stricter) {
  const auto parsed = [](const std::string& text) {
    return ResultTolerance::parse(text).value_or(ResultTolerance());
  };
  return parsed(tolerance).covers(parsed(stricter));
}

bool has_to_be_shown(const StoredSite& stored, const Judging& here) {
  return !stored.same_software || lacks_comparison(stored, here) ||
         (here.confirm && stored.terms && !stored.terms->confirmed);
}

}  // namespace

Judging judging(const Options& options) {
  return {options.selection, options.tolerance, options.trial_timeout,
          options.cutoff,    options.confirm,   static_cast<std::uint64_t>(options.comm_memory)};
}

bool counts_as_tried(const StoredTrial& trial, const StoredSite& of, const Judging& here) {
  switch (trial.status) {
    case TrialStatus::Untried:
    case TrialStatus::Crashed:
    case TrialStatus::NotCompared:
      return false;
    case TrialStatus::Measured:
    case TrialStatus::Known:
    case TrialStatus::LaunchFailed:
    case TrialStatus::NoSample:
      return true;
    case TrialStatus::WrongResult:
      return !of.terms || covers(of.terms->tolerance, here.tolerance);
    case TrialStatus::TimedOut:
      return !of.terms || here.trial_timeout <= of.terms->trial_timeout;
    case TrialStatus::CutOff:
      return !of.terms || of.terms->cutoff <= 0 ||
             (here.cutoff > 0 && here.cutoff <= of.terms->cutoff);
    case TrialStatus::TooMuchMemory:
      return !of.terms || here.comm_memory <= of.terms->comm_memory;
  }
  return false;
}

std::optional<TrialStatus> refutation(const StoredSite& stored) {
  if (keeps_default(stored)) return std::nullopt;  // what the program does, whatever became of it
  for (const StoredTrial& trial : stored.trials) {
    if (trial.config != stored.winner) continue;
    switch (trial.status) {
      case TrialStatus::LaunchFailed:
      case TrialStatus::WrongResult:
      case TrialStatus::TimedOut:
      case TrialStatus::Crashed:
      case TrialStatus::TooMuchMemory:
        return trial.status;
      case TrialStatus::Untried:
      case TrialStatus::Measured:
      case TrialStatus::NoSample:
      case TrialStatus::CutOff:
      case TrialStatus::Known:
      case TrialStatus::NotCompared:
        break;
    }
  }
  return std::nullopt;
}

bool lacks_comparison(const StoredSite& stored, const Judging& here) {
  return here.compares && !keeps_default(stored) && !(stored.terms && stored.terms->compared);
}

bool is_loose(const StoredSite& stored, const Judging& here) {
  return stored.terms && !keeps_default(stored) && !covers(here.tolerance, stored.terms->tolerance);
}

std::optional<StoredWinner> stored_winner(const StoredSite& stored, std::span<const Config> configs,
                                          const Judging& here) {
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
  found.needs_confirm = *winner != 0 && has_to_be_shown(stored, here);
  found.is_compared = stored.same_software && stored.terms && stored.terms->compared;
  found.seconds = stored.seconds;
  found.default_seconds = stored.default_seconds;
  std::vector<bool> tried(configs.size(), false);
  tried[0] = tried[*winner] = true;
  for (const StoredTrial& trial : stored.trials) {
    const auto number = number_of(trial.config);
    if (number && counts_as_tried(trial, stored, here)) tried[*number] = true;
  }
  for (std::uint32_t config = 0; config < tried.size(); ++config)
    if (!tried[config]) found.untried.push_back(config);
  return found;
}

bool is_same_declaration(std::string_view a, std::string_view b) {
  if (a.size() > b.size()) std::swap(a, b);
  while (!a.empty()) {
    const std::size_t at = b.find(take_until(a, ' '));  // a hash is no part of another one's text
    if (at == b.npos) return false;
  }
  return true;
}

bool keeps_default(const StoredSite& stored) {
  // A site that is only noted names no default among its trials.
  if (stored.reason == WinnerReason::NoSamples || stored.winner.empty()) return true;
  return !stored.trials.empty() && stored.winner == stored.trials.front().config;
}

bool is_open(const StoredSite& stored, const Judging& here) {
  if (stored.reason == WinnerReason::NoSamples || is_loose(stored, here)) return true;
  if (has_to_be_shown(stored, here) && !keeps_default(stored)) return true;
  return std::any_of(stored.trials.begin(), stored.trials.end(), [&](const StoredTrial& trial) {
    return trial.status != TrialStatus::Crashed && !counts_as_tried(trial, stored, here);
  });
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
