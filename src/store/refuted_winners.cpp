#include "store/refuted_winners.hpp"

#include "core/trials/stored_winner.hpp"

namespace contextune::store {

std::vector<std::string> refuted_winners(const Entry& entry) {
  std::vector<std::string> refuted;
  for (std::size_t i = 0; i < entry.sites.size(); ++i) {
    const StoredSite& site = entry.sites[i].site;
    const auto status = refutation(site);
    if (!status) continue;
    const std::string key = site.key.to_string();
    refuted.push_back("/sites/" + std::to_string(i) + "/winner: is '" + site.winner.to_string() +
                      "' of '" + site.name + (key.empty() ? "" : ' ' + key) +
                      "', whose own trial says " + std::string(to_string(*status)));
  }
  return refuted;
}

}  // namespace contextune::store
