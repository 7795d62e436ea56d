#include "core/search/refine.hpp"

#include <algorithm>
#include <cmath>

namespace contextune {
namespace {

/// The most that two single moves may cost together, as a share of the region, for their pair to be
/// tried.
constexpr double pair_reach = 0.08;
constexpr std::size_t most_pairs = 6;

/// Beyond so many passes before a look, another one costs little.
constexpr std::size_t most_at_once = 128;

}  // namespace

Refine::Refine(std::vector<RefineSite> sites, const RefineLimits& limits, const NoisePrior& prior)
    : sites_(std::move(sites)), excluded_(sites_.size()), limits_(limits), prior_(prior) {
  for (const RefineSite& site : sites_) {
    current_.push_back(site.current);
    behind_.emplace_back(site.candidates.size(), 0.0);
  }
  for (std::size_t i = 0; i < sites_.size(); ++i) moves_.push_back({{i}, {}});
  for (std::size_t i = 0; i + 1 < sites_.size(); ++i) moves_.push_back({{i, i + 1}, {}});
  next_races();
}

std::vector<Assignment> Refine::arms_of(const Move& move) const {
  std::vector<Assignment> arms{current_};
  const auto& first = sites_[move.sites.front()].candidates;
  if (move.sites.size() == 1) {
    for (const std::uint32_t config : first) {
      if (config == current_[move.sites[0]]) continue;
      arms.push_back(current_);
      arms.back()[move.sites[0]] = config;
    }
    return arms;
  }
  // Both must move; one alone was raced before. The pair must win back what the two moves cost
  // singly.
  const auto& second = sites_[move.sites.back()].candidates;
  std::vector<std::pair<double, Assignment>> pairs;
  for (std::size_t a = 0; a < first.size(); ++a) {
    for (std::size_t b = 0; b < second.size(); ++b) {
      if (first[a] == current_[move.sites[0]] || second[b] == current_[move.sites[1]]) continue;
      const double behind = behind_[move.sites[0]][a] + behind_[move.sites[1]][b];
      if (behind > pair_reach) continue;
      Assignment arm = current_;
      arm[move.sites[0]] = first[a];
      arm[move.sites[1]] = second[b];
      pairs.emplace_back(behind, std::move(arm));
    }
  }
  std::ranges::stable_sort(pairs, [](const auto& a, const auto& b) { return a.first < b.first; });
  for (std::size_t i = 0; i < std::min(pairs.size(), most_pairs); ++i)
    arms.push_back(std::move(pairs[i].second));
  return arms;
}

std::size_t Refine::preferred(const Racing& racing) const {
  const Race& race = racing.race;
  const std::size_t best = race.best();
  const Move& move = moves_[racing.move];
  if (move.sites.size() != 1) return best;
  // As in the table, ties go to the default: a gain that cannot be shown is not worth confirming.
  for (std::size_t arm = 0; arm < racing.arms.size(); ++arm) {
    if (racing.arms[arm][move.sites.front()] != 0) continue;
    const double behind = race.relative_to_first(arm) - race.relative_to_first(best);
    if (behind < limits_.race.tolerance) return arm;
  }
  return best;
}

void Refine::note_distances(const Racing& racing) {
  const Move& move = moves_[racing.move];
  if (move.sites.size() != 1) return;
  const Race& race = racing.race;
  const std::size_t site = move.sites.front();
  const double best = race.relative_to_first(race.best());
  for (std::size_t arm = 0; arm < racing.arms.size(); ++arm) {
    const auto& candidates = sites_[site].candidates;
    const auto at = std::ranges::find(candidates, racing.arms[arm][site]);
    const double relative = race.relative_to_first(arm);
    if (at == candidates.end() || std::isnan(relative)) continue;
    behind_[site][static_cast<std::size_t>(at - candidates.begin())] = relative / best - 1;
  }
}

void Refine::next_races() {
  racing_.clear();
  std::size_t passes = 0;
  while (racing_.empty() || (limits_.at_once && passes < most_at_once)) {
    if (next_move_ == moves_.size()) {
      if (!racing_.empty() || !changed_ || ++rounds_ >= limits_.max_rounds) break;
      next_move_ = 0;
      changed_ = false;
    }
    if (moves_.empty() || passes_ >= limits_.max_passes) break;
    const Move& move = moves_[next_move_];
    // The cost that a pair has to win back is known when its sites have been raced.
    if (!racing_.empty() && moves_[racing_.front().move].sites.size() != move.sites.size()) break;
    ++next_move_;
    // Since it was raced, nothing has changed that could change its answer.
    if (move.settled_at == current_) continue;
    std::vector<Assignment> arms = arms_of(move);
    if (arms.size() < 2) continue;
    const Race race(arms.size(), limits_.race, prior_);
    passes += race.round().size();
    racing_.push_back({next_move_ - 1, std::move(arms), race});
  }
  (void)fill_batch();
}

bool Refine::fill_batch() {
  batch_.clear();
  for (const Racing& racing : racing_)
    for (const std::size_t arm : racing.race.round()) batch_.push_back(racing.arms[arm]);
  return !batch_.empty();
}

void Refine::complete(std::span<const RegionSample> samples) {
  passes_ += batch_.size();
  for (Racing& racing : racing_) {
    const std::size_t own = std::min(racing.race.round().size(), samples.size());
    if (own != 0) racing.race.complete(samples.first(own));
    samples = samples.subspan(own);
  }
  if (fill_batch()) return;
  const Assignment before = current_;
  if (racing_.size() == 1 && racing_.front().move == joint) {
    current_ = without_excluded(racing_.front().arms[racing_.front().race.best()]);
  } else {
    for (const Racing& racing : racing_) take_in(racing, before);
    if (race_jointly(before)) return;
  }
  if (current_ != before) changed_ = true;
  next_races();
}

// Two sites may each be faster with something else as long as the other one stays.
bool Refine::race_jointly(const Assignment& before) {
  std::vector<Assignment> arms{before};
  for (const Racing& racing : racing_) {
    Assignment arm = before;
    for (const std::size_t site : moves_[racing.move].sites) arm[site] = current_[site];
    if (arm != before) arms.push_back(std::move(arm));
  }
  if (arms.size() < 3) return false;
  arms.push_back(current_);
  current_ = before;
  const Race race(arms.size(), limits_.race, prior_);
  racing_.clear();
  racing_.push_back({joint, std::move(arms), race});
  return fill_batch();
}

Assignment Refine::without_excluded(Assignment configs) const {
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    const auto& gone = excluded_[i];
    if (std::ranges::find(gone, configs[i]) != gone.end()) configs[i] = 0;
  }
  return configs;
}

void Refine::take_in(const Racing& racing, const Assignment& before) {
  Move& move = moves_[racing.move];
  note_distances(racing);
  Assignment chosen = without_excluded(racing.arms[preferred(racing)]);
  // Two pairs may have a site in common: the first one has moved it.
  for (const std::size_t site : move.sites)
    if (current_[site] != before[site]) return;
  for (std::size_t i = 0; i < sites_.size(); ++i)
    if (chosen[i] != before[i]) current_[i] = chosen[i];
  move.settled_at = std::move(chosen);
}

void Refine::exclude(std::size_t site, std::uint32_t config) {
  auto& candidates = sites_[site].candidates;
  const auto at = std::ranges::find(candidates, config);
  if (at != candidates.end()) {
    behind_[site].erase(behind_[site].begin() + (at - candidates.begin()));
    candidates.erase(at);
  }
  excluded_[site].push_back(config);
  if (current_[site] == config) current_[site] = 0;
}

}  // namespace contextune
