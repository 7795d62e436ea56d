// The findings of earlier runs about the configs of a site.
#include <algorithm>

#include "intercept/tuner/search_results.hpp"

namespace contextune::intercept {

const StoredTrial* SearchResults::known_trial(const Site& site, std::size_t config) const {
  const StoredSite* const known = find_stored(site.name, site.key, site.configs);
  if (known == nullptr || config >= site.configs.size()) return nullptr;
  const auto found =
      std::find_if(known->trials.begin(), known->trials.end(),
                   [&](const StoredTrial& one) { return one.config == site.configs[config]; });
  return found == known->trials.end() ? nullptr : &*found;
}

const StoredTrial* SearchResults::stored_trial(SiteIndex index, std::uint32_t config) const {
  if (index >= sites_.size() || !sites_[index].stored) return nullptr;
  const StoredTrial* const known = known_trial(sites_[index], config);
  const bool was_measured =
      known != nullptr && known->status == TrialStatus::Measured && known->samples > 0;
  return was_measured ? known : nullptr;
}

}  // namespace contextune::intercept
