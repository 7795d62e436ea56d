#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include <contextune/options.hpp>

#include "core/search/region_tuning.hpp"
#include "core/search/schedule.hpp"
#include "core/search/site_progress.hpp"
#include "core/trials/trial.hpp"

namespace contextune {

/// A site that starts a generation of its own must have been there twice: a key that changes every
/// time would otherwise keep the tuning going for ever.
inline constexpr std::uint64_t launches_to_count = 2;

/// The search's knowledge of one site. Plain data.
struct TuningSite {
  SiteSpec spec;
  bool ready = true;
  std::optional<SiteProgress> progress;  ///< once admitted with something to try
  std::optional<std::uint32_t> generation;
  bool trivial = false;     ///< nothing to try: one config, pinned, known or kept
  bool settled = false;     ///< known and reason are what the table chose
  bool suspected = false;   ///< its stored winner is, and runs once survived alone
  std::uint32_t known = 0;  ///< runs this when nothing is tried
  WinnerReason reason = WinnerReason::NoSamples;
  /// Configs that are given up, and what a new search would be told of them.
  std::map<std::uint32_t, TrialStatus> failed;
  std::vector<double> idle_samples;  ///< of trivial sites and of the default of Objective::Region
  std::uint64_t last_launched = 0;   ///< pass of its generation
  std::uint64_t times_launched = 0;  ///< entries
  std::uint32_t launches = 1;        ///< in a pass, as last seen
  bool in_pieces = false;            ///< as SiteResult says, with one of its configs

  /// The config that it has to beat: the one that an earlier run has shown to be worth it, else the
  /// default.
  [[nodiscard]] std::uint32_t base() const {
    return spec.stored && !holds_back() && !failed.contains(spec.stored->config)
               ? spec.stored->config
               : 0;
  }
  /// Its stored winner does not run unless it is what is tried.
  [[nodiscard]] bool holds_back() const {
    return suspected || (spec.stored && spec.stored->needs_confirm);
  }
  /// An earlier run's winner is all that it runs, or has to show to be worth it.
  [[nodiscard]] bool is_stored() const { return spec.stored && spec.stored->untried.empty(); }

  /// Seconds of a launch with a config, by its own times; NaN: not known.
  [[nodiscard]] double cost(std::uint32_t config, Selection selection) const;
  /// Seconds a pass that its known config saves over the base, by its own times. Where those say
  /// nothing it is below all others: it is the first to go.
  [[nodiscard]] double gain(Selection selection) const;
};

/// The passes that such a site's part of the table takes, if no config is given up in between.
/// @param usual for what the site leaves open
[[nodiscard]] std::uint64_t table_passes(const SiteSpec& spec, const ScheduleShape& usual);

}  // namespace contextune
