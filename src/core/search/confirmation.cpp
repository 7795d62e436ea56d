#include "core/search/confirmation.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace contextune {
namespace {

constexpr int most_tries = 3;
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

Confirmation::Confirmation(const TuningOptions& options, TuningObserver& observer,
                           TuningSites& sites)
    : options_(options), observer_(observer), sites_(sites) {}

bool Confirmation::start(bool bounded) {
  bounded_ = bounded;
  event_ = {};
  shown_ = has_less_ = false;
  left_out_.reset();
  if (!options_.confirm || sites_.changed().empty()) return false;
  try_winners();
  return true;
}

bool Confirmation::start_next(Experiment& experiment) {
  if (!comparison_) return false;
  const Assignment winners = sites_.known_configs();
  Assignment defaults = winners;
  if (left_out_) {
    defaults[*left_out_] = sites_[*left_out_].base();
  } else {
    for (const SiteIndex index : sites_.changed()) defaults[index] = sites_[index].base();
  }
  std::vector<Assignment> batch;
  for (const bool with_winners : comparison_->batch())
    batch.push_back(with_winners ? winners : defaults);
  const bool first = comparison_->pairs() == 0 && !left_out_;
  if (first) batch.insert(batch.begin(), winners);
  experiment.start(std::move(batch), first ? 1 : 0);
  return true;
}

void Confirmation::complete(std::span<const RegionSample> samples, bool bounded) {
  bounded_ = bounded;
  comparison_->complete(samples);
  if (!comparison_->batch().empty()) return;
  left_out_ ? finish_left_out() : finish_try();
}

void Confirmation::cut_short(bool has_overrun) {
  if (shown_ && !has_overrun) {
    keep_shown();
  } else {
    finish(ConfirmVerdict::Defaults);
  }
}

ConfirmLimits Confirmation::usual_limits() const {
  ConfirmLimits limits{options_.confirm_min_pairs, options_.confirm_max_pairs};
  if (options_.look_seconds > 0)
    limits.min_pairs = std::max(limits.min_pairs, limits.max_pairs / 4);
  // A program's own entries are apart by what else it does, and each that is compared is one that
  // it does not have the winners in.
  if (!bounded_ && options_.max_passes == 0) limits.min_seconds = least_compared_seconds;
  return limits;
}

void Confirmation::try_winners() {
  ++event_.tries;
  tried_ = sites_.changed();
  ConfirmLimits limits = usual_limits();
  limits.least_gain = options_.least_gain;
  comparison_.emplace(limits);
}

void Confirmation::finish_try() {
  event_.before_seconds = comparison_->before();
  event_.after_seconds = comparison_->after();
  event_.gain = comparison_->gain();
  event_.bound = comparison_->bound();
  event_.pairs = comparison_->pairs();
  event_.gains = comparison_->gains();
  event_.gains.resize(std::min(event_.gains.size(), most_told_gains));
  if (comparison_->verdict() == Comparison::Verdict::Faster) {
    has_less_ = false;
    if (!std::exchange(shown_, true) && tried_.size() > 1) {
      start_leaving_out();
    } else {
      keep_shown();
    }
    return;
  }
  // A winner that could not be launched any more has left by itself.
  if (sites_.changed() == tried_) drop_least_gain();
  if (sites_.changed().empty() || event_.tries >= most_tries) {
    finish(ConfirmVerdict::Defaults);
  } else {
    try_winners();
  }
}

void Confirmation::start_leaving_out() {
  pair_scatter_ = comparison_->scatter();
  std::vector<SiteIndex> order = sites_.changed();
  // The winner that seems to gain least is the likeliest to be of no use, and those after it are
  // compared without it.
  std::ranges::stable_sort(order, [&](SiteIndex a, SiteIndex b) {
    return sites_[a].gain(options_.selection) < sites_[b].gain(options_.selection);
  });
  left_out_pairs_ = static_cast<int>(most_left_out_passes / (2 * order.size()));
  to_leave_out_.assign(order.begin(), order.end());
  leave_out_next();
}

// The kernel itself is faster then; others may still be slower for it.
bool Confirmation::is_clear(const TuningSite& site) {
  if (!site.progress) return false;
  const std::vector<Trial>& trials = site.progress->trials();
  const std::vector<double> with = trials[site.known].measured();
  const std::vector<double> without = trials[site.base()].measured();
  constexpr std::size_t least_samples = 3;
  return with.size() >= least_samples && without.size() >= least_samples &&
         *std::ranges::max_element(with) < *std::ranges::min_element(without);
}

void Confirmation::leave_out_next() {
  left_out_.reset();
  tried_ = sites_.changed();
  std::erase_if(to_leave_out_,
                [&](SiteIndex index) { return std::ranges::find(tried_, index) == tried_.end(); });
  if (tried_.size() > 1 && !to_leave_out_.empty()) {
    left_out_ = to_leave_out_.front();
    ConfirmLimits limits = usual_limits();
    limits.max_pairs = std::min(limits.max_pairs, left_out_pairs_);
    limits.known = pair_scatter_;
    if (is_clear(sites_[*left_out_])) {
      limits.min_seconds = 0;
      limits.pairs_to_give_up = 2 * limits.min_pairs;
      if (options_.look_seconds == 0) limits.min_pairs = fewest_left_out_pairs;
    }
    comparison_.emplace(limits);
  } else if (tried_.empty()) {
    finish(ConfirmVerdict::Defaults);
  } else if (has_less_) {
    try_winners();
  } else {
    keep_shown();
  }
}

void Confirmation::finish_left_out() {
  if (sites_.changed() != tried_) {
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

void Confirmation::keep_shown() {
  const bool is_less = event_.tries > 1 || has_less_;
  finish(is_less ? ConfirmVerdict::Reduced : ConfirmVerdict::Kept);
}

void Confirmation::drop_least_gain() {
  const std::vector<SiteIndex> changed = sites_.changed();
  if (changed.empty()) return;
  const auto least = std::ranges::min_element(changed, [&](SiteIndex a, SiteIndex b) {
    return sites_[a].gain(options_.selection) < sites_[b].gain(options_.selection);
  });
  sites_.drop_to_base(*least);
}

void Confirmation::finish(ConfirmVerdict verdict) {
  comparison_.reset();
  event_.verdict = verdict;
  if (verdict != ConfirmVerdict::Defaults) return;
  for (const SiteIndex index : sites_.changed()) sites_.drop_to_base(index);
  observer_.fallback(FallbackReason::NotConfirmed, no_site,
                     "The region was not shown to be faster with the winners in " +
                         std::to_string(event_.tries) +
                         " tries; all sites keep their "
                         "default.");
}

}  // namespace contextune
