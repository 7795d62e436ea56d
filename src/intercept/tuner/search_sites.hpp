#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

/// The sites of one search: how they come to it, and what is known of them. Any thread.
class SearchSites {
 public:
  explicit SearchSites(Search& search) noexcept : search_(search) {}

  /// Adds a site; from then on the search sets what it plans and settles. `facts` are for the log.
  /// False: beyond max_sites; the site runs its default.
  bool add(Site& site, SiteSpec spec, const log::SiteFacts& facts,
           std::span<const std::uint32_t> unusable);
  /// The site's variants are all built; `unusable` are those that could not be.
  void ready(Site& site, std::span<const std::uint32_t> unusable);
  /// A launch of a settled site failed: it runs its default from now on.
  void drop_winner(Site& site, const std::string& text);

  /// Whether the winners of all are known, whatever sites have come that are not looked at yet.
  [[nodiscard]] bool are_tuned() const;
  /// Whether one of the site's own is known, now or of an earlier run.
  [[nodiscard]] bool has_winner(const Site& site) const;

  /// The next entry only shows which sites there are: the store is thought to know them.
  [[nodiscard]] bool are_only_shown() const noexcept;
  /// That entry is over, and may have been the program's only one: what it has shown that the store
  /// does not know is noted there. Waits until it is written, shortly, which is once a store.
  void note_unfinished();

  /// The measurements of a config in this run.
  [[nodiscard]] Measurements measurements(const Site& site, std::uint32_t config) const;
  /// The measurements of a config in the run whose winner a site started with. Absent: none.
  [[nodiscard]] std::optional<StoredTrial> stored_trial(const Site& site,
                                                        std::uint32_t config) const;

 private:
  Search& search_;
};

}  // namespace contextune::intercept
