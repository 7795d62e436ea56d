#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/search/tuning_engine.hpp"

namespace contextune {
namespace {

constexpr int most_tries = 3;
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
/// Clocks and the host keep a state for milliseconds, in which all pairs of a short region err
/// alike. Where a default takes 1.0 or 1.4 by turns of 2 ms, and passes of 100 us are 150 us apart,
/// four to eight pairs show a gain of 1.2 in 28 % of all comparisons; this time in the region makes
/// it 5 % (simulated).
constexpr double least_compared_seconds = 5e-3;
/// A winner that leaves no doubt is left out in so few pairs at least, and in as many more as the
/// noise of the region asks for.
constexpr int fewest_left_out_pairs = 2;
/// Leaving out every winner may take so many passes, by fewer pairs for each where there are many
/// sites.
constexpr std::size_t most_left_out_passes = 512;

}  // namespace

std::vector<std::uint32_t> Tuning::Engine::candidates_of(const TuningSite& site) const {
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

void Tuning::Engine::start_refine() {
  double total = 0;
  for (const TuningSite& site : sites_) {
    const double cost = site.cost(site.known, options_.selection);
    if (sites_.is_current(site) && std::isfinite(cost)) total += cost * site.launches;
  }
  refined_sites_.clear();
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
    refined_sites_.push_back(index);
    refined.push_back({site.known, std::move(candidates)});
  }
  if (refined.empty()) {
    start_confirm();
    return;
  }
  enter(Stage::Refine);
  // CUPTI makes every launch dearer, which in a program's own entries the program pays, and its
  // records come late there; a region's time does not need it.
  const bool in_pieces = std::any_of(refined_sites_.begin(), refined_sites_.end(),
                                     [&](SiteIndex index) { return sites_[index].in_pieces; });
  refine_measure_ = bounded_ || in_pieces ? Measure::Span : Measure::Activity;
  RefineLimits limits;
  limits.max_rounds = options_.refine_rounds;
  limits.max_passes = std::max(most_refine_passes,
                               most_refine_share * static_cast<std::size_t>(sites_.table_passes()));
  limits.at_once = options_.look_seconds > 0;
  if (limits.at_once && total > 0)
    limits.race.passes_at_once = static_cast<std::size_t>(
        std::clamp(options_.look_seconds / total, 1.0, most_passes_at_once));
  first_after_cupti_ = refine_measure_ == Measure::Span;
  refine_.emplace(std::move(refined), limits, in_pieces ? host_noise : region_noise());
  if (!experiment_advances()) take_refined();
}

bool Tuning::Engine::experiment_advances() {
  std::vector<Assignment> batch;
  if (stage_ == Stage::Refine) {
    for (const Assignment& positions : refine_->batch()) {
      Assignment configs = sites_.known_configs();
      for (std::size_t i = 0; i < positions.size(); ++i) configs[refined_sites_[i]] = positions[i];
      batch.push_back(std::move(configs));
    }
    if (batch.empty()) return false;
    // The first pass after CUPTI was closed is not like the others.
    const bool first = std::exchange(first_after_cupti_, false);
    if (first) batch.insert(batch.begin(), sites_.known_configs());
    experiment_.start(std::move(batch), first ? 1 : 0);
    return experiment_.has_next();
  }
  const Assignment winners = sites_.known_configs();
  Assignment defaults = winners;
  if (left_out_) {
    defaults[*left_out_] = sites_[*left_out_].base();
  } else {
    for (const SiteIndex index : sites_.changed()) defaults[index] = sites_[index].base();
  }
  for (const bool with_winners : comparison_->batch())
    batch.push_back(with_winners ? winners : defaults);
  if (batch.empty()) return false;
  const bool first = comparison_->pairs() == 0 && !left_out_;
  if (first) batch.insert(batch.begin(), winners);
  experiment_.start(std::move(batch), first ? 1 : 0);
  return true;
}

void Tuning::Engine::take_refined() {
  const Assignment best = refine_->best();
  for (std::size_t i = 0; i < best.size(); ++i) {
    TuningSite& site = sites_[refined_sites_[i]];
    if (site.known == best[i] || site.failed.contains(best[i])) continue;
    sites_.choose(refined_sites_[i], best[i]);
    site.reason = WinnerReason::Region;
  }
  refine_.reset();
  experiment_.clear();
  pending_.clear();
  start_confirm();
}

void Tuning::Engine::start_confirm() {
  confirm_event_ = {};
  shown_ = has_less_ = false;
  left_out_.reset();
  if (!options_.confirm || sites_.changed().empty()) {
    observer_.confirm(confirm_event_);
    finish_generation();
    return;
  }
  enter(Stage::Confirm);
  try_winners();
}

void Tuning::Engine::skip_failed_slots() {
  while (experiment_.has_next()) {
    const Assignment& configs = experiment_.next();
    bool failed = false;
    for (SiteIndex i = 0; i < configs.size(); ++i)
      failed = failed || sites_[i].failed.contains(configs[i]);
    if (!failed) return;
    const std::size_t slot = experiment_.next_slot();
    (void)experiment_.take_next();
    experiment_.settle(slot, {std::numeric_limits<double>::infinity(), 0});
  }
}

ConfirmLimits Tuning::Engine::confirm_limits() const {
  ConfirmLimits limits{options_.confirm_min_pairs, options_.confirm_max_pairs};
  if (options_.look_seconds > 0)
    limits.min_pairs = std::max(limits.min_pairs, limits.max_pairs / 4);
  // A program's own entries are apart by what else it does, and each that is compared is one that
  // it does not have the winners in.
  if (!bounded_ && options_.max_passes == 0) limits.min_seconds = least_compared_seconds;
  return limits;
}

void Tuning::Engine::try_winners() {
  ++confirm_event_.tries;
  tried_sites_ = sites_.changed();
  ConfirmLimits limits = confirm_limits();
  limits.least_gain = options_.least_gain;
  comparison_.emplace(limits);
  (void)experiment_advances();
}

void Tuning::Engine::finish_try() {
  confirm_event_.before_seconds = comparison_->before();
  confirm_event_.after_seconds = comparison_->after();
  confirm_event_.gain = comparison_->gain();
  confirm_event_.bound = comparison_->bound();
  confirm_event_.pairs = comparison_->pairs();
  if (comparison_->verdict() == Comparison::Verdict::Faster) {
    has_less_ = false;
    if (!std::exchange(shown_, true) && tried_sites_.size() > 1) {
      start_leaving_out();
    } else {
      cut_confirm_short();
    }
    return;
  }
  // A winner that could not be launched any more has left by itself.
  if (sites_.changed() == tried_sites_) drop_least_gain();
  if (sites_.changed().empty() || confirm_event_.tries >= most_tries) {
    finish_confirm(ConfirmVerdict::Defaults);
  } else {
    try_winners();
  }
}

void Tuning::Engine::start_leaving_out() {
  pair_scatter_ = comparison_->scatter();
  std::vector<SiteIndex> order = sites_.changed();
  // The winner that seems to gain least is the likeliest to be of no use, and those after it are
  // compared without it.
  std::stable_sort(order.begin(), order.end(), [&](SiteIndex a, SiteIndex b) {
    return sites_[a].gain(options_.selection) < sites_[b].gain(options_.selection);
  });
  left_out_pairs_ = static_cast<int>(most_left_out_passes / (2 * order.size()));
  to_leave_out_.assign(order.begin(), order.end());
  leave_out_next();
}

// The kernel itself is faster then; others may still be slower for it.
bool Tuning::Engine::is_clear(const TuningSite& site) {
  if (!site.progress) return false;
  const std::vector<Trial>& trials = site.progress->trials();
  const std::vector<double> with = trials[site.known].measured();
  const std::vector<double> without = trials[site.base()].measured();
  constexpr std::size_t least_samples = 3;
  return with.size() >= least_samples && without.size() >= least_samples &&
         *std::max_element(with.begin(), with.end()) <
             *std::min_element(without.begin(), without.end());
}

void Tuning::Engine::leave_out_next() {
  left_out_.reset();
  tried_sites_ = sites_.changed();
  std::erase_if(to_leave_out_, [&](SiteIndex index) {
    return std::find(tried_sites_.begin(), tried_sites_.end(), index) == tried_sites_.end();
  });
  if (tried_sites_.size() > 1 && !to_leave_out_.empty()) {
    left_out_ = to_leave_out_.front();
    ConfirmLimits limits = confirm_limits();
    limits.max_pairs = std::min(limits.max_pairs, left_out_pairs_);
    limits.known = pair_scatter_;
    if (is_clear(sites_[*left_out_])) {
      limits.min_seconds = 0;
      limits.pairs_to_give_up = 2 * limits.min_pairs;
      if (options_.look_seconds == 0) limits.min_pairs = fewest_left_out_pairs;
    }
    comparison_.emplace(limits);
    (void)experiment_advances();
  } else if (tried_sites_.empty()) {
    finish_confirm(ConfirmVerdict::Defaults);
  } else if (has_less_) {
    try_winners();
  } else {
    cut_confirm_short();
  }
}

void Tuning::Engine::finish_left_out() {
  if (sites_.changed() != tried_sites_) {
    // A winner that could not be launched any more has left, so this compared with nothing.
    has_less_ = true;
    leave_out_next();
    return;
  }
  const SiteIndex index = *left_out_;
  TuningSite& site = sites_[index];
  // Together they were shown to be faster: a share of that which only noise keeps from being shown
  // is one all the same.
  const bool kept = comparison_->gain() > 0 || comparison_->pairs() < 2;
  observer_.left_out({index, site.known, kept, comparison_->before(), comparison_->after(),
                      comparison_->gain(), comparison_->bound(), comparison_->pairs()});
  to_leave_out_.pop_front();
  if (!kept) {
    sites_.drop_to_base(index);
    has_less_ = true;
  }
  leave_out_next();
}

void Tuning::Engine::cut_confirm_short() {
  const bool is_less = confirm_event_.tries > 1 || has_less_;
  finish_confirm(is_less ? ConfirmVerdict::Reduced : ConfirmVerdict::Kept);
}

void Tuning::Engine::drop_least_gain() {
  const std::vector<SiteIndex> changed = sites_.changed();
  if (changed.empty()) return;
  const auto least =
      std::min_element(changed.begin(), changed.end(), [&](SiteIndex a, SiteIndex b) {
        return sites_[a].gain(options_.selection) < sites_[b].gain(options_.selection);
      });
  sites_.drop_to_base(*least);
}

void Tuning::Engine::finish_confirm(ConfirmVerdict verdict) {
  confirm_event_.verdict = verdict;
  if (verdict == ConfirmVerdict::Defaults) {
    for (const SiteIndex index : sites_.changed()) sites_.drop_to_base(index);
    observer_.fallback(FallbackReason::NotConfirmed, no_site,
                       "The region was not shown to be faster with the winners in " +
                           std::to_string(confirm_event_.tries) +
                           " tries; all sites keep their "
                           "default.");
    tune_anew();
  }
  observer_.confirm(confirm_event_);
  finish_generation();
}

}  // namespace contextune
