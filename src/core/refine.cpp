#include "core/refine.hpp"

#include <algorithm>

namespace contextune {

Refine::Refine(std::vector<RefineSite> sites, const RefineLimits& limits, const NoisePrior& prior)
    : sites_(std::move(sites)), excluded_(sites_.size()), limits_(limits), prior_(prior) {
  for (const RefineSite& site : sites_) current_.push_back(site.current);
  start_round();
  next_race();
}

void Refine::start_round() {
  moves_.clear();
  next_move_ = 0;
  changed_ = false;
  for (std::size_t i = 0; i < sites_.size(); ++i) moves_.push_back({{i}});
  for (std::size_t i = 0; i + 1 < sites_.size(); ++i) moves_.push_back({{i, i + 1}});
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
  // Both must move; one alone was raced before.
  const auto& second = sites_[move.sites.back()].candidates;
  for (const std::uint32_t a : first) {
    for (const std::uint32_t b : second) {
      if (a == current_[move.sites[0]] || b == current_[move.sites[1]]) continue;
      arms.push_back(current_);
      arms.back()[move.sites[0]] = a;
      arms.back()[move.sites[1]] = b;
    }
  }
  return arms;
}

void Refine::next_race() {
  race_.clear();
  batch_.clear();
  while (true) {
    if (next_move_ == moves_.size()) {
      if (!changed_ || ++rounds_ >= limits_.max_rounds) return;
      start_round();
    }
    if (moves_.empty()) return;
    arms_ = arms_of(moves_[next_move_++]);
    if (arms_.size() < 2) continue;
    race_.emplace_back(arms_.size(), limits_.race, prior_);
    fill_batch();
    return;
  }
}

void Refine::fill_batch() {
  batch_.clear();
  for (const std::size_t arm : race_.front().round()) batch_.push_back(arms_[arm]);
}

void Refine::complete(std::span<const RegionSample> samples) {
  Race& race = race_.front();
  race.complete(samples);
  if (!race.round().empty()) {
    fill_batch();
    return;
  }
  const Assignment before = current_;
  current_ = arms_[race.best()];
  for (std::size_t i = 0; i < sites_.size(); ++i) {
    const auto& gone = excluded_[i];
    if (std::find(gone.begin(), gone.end(), current_[i]) != gone.end()) current_[i] = 0;
  }
  if (current_ != before) changed_ = true;
  next_race();
}

void Refine::exclude(std::size_t site, std::uint32_t config) {
  std::erase(sites_[site].candidates, config);
  excluded_[site].push_back(config);
  if (current_[site] == config) current_[site] = 0;
}

}  // namespace contextune
