#include "core/agreement/shared_sites.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include <contextune/error.hpp>

#include "core/trials/statistics.hpp"
#include "core/value/stable_hash.hpp"

namespace contextune {

SharedSites::SharedSites(const TuningOptions& options, TuningObserver& observer)
    : options_(options), observer_(observer) {}

Key SharedSites::public_key(const Key& key) {
  Key shared;
  for (const Key::Entry& entry : key.entries())
    if (entry.first != "device") shared.add(entry.first, entry.second);
  return shared;
}

SharedSite SharedSites::shared_site(const SiteSpec& spec) const {
  SharedSite shared;
  shared.name = spec.name;
  shared.key = public_key(spec.key).to_string();
  const auto same = [&](const OwnSite& site) {
    return site.shared.name == shared.name && site.shared.key == shared.key;
  };
  const auto others = std::ranges::count_if(sites_, same);
  if (others > 0) shared.key += " device_of_rank=" + std::to_string(others);
  StableHash hash;
  for (const Config& config : spec.configs) hash.add(config.to_string());
  shared.configs_hash = hash.value();
  shared.num_configs = static_cast<std::uint32_t>(spec.configs.size());
  shared.objective = spec.objective;
  shared.n_warmup = spec.n_warmup;
  shared.n_repeat = spec.n_repeat;
  shared.pinned = spec.pinned;
  shared.collective = spec.collective;
  return shared;
}

SiteIndex SharedSites::add(SiteSpec spec, bool are_found) {
  if (spec.configs.empty()) {
    throw Error("site '" + spec.name + "' has no configs; number 0 is its default");
  }
  if (spec.pinned && *spec.pinned >= spec.configs.size()) {
    throw Error("site '" + spec.name + "' is pinned to config " + std::to_string(*spec.pinned) +
                " and has " + std::to_string(spec.configs.size()));
  }
  if (sites_.size() >= options_.max_sites) {
    if (!std::exchange(said_too_many_, true)) {
      observer_.fallback(FallbackReason::TooManySites, no_site,
                         "The region has more than " + std::to_string(options_.max_sites) +
                             " sites; '" + spec.name + "' and all later ones run their default.");
    }
    return no_site;
  }
  OwnSite site;
  site.shared = shared_site(spec);
  site.ready = spec.ready;
  if (!spec.pinned) site.stored = std::move(spec.stored);
  site.suspicions = std::move(spec.suspicions);
  site.outdated = spec.outdated && !spec.pinned;
  sites_.push_back(std::move(site));
  winners_.push_back(spec.pinned.value_or(0));
  const auto here = static_cast<SiteIndex>(sites_.size() - 1);
  for (SharedIndex index = 0; index < shared_.size(); ++index) join(here, index);
  // The winner that the others found holds here as well: there is nothing to ask.
  OwnSite& added = sites_.back();
  if (added.index && are_found && !added.shared.collective)
    added.reported = added.reported_ready = true;
  return here;
}

void SharedSites::set_ready(SiteIndex here, std::span<const std::uint32_t> unusable) {
  if (here >= sites_.size() || sites_[here].ready) return;
  sites_[here].ready = true;
  sites_[here].unusable.assign(unusable.begin(), unusable.end());
}

void SharedSites::reject(SiteIndex here, std::uint32_t config, Rejection why) {
  if (here >= sites_.size() || config == 0 || config >= sites_[here].shared.num_configs) return;
  if (winners_[here] == config) winners_[here] = 0;
  sites_[here].wrong[config] = why;
}

void SharedSites::take_up(const SharedSite& shared) {
  shared_.push_back(shared);
  local_.push_back(no_site);
  for (SiteIndex here = 0; here < sites_.size(); ++here)
    join(here, static_cast<SharedIndex>(shared_.size() - 1));
}

void SharedSites::join(SiteIndex here, SharedIndex index) {
  OwnSite& site = sites_[here];
  const SharedSite& shared = shared_[index];
  if (site.index || local_[index] != no_site || site.shared.name != shared.name ||
      site.shared.key != shared.key) {
    return;
  }
  if (!(site.shared == shared)) {
    observer_.fallback(
        FallbackReason::RanksDiffer, here,
        "'" + shared.name + "' has other configs here than on another rank; it keeps its default.");
    return;
  }
  site.index = index;
  local_[index] = here;
}

SiteIndex SharedSites::local(SharedIndex index) const {
  return index < local_.size() ? local_[index] : no_site;
}

std::uint32_t SharedSites::runnable(SiteIndex here, std::uint32_t config) const {
  const OwnSite& site = sites_[here];
  const bool known = config < site.shared.num_configs && !site.wrong.contains(config);
  return known && site.ready ? config : site.shared.pinned.value_or(0);
}

std::span<const std::uint32_t> SharedSites::plan(const Batch::Pass* pass) {
  plan_ = winners_;
  for (SharedIndex index = 0; pass != nullptr && index < pass->configs.size(); ++index) {
    const SiteIndex here = local(index);
    if (here != no_site) plan_[here] = runnable(here, pass->configs[index]);
  }
  return plan_;
}

void SharedSites::take_winner(SiteIndex here, std::span<const std::uint32_t> agreed) {
  const OwnSite& site = sites_[here];
  if (!site.index || *site.index >= agreed.size()) return;
  if (site.shared.collective) {
    winners_[here] = site.leased;
    return;
  }
  winners_[here] = runnable(here, agreed[*site.index]);
}

void SharedSites::drop_winners() {
  for (std::size_t here = 0; here < sites_.size(); ++here)
    winners_[here] = sites_[here].shared.collective ? sites_[here].leased
                                                    : sites_[here].shared.pinned.value_or(0);
}

void SharedSites::report(BatchReport& report) const {
  for (const OwnSite& site : sites_) {
    if (!site.reported) {
      report.new_sites.push_back({site.shared,
                                  site.ready,
                                  site.unusable,
                                  {},
                                  site.stored,
                                  site.suspicions,
                                  site.outdated});
      BatchReport::NewSite& said = report.new_sites.back();
      for (const auto& [config, why] : site.wrong)
        (why == Rejection::Wrong ? said.wrong : said.unusable).push_back(config);
    } else if (site.index) {
      if (site.ready && !site.reported_ready)
        report.readied.push_back({*site.index, site.unusable});
      for (const auto& [config, why] : site.wrong)
        if (!site.reported_wrong.contains(config))
          report.rejections.push_back({*site.index, config, why == Rejection::Wrong});
    }
  }
}

void SharedSites::note_reported(const BatchReport& report) {
  std::size_t next = 0;
  for (OwnSite& site : sites_) {
    if (!site.reported) {
      if (next == report.new_sites.size()) break;  // it came after that
      const BatchReport::NewSite& said = report.new_sites[next++];
      site.reported = true;
      site.reported_ready = said.ready;
      site.reported_wrong.insert(said.wrong.begin(), said.wrong.end());
      site.reported_wrong.insert(said.unusable.begin(), said.unusable.end());
    } else if (site.index) {
      for (const auto& one : report.readied)
        site.reported_ready = site.reported_ready || one.site == *site.index;
      for (const auto& one : report.rejections)
        if (one.site == *site.index) site.reported_wrong.insert(one.config);
    }
  }
}

bool SharedSites::has_news() const {
  return std::ranges::any_of(sites_, [](const OwnSite& site) {
    if (site.shared.num_configs == 1 || site.shared.pinned) return false;
    return !site.reported || (site.index && ((site.ready && !site.reported_ready) ||
                                             !std::ranges::all_of(site.wrong, [&](const auto& one) {
                                               return site.reported_wrong.contains(one.first);
                                             })));
  });
}

void SharedSites::add_sample(SiteIndex here, std::uint32_t config, double seconds) {
  sites_[here].samples[config].push_back(seconds);
}

double SharedSites::cost(SiteIndex here, std::uint32_t config, double agreed) const {
  const auto samples = sites_[here].samples.find(config);
  return samples == sites_[here].samples.end() ? agreed
                                               : cost_of(samples->second, options_.selection);
}

}  // namespace contextune
