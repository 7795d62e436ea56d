// Which configs compute what the default does. A run that leaves what is there already leaves what
// is right wherever the region was run before on the same inputs: so results are compared on other
// contents as well. Where the code of the kernels shows that the region may find anything in what
// it writes, that is filled, with other bytes for each config. Elsewhere bytes of ours might be
// taken for addresses, and a config has to be right in visits in which the region changed different
// things; where there are none, it is left out.
#include <algorithm>
#include <iterator>
#include <utility>

#include "gpu/memory/memory_fill.hpp"
#include "intercept/replay/region_replay.hpp"
#include "intercept/tuner/screening.hpp"

namespace contextune::intercept {
namespace {

constexpr std::size_t least_changes = 2;
// Visits that a config waits for to find others.
constexpr int most_looks = 3;

// A rank's report on its own part.
enum class Filling : std::uint32_t { Nothing, Some, Unknown };

}  // namespace

void RegionReplay::look_at_code(const Replayer& replayer) {
  access_ = find_access(region_, table_, replayer.recording());
  free_ = copied(access_.free);
  // Bytes that one rank fills in come to others, whose code has to be known as well.
  const Filling own = !access_.unknown.empty() ? Filling::Unknown
                      : free_.empty()          ? Filling::Nothing
                                               : Filling::Some;
  const auto all = exchange(true, static_cast<std::uint32_t>(own)).numbers;
  const auto any = [&](Filling filling) {
    return std::find(all.begin(), all.end(), static_cast<std::uint32_t>(filling)) != all.end();
  };
  fills_ = any(Filling::Some) && !any(Filling::Unknown);
}

std::vector<gpu::MemoryRange> RegionReplay::copied(
    const std::vector<gpu::MemoryRange>& ranges) const {
  std::vector<gpu::MemoryRange> found;
  std::copy_if(ranges.begin(), ranges.end(), std::back_inserter(found),
               [this](const gpu::MemoryRange& range) { return memory_->is_copied(range); });
  return found;
}

bool RegionReplay::has_unknown_code(const Config& one) const {
  const auto found = access_.sites.find(one.first);
  return found == access_.sites.end() || found->second.unknown_configs.contains(one.second);
}

bool RegionReplay::is_covered(const Site& site, const std::vector<gpu::MemoryRange>& filled) const {
  const auto found = access_.sites.find(&site);
  return fills_ && found != access_.sites.end() && found->second.unknown.empty() &&
         std::all_of(found->second.written.begin(), found->second.written.end(),
                     [&](const gpu::MemoryRange& range) {
                       return std::find(filled.begin(), filled.end(), range) != filled.end();
                     });
}

std::string RegionReplay::why_not_covered(const Config& one) const {
  if (!access_.unknown.empty()) return access_.unknown;
  const auto found = access_.sites.find(one.first);
  if (found != access_.sites.end() && !found->second.unknown.empty()) return found->second.unknown;
  if (fills_ && has_unknown_code(one))
    return "the code that it launches is not known, and may read what the region writes";
  return "memory that it writes may decide where the region goes, or has no copy";
}

void RegionReplay::drop_wrong(Trials& trials) const {
  std::erase_if(trials, [this](const Config& one) { return wrong_.contains(one); });
}

void RegionReplay::judge(Replayer& replayer, const Trials& tried, std::uint32_t number) {
  Trials right = tried;
  drop_wrong(right);
  judge_known(replayer, right, number);
  judge_unknown(replayer, right, number);
  drop_wrong(right);
  for (const Config& one : right) {
    const auto found = access_.sites.find(one.first);
    const auto change = memory_->change_in(
        found == access_.sites.end() ? std::span<const gpu::MemoryRange>() : found->second.memory);
    Looks& looks = looks_[one];
    ++looks.number;
    if (change != 0) looks.changes.insert(change);
    if (looks.changes.size() >= least_changes) search_.screening().were_right({one});
  }
}

void RegionReplay::judge_known(Replayer& replayer, const Trials& right, std::uint32_t number) {
  if (!fills_) return;
  Trials known = right;
  std::erase_if(known, [this](const Config& one) { return has_unknown_code(one); });
  if (!together_ && known.empty()) return;
  if (!are_right_when_filled(replayer, known, free_, number)) return;
  std::erase_if(known, [this](const Config& one) { return !is_covered(*one.first, free_); });
  search_.screening().were_right(known);
}

// A function whose code nobody can read computes what the default does, or is wrong. A right one
// depends on nothing but what the default reads, of which the code is known: with other bytes
// anywhere else it runs as in the visit. A function that looks at those bytes all the same is
// wrong. It is found by what it leaves, or, if it crashes, by the journal.
void RegionReplay::judge_unknown(Replayer& replayer, const Trials& right, std::uint32_t number) {
  if (together_) return;  // what it leaves comes to other ranks
  for (const Config& one : right) {
    const auto found = access_.sites.find(one.first);
    if (!fills_ || found == access_.sites.end() || !has_unknown_code(one)) continue;
    const auto filled = copied(found->second.never_read);
    if (filled.empty() || !is_covered(*one.first, filled)) continue;
    Trials alone{one};
    if (are_right_when_filled(replayer, alone, filled, number))
      search_.screening().were_right(alone);
  }
}

bool RegionReplay::are_right_when_filled(Replayer& replayer, Trials& trials,
                                         const std::vector<gpu::MemoryRange>& filled,
                                         std::uint32_t number) {
  constexpr std::uint64_t most_configs = std::uint64_t{1} << 32U;
  // Memory that is only written tells of itself whatever it holds.
  std::uint64_t fills = access_.reads_free && tolerance_.is_bitwise() ? gpu::Fill::num_kinds : 1;
  for (const std::uint32_t of_rank : exchange(true, static_cast<std::uint32_t>(fills)).numbers)
    fills = std::max<std::uint64_t>(fills, of_rank);
  const std::uint64_t first = (visits_ * most_configs + number) * gpu::Fill::num_kinds;
  for (std::uint64_t i = 0; i < fills && fills_; ++i) {
    filled_ = filled;
    fill_seed_ = first + i;
    has_reference_ = false;
    fills_ = is_right_with(replayer, {});
    if (fills_ && !is_right_with(replayer, trials)) {
      fills_ = is_right_with(replayer, {});
      if (fills_) blame(replayer, trials);
      drop_wrong(trials);
    }
    filled_.reset();
    memory_->drop_reference();
    replayer.forget_reference();
  }
  if (!fills_) access_.unknown = "the defaults differ from run to run on other contents";
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
      const bool is_open =
          search_.screening().may_try(*site, config) && !wrong_.contains({site, config});
      if (is_open && !search_.screening().was_right(*site, config))
        found.emplace_back(site, config);
    }
  }
  return found;
}

bool RegionReplay::has_judged(const Replayer& replayer) const {
  const auto& sites = replayer.sites();
  return std::any_of(sites.begin(), sites.end(), [this](const Site* site) {
    if (site->pinned) return false;
    for (std::uint32_t config = 1; config < site->configs.size(); ++config) {
      const bool is_out = wrong_.contains({site, config});
      if (!is_out && search_.screening().has_to_time(*site, config) &&
          search_.screening().was_right(*site, config))
        return true;
    }
    return false;
  });
}

bool RegionReplay::waits_for_other_contents(const Replayer& replayer) {
  constexpr std::uint32_t may_wait = 1;
  constexpr std::uint32_t has_others = 2;
  const Trials open = must_stop() ? Trials() : unjudged(replayer);
  std::uint32_t own = has_judged(replayer) ? has_others : 0;
  if (std::any_of(open.begin(), open.end(),
                  [this](const Config& one) { return looks_[one].number < most_looks; }))
    own |= may_wait;
  std::uint32_t any = 0;
  for (const std::uint32_t of_rank : exchange(true, own).numbers) any |= of_rank;
  // Nobody knows whether there is another visit.
  const bool waits = any == may_wait;
  for (const Config& one : open) {
    const auto& [site, config] = one;
    if (waits) {
      screened_.erase(one);
      continue;
    }
    wrong_.insert(one);
    const std::string begin =
        "Config " + std::to_string(config) + " (" + site->configs[config].to_string() + ") ";
    const bool may_later = looks_[one].number < most_looks;
    search_.screening().leave_uncompared(
        *site, config,
        begin +
            (may_later ? "is left to the next run, because one visit does not show whether it is "
                         "right, and the other configs do not wait: "
                       : "is never chosen, because it was not compared. The region's results were "
                         "there before or changed alike in all visits, and something else cannot "
                         "be put there: ") +
            why_not_covered(one) + ".");
  }
  if (waits && !open.empty()) {
    services_.log.fallback(
        FallbackReason::NotCompared, region_.name(), open.front().first->label(),
        "Nothing of the region is tuned before its next visit, in which its configs are compared "
        "again: " +
            why_not_covered(open.front()) + ".");
  }
  return waits;
}

void RegionReplay::reject(const Site& site, std::uint32_t config) {
  wrong_.emplace(&site, config);
  search_.screening().reject(site, config);
}

}  // namespace contextune::intercept
