#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/search/tuning_site.hpp"
#include "core/trials/tuning_observer.hpp"
#include "core/value/tuning_options.hpp"

namespace contextune {

/// The sites of one region, in the order in which they came, and the configs that they run when
/// nothing is tried. Sites that were admitted together are a generation, of which one is tuned at a
/// time. The options and the observer must outlive it.
class TuningSites {
 public:
  TuningSites(const TuningOptions& options, TuningObserver& observer);

  /// Returns no_site, and reports it once, beyond max_sites.
  /// @throws Error if it has no configs or pins one that it does not have
  SiteIndex add(SiteSpec spec);
  [[nodiscard]] TuningSite& operator[](SiteIndex index) { return sites_[index]; }
  [[nodiscard]] const TuningSite& operator[](SiteIndex index) const { return sites_[index]; }
  [[nodiscard]] auto begin() const { return sites_.begin(); }
  [[nodiscard]] auto end() const { return sites_.end(); }
  [[nodiscard]] std::size_t size() const { return sites_.size(); }

  /// The config that each runs outside of a search. A site with a winner that has to be shown, or
  /// survived, again has another one known.
  [[nodiscard]] std::span<const std::uint32_t> winners() const { return winners_; }
  [[nodiscard]] std::vector<std::uint32_t> known_configs() const;
  /// The config is known of it, and runs.
  void choose(SiteIndex index, std::uint32_t config);
  /// Back to what it has to beat.
  void drop_to_base(SiteIndex index);

  [[nodiscard]] std::uint32_t generation() const { return generation_; }
  /// Passes of the generation's table.
  [[nodiscard]] std::uint64_t table_passes() const { return table_passes_; }
  void count_table_pass() { ++table_passes_; }
  void start_generation();
  [[nodiscard]] bool is_current(const TuningSite& site) const {
    return site.generation == generation_;
  }
  /// It was not launched for so many passes that nothing waits for it.
  [[nodiscard]] bool stalled(const TuningSite& site) const;
  /// Sites of this generation with another config than what they have to beat.
  [[nodiscard]] std::vector<SiteIndex> changed() const;

 private:
  const TuningOptions& options_;
  TuningObserver& observer_;
  std::vector<TuningSite> sites_;
  std::vector<std::uint32_t> winners_;
  std::uint32_t generation_ = 0;
  std::uint64_t table_passes_ = 0;
  bool said_too_many_ = false;
};

}  // namespace contextune
