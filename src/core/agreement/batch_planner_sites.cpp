// The sites that a BatchPlanner has taken up, and what ranks say of them.
#include <algorithm>
#include <utility>

#include "core/agreement/batch_planner.hpp"
#include "core/trials/statistics.hpp"

namespace contextune {
namespace {

// A collective that is not made in step by then is not tuned. Pauses between such batches double:
// a communicator that ends has been followed by the next one meanwhile.
constexpr int most_batches_out_of_step = 6;

constexpr std::uint32_t most_configs = 1U << 20U;

}  // namespace

void BatchPlanner::take_sites(std::span<const std::uint32_t> ranks,
                              std::span<const BatchReport> reports) {
  for (std::size_t r = 0; r < reports.size(); ++r) {
    for (const BatchReport::NewSite& seen : reports[r].new_sites) {
      take_up(seen, r, reports.size(), ranks);
    }
    for (const BatchReport::Readiness& one : reports[r].readied) {
      Site& site = sites_[one.site];
      site.unready[r] = false;
      site.unusable.insert(site.unusable.end(), one.unusable.begin(), one.unusable.end());
    }
    for (const BatchReport::Rejection& one : reports[r].rejections)
      reject(one.site, one.config, ranks[r], one.is_wrong);
  }
  tell_ready();
}

void BatchPlanner::take_up(const BatchReport::NewSite& seen, std::size_t rank,
                           std::size_t num_ranks, std::span<const std::uint32_t> ranks) {
  const auto known = by_name_.find({seen.site.name, seen.site.key});
  SharedIndex index = known == by_name_.end() ? no_site : known->second;
  if (known == by_name_.end()) {
    // A site that no tuning would take is left out: it keeps its default where it is.
    num_configs_ += seen.site.num_configs;
    const bool sound = seen.site.num_configs > 0 && num_configs_ <= most_configs &&
                       seen.site.pinned.value_or(0) < seen.site.num_configs;
    SiteSpec spec;
    spec.name = seen.site.name;
    if (sound) spec.configs.resize(seen.site.num_configs);
    spec.objective = seen.site.objective;
    spec.n_warmup = seen.site.n_warmup;
    spec.n_repeat = seen.site.n_repeat;
    spec.pinned = seen.site.pinned;
    spec.collective = seen.site.collective;
    spec.ready = false;
    if (sound) index = tuning_->add_site(std::move(spec));
    by_name_.emplace(std::pair(seen.site.name, seen.site.key), index);
    if (index == no_site) return;
    Site added;
    added.shared = seen.site;
    added.unready.resize(num_ranks, false);
    added.reported.resize(num_ranks, false);
    added.stored.resize(num_ranks);
    sites_.push_back(std::move(added));
    taken_up_.push_back(seen.site);
  }
  if (index == no_site) return;
  Site& site = sites_[index];
  if (!(site.shared == seen.site)) {
    // Its configs mean something else there: only the default is the same on all.
    events_.list.emplace_back(FallbackEvent{FallbackReason::RanksDiffer, index,
                                            "'" + seen.site.name + "' has other configs on " +
                                                name_of_rank(ranks[rank]) +
                                                " than on another rank; it keeps its default."});
    for (std::uint32_t config = 1; config < site.shared.num_configs; ++config)
      site.unusable.push_back(config);
    if (site.told_ready) tuning_->keep_default(index);
    return;
  }
  site.unready[rank] = !seen.ready;
  site.reported[rank] = true;
  site.stored[rank] = seen.stored;
  site.outdated = site.outdated || seen.outdated;
  const auto join = [](std::vector<std::uint32_t>& all, const std::vector<std::uint32_t>& more) {
    for (const std::uint32_t config : more)
      if (std::ranges::find(all, config) == all.end()) all.push_back(config);
  };
  join(site.suspicions.blamed, seen.suspicions.blamed);
  join(site.suspicions.suspects, seen.suspicions.suspects);
  for (const std::uint32_t config : seen.unusable)
    if (config < site.shared.num_configs) site.unusable.push_back(config);
  for (const std::uint32_t config : seen.wrong) reject(index, config, ranks[rank], true);
}

void BatchPlanner::reject(SharedIndex site, std::uint32_t config, std::uint32_t rank,
                          bool is_wrong) {
  events_.culprit = name_of_rank(rank);
  tuning_->reject_config(
      site, config,
      "Config " + std::to_string(config) + " of '" + sites_[site].shared.name +
          (is_wrong ? "' computes something else than the default and is never chosen."
                    : "' was not compared with the default and is never chosen."),
      is_wrong ? Rejection::Wrong : Rejection::NotCompared);
  events_.culprit.clear();
}

void BatchPlanner::tell_ready() {
  for (SharedIndex index = 0; index < sites_.size(); ++index) {
    Site& site = sites_[index];
    const bool unready = std::ranges::find(site.unready, true) != site.unready.end();
    if (site.told_ready || unready) continue;
    if (site.shared.collective && site.shared.num_configs > 1) {
      const std::string why = leases_.out_of_step(index);
      if (!why.empty() && ++site.out_of_step < most_batches_out_of_step) continue;
      if (!why.empty()) keep_default(index, why, events_.list);
    }
    site.told_ready = true;
    site.out_of_step = 0;
    tell_stored(index);
    tuning_->site_suspected(index, site.suspicions);
    tuning_->site_ready(index, site.unusable);
  }
}

void BatchPlanner::name_ranks(std::span<const std::uint32_t> ranks) {
  for (TuningEvent& event : events_.list) {
    auto* const winner = std::get_if<WinnerEvent>(&event);
    if (winner == nullptr || winner->site >= sites_.size()) continue;
    const std::vector<bool>& has = sites_[winner->site].reported;
    if (std::ranges::find(has, false) == has.end()) continue;
    for (std::size_t r = 0; r < ranks.size(); ++r)
      if (has[r]) winner->ranks.push_back(ranks[r]);
  }
}

void BatchPlanner::tell_stored(SharedIndex index) {
  const Site& site = sites_[index];
  std::vector<std::optional<StoredWinner>> of_ranks;
  for (std::size_t r = 0; r < site.stored.size(); ++r)
    if (site.reported[r]) of_ranks.push_back(site.stored[r]);
  StoredVote vote = vote_on_stored(of_ranks);
  // It was found beside what that rank had then.
  const bool is_shown = vote.winner && site.outdated && vote.winner->config != 0;
  if (is_shown) vote.winner->needs_confirm = true;
  if (vote.winner) tuning_->site_stored(index, *vote.winner);
  if (!vote.split) return;
  events_.fallback(FallbackReason::StoredDiffer, index,
                   "The ranks have not stored the same for '" + site.shared.name +
                       (is_shown      ? "'; what the first of them has stored is shown to be "
                                        "faster again."
                        : vote.winner ? "'; what the first of them has stored holds on all."
                                      : "'; it is tuned again."));
}

bool BatchPlanner::collectives_are_ready() const {
  return std::ranges::all_of(
      sites_, [](const Site& site) { return site.told_ready || !site.shared.collective; });
}

void BatchPlanner::keep_default(SharedIndex index, const std::string& why,
                                std::vector<TuningEvent>& events) {
  Site& site = sites_[index];
  events.emplace_back(
      FallbackEvent{FallbackReason::RanksDiffer, index,
                    "'" + site.shared.name +
                        "' keeps its default: its decisions are not made in step, " + why + "."});
  for (std::uint32_t config = 1; config < site.shared.num_configs; ++config)
    site.unusable.push_back(config);
}

void BatchPlanner::put_in_step(Batch& batch) {
  std::vector<SharedIndex> collectives;
  for (SharedIndex index = 0; index < sites_.size(); ++index)
    if (sites_[index].shared.collective && sites_[index].shared.num_configs > 1)
      collectives.push_back(index);
  const auto out_of_step = leases_.lease(collectives, batch);
  for (const Batch::Lease& lease : batch.leases)
    if (lease.site < sites_.size()) sites_[lease.site].out_of_step = 0;
  for (const LeasePlanner::OutOfStep& one : out_of_step) {
    // Perhaps a call of another thread was under way: its samples are taken again, and its winner
    // is told later.
    const int tries = ++sites_[one.site].out_of_step;
    if (tries < most_batches_out_of_step) {
      if (std::exchange(batch.finished, false)) batch.waiting = Waiting::Results;
      continue;
    }
    if (tries > most_batches_out_of_step) continue;  // it was said
    keep_default(one.site, one.why, batch.events);
    tuning_->keep_default(one.site);
    // In place of the winner that it was said to have.
    if (batch.finished)
      batch.events.emplace_back(
          WinnerEvent{one.site, 0, no_sample, no_sample, WinnerReason::NoSamples});
  }
}

}  // namespace contextune
