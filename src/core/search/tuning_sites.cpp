#include "core/search/tuning_sites.hpp"

#include <string>
#include <utility>

#include <contextune/error.hpp>

namespace contextune {

TuningSites::TuningSites(const TuningOptions& options, TuningObserver& observer)
    : options_(options), observer_(observer) {}

SiteIndex TuningSites::add(SiteSpec spec) {
  if (spec.configs.empty()) {
    throw Error("site '" + spec.name + "' has no configs; number 0 is its default");
  }
  if (spec.pinned && *spec.pinned >= spec.configs.size()) {
    throw Error("site '" + spec.name + "' is pinned to config " + std::to_string(*spec.pinned) +
                " and has " + std::to_string(spec.configs.size()));
  }
  if (spec.stored && spec.stored->config >= spec.configs.size()) spec.stored.reset();
  if (sites_.size() >= options_.max_sites) {
    if (!said_too_many_) {
      said_too_many_ = true;
      observer_.fallback(FallbackReason::TooManySites, no_site,
                         "The region has more than " + std::to_string(options_.max_sites) +
                             " sites; '" + spec.name + "' and all later ones run their default.");
    }
    return no_site;
  }
  const auto index = static_cast<SiteIndex>(sites_.size());
  TuningSite& site = sites_.emplace_back();
  site.spec = std::move(spec);
  site.ready = site.spec.ready;
  site.trivial = site.spec.pinned.has_value() || site.spec.configs.size() == 1;
  site.known = site.spec.pinned.value_or(0);
  if (site.trivial) {
    site.reason = !site.spec.pinned   ? WinnerReason::Only
                  : site.spec.by_size ? WinnerReason::Nearest
                                      : WinnerReason::Pinned;
    site.spec.stored.reset();
  }
  winners_.push_back(site.known);
  return index;
}

std::vector<std::uint32_t> TuningSites::known_configs() const {
  std::vector<std::uint32_t> configs;
  configs.reserve(sites_.size());
  for (const TuningSite& site : sites_) configs.push_back(site.known);
  return configs;
}

void TuningSites::choose(SiteIndex index, std::uint32_t config) {
  sites_[index].known = winners_[index] = config;
}

void TuningSites::drop_to_base(SiteIndex index) {
  choose(index, sites_[index].base());
  sites_[index].reason = sites_[index].known != 0 ? WinnerReason::Stored : WinnerReason::Dropped;
}

void TuningSites::start_generation() {
  ++generation_;
  table_passes_ = 0;
}

bool TuningSites::stalled(const TuningSite& site) const {
  return table_passes_ - site.last_launched > options_.stall_passes;
}

std::vector<SiteIndex> TuningSites::changed() const {
  std::vector<SiteIndex> changed;
  for (SiteIndex index = 0; index < sites_.size(); ++index) {
    const TuningSite& site = sites_[index];
    if (is_current(site) && !site.trivial && site.known != site.base()) changed.push_back(index);
  }
  return changed;
}

}  // namespace contextune
