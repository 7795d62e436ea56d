#include "core/search/refinement.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace contextune {
namespace {

/// A site that carries less of the region's time than this is not worth passes of the whole region.
constexpr double least_share = 0.01;
/// How far a neighbour may have moved a config in the table: one slower than the best by more is
/// not the best anywhere.
constexpr double coupling_reach = 0.3;
/// The same where the host's time counts: CUPTI makes launches up to 1.9 times as dear (H200).
constexpr double pieces_reach = 0.9;
/// And so their order: whatever has one launch more falls behind others by that alone.
constexpr std::size_t pieces_factor = 3;
/// Noise of a region in which the GPU waits for the host, of which the table's times, the GPU's,
/// say nothing.
constexpr NoisePrior host_noise{0.1, 2};
/// Configs within this of the best are tried beyond refine_candidates. The table saw them beside
/// other neighbours, and does not know the order of configs that lie so close. Over 1000 simulated
/// landscapes this takes the share within 1 % of the best joint config from 78 to 82 %, for 5
/// passes more in the median.
constexpr double close_reach = 0.12;
constexpr std::size_t most_candidates = 8;
/// A refinement may take so many passes, or so many times those of the table: sites whose configs
/// differ by less than the noise would go on for thousands. In 200 simulated landscapes
/// (tools/bench quality) only the few longest refinements get as far. Two H200s with three
/// all-reduces of some KiB, which nothing makes faster, would go on to 1400 passes beside the
/// table's 360.
constexpr std::size_t most_refine_passes = 512;
constexpr std::size_t most_refine_share = 2;
/// Beyond that, arms that are clearly slower are run in vain.
constexpr double most_passes_at_once = 16;

}  // namespace

Refinement::Refinement(const TuningOptions& options, TuningSites& sites)
    : options_(options), sites_(sites) {}

std::vector<std::uint32_t> Refinement::candidates_of(const TuningSite& site) const {
  std::vector<std::uint32_t> configs(site.spec.configs.size());
  std::iota(configs.begin(), configs.end(), 0U);
  std::erase_if(configs, [&](std::uint32_t config) {
    return site.failed.contains(config) ||
           (site.spec.stored && !site.spec.stored->has_to_try(config));
  });
  if (site.spec.objective == Objective::Region) return configs;

  std::erase_if(configs, [&](std::uint32_t config) {
    return std::isnan(site.cost(config, options_.selection));
  });
  std::stable_sort(configs.begin(), configs.end(), [&](std::uint32_t a, std::uint32_t b) {
    return site.cost(a, options_.selection) < site.cost(b, options_.selection);
  });
  if (configs.empty()) return configs;
  const double best = site.cost(configs.front(), options_.selection);
  const auto most = static_cast<std::size_t>(std::max(1, options_.refine_candidates)) *
                    (site.in_pieces ? pieces_factor : 1);
  std::size_t kept = 0;
  while (kept < configs.size()) {
    const double far = site.in_pieces ? pieces_reach : coupling_reach;
    const double reach = kept < most ? far : close_reach;
    if (kept >= std::max(most, most_candidates)) break;
    if (site.cost(configs[kept], options_.selection) > best * (1 + reach)) break;
    ++kept;
  }
  configs.resize(kept);
  return configs;
}

bool Refinement::start(bool by_span, const NoisePrior& noise) {
  double total = 0;
  for (const TuningSite& site : sites_) {
    const double cost = site.cost(site.known, options_.selection);
    if (sites_.is_current(site) && std::isfinite(cost)) total += cost * site.launches;
  }
  refined_.clear();
  std::vector<RefineSite> refined;
  for (SiteIndex index = 0; index < sites_.size(); ++index) {
    const TuningSite& site = sites_[index];
    if (!sites_.is_current(site) || site.trivial || site.is_stored() || sites_.stalled(site))
      continue;
    // A site that the table's times misjudge has to be compared otherwise, with or without
    // neighbours.
    if (!options_.refine && !site.in_pieces) continue;
    const double cost = site.cost(site.known, options_.selection);
    if (std::isfinite(cost) && cost * site.launches < least_share * total) continue;
    std::vector<std::uint32_t> candidates = candidates_of(site);
    const bool choice =
        candidates.size() > 1 || (candidates.size() == 1 && candidates.front() != site.known);
    if (!choice) continue;
    refined_.push_back(index);
    refined.push_back({site.known, std::move(candidates)});
  }
  if (refined.empty()) return false;
  // CUPTI makes every launch dearer, which in a program's own entries the program pays, and its
  // records come late there; a region's time does not need it.
  const bool in_pieces = std::any_of(refined_.begin(), refined_.end(),
                                     [&](SiteIndex index) { return sites_[index].in_pieces; });
  measure_ = by_span || in_pieces ? Measure::Span : Measure::Activity;
  RefineLimits limits;
  limits.max_rounds = options_.refine_rounds;
  limits.max_passes = std::max(most_refine_passes,
                               most_refine_share * static_cast<std::size_t>(sites_.table_passes()));
  limits.at_once = options_.look_seconds > 0;
  if (limits.at_once && total > 0)
    limits.race.passes_at_once = static_cast<std::size_t>(
        std::clamp(options_.look_seconds / total, 1.0, most_passes_at_once));
  first_after_cupti_ = measure_ == Measure::Span;
  refine_.emplace(std::move(refined), limits, in_pieces ? host_noise : noise);
  return true;
}

bool Refinement::start_next(Experiment& experiment) {
  std::vector<Assignment> batch;
  for (const Assignment& positions : refine_->batch()) {
    Assignment configs = sites_.known_configs();
    for (std::size_t i = 0; i < positions.size(); ++i) configs[refined_[i]] = positions[i];
    batch.push_back(std::move(configs));
  }
  if (batch.empty()) return false;
  // The first pass after CUPTI was closed is not like the others.
  const bool first = std::exchange(first_after_cupti_, false);
  if (first) batch.insert(batch.begin(), sites_.known_configs());
  experiment.start(std::move(batch), first ? 1 : 0);
  return experiment.has_next();
}

void Refinement::exclude(SiteIndex index, std::uint32_t config) {
  if (!refine_) return;
  const auto at = std::find(refined_.begin(), refined_.end(), index);
  if (at != refined_.end())
    refine_->exclude(static_cast<std::size_t>(at - refined_.begin()), config);
}

void Refinement::finish() {
  const Assignment best = refine_->best();
  for (std::size_t i = 0; i < best.size(); ++i) {
    TuningSite& site = sites_[refined_[i]];
    if (site.known == best[i] || site.failed.contains(best[i])) continue;
    sites_.choose(refined_[i], best[i]);
    site.reason = WinnerReason::Region;
  }
  refine_.reset();
}

bool Refinement::compared(SiteIndex index) const {
  return std::find(refined_.begin(), refined_.end(), index) != refined_.end();
}

}  // namespace contextune
