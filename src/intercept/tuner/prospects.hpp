#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/search/region_tuning.hpp"
#include "core/trials/stored_winner.hpp"
#include "intercept/measuring/pass_record.hpp"
#include "intercept/site/process_store.hpp"
#include "intercept/site/site.hpp"

namespace contextune::intercept {

/// The configs of one search's sites before they are tried: how earlier runs went with them, and
/// whether this process has survived them. Not thread-safe: a part of one search.
class Prospects {
 public:
  using Trials = PassRecord::Trials;

  /// Adds the site, which gets the next number. It lives as long as the process.
  void add_site(const Site& site, std::size_t num_configs, std::optional<StoredWinner> stored,
                Suspicions suspicions);
  [[nodiscard]] std::size_t num_sites() const noexcept { return prospects_.size(); }
  [[nodiscard]] const Site& site(SiteIndex site) const { return *prospects_[site].site; }

  [[nodiscard]] bool survived(SiteIndex site, std::uint32_t config) const {
    return prospects_[site].survived[config];
  }
  void survive(const Trials& trials);

  // Of a site that was not added, every config may be tried.
  [[nodiscard]] bool may_try(SiteIndex site, std::uint32_t config) const;
  [[nodiscard]] bool has_to_time(SiteIndex site, std::uint32_t config) const;
  /// Whether an earlier run has compared it, and it was right.
  [[nodiscard]] bool was_right(SiteIndex site, std::uint32_t config) const;
  [[nodiscard]] std::vector<std::uint32_t> suspects(SiteIndex site) const;
  [[nodiscard]] bool has_suspects() const;

  /// Whether what the site has settled on is a config that is not survived yet.
  [[nodiscard]] bool is_settled_unsurvived(SiteIndex site) const;

 private:
  struct Prospect {
    const Site* site = nullptr;
    std::optional<StoredWinner> stored;
    Suspicions suspicions;
    std::vector<bool> survived;  ///< by config: it was tried, and the process is still there
  };

  std::vector<Prospect> prospects_;  ///< by site
};

}  // namespace contextune::intercept
