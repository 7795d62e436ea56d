// Which configs compute what the default does. A run that leaves what is there already leaves what
// is right wherever the region was run before on the same inputs: so results are compared on other
// contents as well. Where the code of the kernels shows that the region may find anything in what
// it writes, that is filled, with other bytes for each config. Elsewhere bytes of ours might be
// taken for addresses, and a config has to be right in visits in which the region changed different
// things; where there are none, it is left out.
#include <algorithm>
#include <utility>

#include "gpu/memory_fill.hpp"
#include "intercept/region_replay.hpp"

namespace contextune::intercept {
namespace {

constexpr std::size_t least_changes = 2;
// Visits that a config waits for to find others.
constexpr int most_looks = 3;

// What a rank says of its own part.
enum class Filling : std::uint32_t { Nothing, Some, Unknown };

}  // namespace

void RegionReplay::look_at_code(const Replayer& replayer) {
  access_ = find_access(region_, table_, replayer.recording());
  free_.clear();
  for (const gpu::MemoryRange& range : access_.free)
    if (memory_->is_copied(range)) free_.push_back(range);
  // What one rank fills comes to others, whose code has to be known as well.
  const Filling own = !access_.unknown.empty() ? Filling::Unknown
                      : free_.empty()          ? Filling::Nothing
                                               : Filling::Some;
  const auto all = exchange(true, static_cast<std::uint32_t>(own)).numbers;
  const auto any = [&](Filling filling) {
    return std::find(all.begin(), all.end(), static_cast<std::uint32_t>(filling)) != all.end();
  };
  fills_ = any(Filling::Some) && !any(Filling::Unknown);
}

bool RegionReplay::is_covered(const Site& site) const {
  const auto found = access_.sites.find(&site);
  return fills_ && found != access_.sites.end() && found->second.unknown.empty() &&
         std::all_of(found->second.written.begin(), found->second.written.end(),
                     [&](const gpu::MemoryRange& range) {
                       return std::find(free_.begin(), free_.end(), range) != free_.end();
                     });
}

std::string RegionReplay::why_not_covered(const Site& site) const {
  if (!access_.unknown.empty()) return access_.unknown;
  const auto found = access_.sites.find(&site);
  if (found != access_.sites.end() && !found->second.unknown.empty()) return found->second.unknown;
  return "what it writes may decide where the region goes, or has no copy";
}

void RegionReplay::judge(Replayer& replayer, const Trials& tried, std::uint32_t number) {
  const auto drop_wrong = [this](Trials& trials) {
    std::erase_if(trials, [this](const Config& one) { return wrong_.contains(one); });
  };
  Trials right = tried;
  drop_wrong(right);
  if (fills_) {
    Trials known = right;
    std::erase_if(known, [this](const Config& one) {
      const auto found = access_.sites.find(one.first);
      return found == access_.sites.end() || found->second.unknown_configs.contains(one.second);
    });
    if ((together_ || !known.empty()) && are_right_when_filled(replayer, known, number)) {
      std::erase_if(known, [this](const Config& one) { return !is_covered(*one.first); });
      search_.were_right(known);
    }
    drop_wrong(right);
  }
  for (const Config& one : right) {
    const auto found = access_.sites.find(one.first);
    const auto change = memory_->change_in(
        found == access_.sites.end() ? std::span<const gpu::MemoryRange>() : found->second.memory);
    Looks& looks = looks_[one];
    ++looks.number;
    if (change != 0) looks.changes.insert(change);
    if (looks.changes.size() >= least_changes) search_.were_right({one});
  }
}

bool RegionReplay::are_right_when_filled(Replayer& replayer, Trials& trials, std::uint32_t number) {
  constexpr std::uint64_t most_configs = std::uint64_t{1} << 32U;
  // One that is only written tells of itself whatever it holds.
  std::uint64_t fills = access_.reads_free && tolerance_.is_bitwise() ? gpu::Fill::num_kinds : 1;
  for (const std::uint32_t of_rank : exchange(true, static_cast<std::uint32_t>(fills)).numbers)
    fills = std::max<std::uint64_t>(fills, of_rank);
  const std::uint64_t first = (visits_ * most_configs + number) * gpu::Fill::num_kinds;
  for (std::uint64_t i = 0; i < fills && fills_; ++i) {
    filled_ = first + i;
    has_reference_ = false;
    fills_ = is_right_with(replayer, {});
    if (fills_ && !is_right_with(replayer, trials)) {
      fills_ = is_right_with(replayer, {});
      if (fills_) blame(replayer, trials);
      std::erase_if(trials, [this](const Config& one) { return wrong_.contains(one); });
    }
    filled_.reset();
    memory_->drop_reference();
    replayer.forget_reference();
  }
  if (!fills_) access_.unknown = "on other contents the defaults differ from run to run";
  return fills_ && !must_stop();
}

bool RegionReplay::is_right_on_filled(Replayer& replayer) {
  bool right = true;
  if (has_reference_) {
    right = memory_->agrees_with_reference();
  } else {
    try {
      memory_->take_reference();
    } catch (const gpu::NoRoom&) {
      right = false;
    }
    has_reference_ = right;
  }
  right = replayer.host_agrees_with_reference() && right;
  memory_->put_back();
  return right;
}

RegionReplay::Trials RegionReplay::unjudged(const Replayer& replayer) const {
  Trials found;
  for (const Site* site : replayer.sites()) {
    if (site->pinned) continue;
    for (std::uint32_t config = 1; config < site->configs.size(); ++config) {
      const bool is_open = search_.may_try(*site, config) && !wrong_.contains({site, config});
      if (is_open && !search_.was_right(*site, config)) found.emplace_back(site, config);
    }
  }
  return found;
}

bool RegionReplay::waits_for_other_contents(const Replayer& replayer) {
  const Trials open = must_stop() ? Trials() : unjudged(replayer);
  const bool may_wait = std::any_of(open.begin(), open.end(), [this](const Config& one) {
    return looks_[one].number < most_looks;
  });
  const auto all = exchange(true, may_wait ? 1 : 0).numbers;
  const bool waits = std::find(all.begin(), all.end(), 1U) != all.end();
  for (const Config& one : open) {
    const auto& [site, config] = one;
    if (waits) {
      screened_.erase(one);
      continue;
    }
    wrong_.insert(one);
    search_.leave_uncompared(
        *site, config,
        "Config " + std::to_string(config) + " (" + site->configs[config].to_string() +
            ") is never chosen, because it was not compared: what the region writes was there "
            "before or changed alike in all visits, and something else cannot be put there: " +
            why_not_covered(*site) + ".");
  }
  if (waits && !open.empty()) {
    services_.log.fallback(
        FallbackReason::NotCompared, region_.name(), open.front().first->label(),
        "Its configs are compared again in the next visit, before any is timed: " +
            why_not_covered(*open.front().first) + ".");
  }
  return waits;
}

void RegionReplay::reject(const Site& site, std::uint32_t config) {
  wrong_.emplace(&site, config);
  search_.reject(site, config);
}

}  // namespace contextune::intercept
