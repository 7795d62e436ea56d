#include "intercept/tuner/prospects.hpp"

#include <algorithm>
#include <utility>

namespace contextune::intercept {

void Prospects::add_site(const Site& site, std::size_t num_configs,
                         std::optional<StoredWinner> stored, Suspicions suspicions) {
  prospects_.push_back(
      {&site, std::move(stored), std::move(suspicions), std::vector<bool>(num_configs, false)});
}

bool Prospects::may_try(SiteIndex site, std::uint32_t config) const {
  if (site >= prospects_.size()) return true;
  const Prospect& known = prospects_[site];
  const auto& blamed = known.suspicions.blamed;
  if (std::find(blamed.begin(), blamed.end(), config) != blamed.end()) return false;
  return !known.stored || known.stored->has_to_try(config);
}

bool Prospects::has_to_time(SiteIndex site, std::uint32_t config) const {
  if (!may_try(site, config)) return false;
  if (site >= prospects_.size()) return true;
  const auto& stored = prospects_[site].stored;
  return !stored || stored->config != config || stored->needs_confirm;
}

bool Prospects::was_right(SiteIndex site, std::uint32_t config) const {
  if (site >= prospects_.size()) return true;
  const auto& stored = prospects_[site].stored;
  return stored && stored->config == config && stored->is_compared;
}

std::vector<std::uint32_t> Prospects::suspects(SiteIndex site) const {
  if (site >= prospects_.size() || prospects_[site].site->pinned) return {};
  return prospects_[site].suspicions.suspects;
}

bool Prospects::has_suspects() const {
  return std::any_of(prospects_.begin(), prospects_.end(), [](const Prospect& known) {
    if (known.site->pinned) return false;
    const auto& suspects = known.suspicions.suspects;
    return std::any_of(suspects.begin(), suspects.end(), [&](std::uint32_t config) {
      const bool is_tried = !known.stored || known.stored->has_to_try(config);
      return is_tried && !known.survived[config];
    });
  });
}

void Prospects::survive(const Trials& trials) {
  for (const auto& [site, config] : trials) prospects_[site].survived[config] = true;
}

bool Prospects::is_settled_unsurvived(SiteIndex site) const {
  const Prospect& known = prospects_[site];
  const std::uint32_t config = known.site->settled();
  return config != 0 && !known.site->pinned && config < known.survived.size() &&
         !known.survived[config];
}

}  // namespace contextune::intercept
