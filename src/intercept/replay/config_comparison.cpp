#include "intercept/replay/config_comparison.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "gpu/memory/memory_fill.hpp"
#include "intercept/recording/declined.hpp"
#include "intercept/tuner/screening.hpp"

namespace contextune::intercept {
namespace {

constexpr std::size_t least_changes = 2;
// Visits that a config waits for to find others.
constexpr int most_looks = 3;

}  // namespace

void ConfigComparison::screen(ComparedRuns& runs, FillableMemory& memory) {
  screen_suspects(runs);
  std::size_t most_configs = 0;
  for (const Site* site : runs.sites()) {
    most_configs = std::max(most_configs, site->pinned ? 0 : site->configs.size());
  }
  for (const std::uint32_t most :
       ranks_.exchange(true, static_cast<std::uint32_t>(most_configs)).numbers)
    most_configs = std::max<std::size_t>(most_configs, most);
  // All sites at once, as in the table: only where that goes wrong one has to be found.
  for (std::uint32_t config = 1; config < most_configs && !ranks_.must_stop(); ++config) {
    Trials tried;
    for (const Site* site : runs.sites()) {
      if (site->pinned || config >= site->configs.size() ||
          !search_.screening().may_try(*site, config))
        continue;
      if (screened_.emplace(site, config).second) tried.emplace_back(site, config);
    }
    if (!ranks_.together() && tried.empty()) continue;
    if (!runs.is_right_with(tried)) blame(runs, tried);
    judge(runs, memory, tried, config);
  }
}

void ConfigComparison::screen_suspects(ComparedRuns& runs) {
  Trials suspects;
  for (const Site* site : runs.sites())
    for (const std::uint32_t config : search_.screening().suspects(*site))
      suspects.emplace_back(site, config);
  // Ranks try one config of one rank at a time.
  const auto by_rank = ranks_.exchange(true, static_cast<std::uint32_t>(suspects.size())).numbers;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    const bool mine = !ranks_.together() || rank == ranks_.lockstep().position();
    for (std::uint32_t i = 0; i < by_rank[rank] && !ranks_.must_stop(); ++i) {
      if (runs.is_right_with(mine ? Trials{suspects[i]} : Trials{}) || !mine) continue;
      reject(*suspects[i].first, suspects[i].second);
    }
  }
}

void ConfigComparison::judge(ComparedRuns& runs, FillableMemory& memory, const Trials& tried,
                             std::uint32_t number) {
  Trials right = tried;
  drop_wrong(right);
  judge_known(runs, memory, right, number);
  judge_unknown(runs, memory, right, number);
  drop_wrong(right);
  for (const Config& one : right) {
    const auto change = runs.change_in(memory.memory_of(*one.first));
    Looks& looks = looks_[one];
    ++looks.number;
    if (change != 0) looks.changes.insert(change);
    if (looks.changes.size() >= least_changes) search_.screening().were_right({one});
  }
}

void ConfigComparison::judge_known(ComparedRuns& runs, FillableMemory& memory, const Trials& right,
                                   std::uint32_t number) {
  if (!memory.fills()) return;
  Trials known = right;
  std::erase_if(known,
                [&](const Config& one) { return memory.has_unknown_code(*one.first, one.second); });
  if (!ranks_.together() && known.empty()) return;
  if (!are_right_when_filled(runs, memory, known, memory.ranges(), number)) return;
  std::erase_if(known,
                [&](const Config& one) { return !memory.is_covered(*one.first, memory.ranges()); });
  search_.screening().were_right(known);
}

void ConfigComparison::judge_unknown(ComparedRuns& runs, FillableMemory& memory,
                                     const Trials& right, std::uint32_t number) {
  if (ranks_.together()) return;  // what it leaves comes to other ranks
  for (const Config& one : right) {
    if (!memory.has_unknown_code(*one.first, one.second)) continue;
    const auto filled = memory.ranges_for_unknown(*one.first);
    if (filled.empty()) continue;
    Trials alone{one};
    if (are_right_when_filled(runs, memory, alone, filled, number))
      search_.screening().were_right(alone);
  }
}

bool ConfigComparison::are_right_when_filled(ComparedRuns& runs, FillableMemory& memory,
                                             Trials& trials,
                                             const std::vector<gpu::MemoryRange>& filled,
                                             std::uint32_t number) {
  // Memory that is only written tells of itself whatever it holds.
  std::uint64_t fills = memory.is_read() && tolerance_.is_bitwise() ? gpu::Fill::num_kinds : 1;
  for (const std::uint32_t of_rank :
       ranks_.exchange(true, static_cast<std::uint32_t>(fills)).numbers)
    fills = std::max<std::uint64_t>(fills, of_rank);
  bool same = true;  // the defaults leave it again
  for (std::uint64_t i = 0; i < fills && same; ++i) {
    runs.fill(filled, number, i);
    same = runs.is_right_with({});
    if (same && !runs.is_right_with(trials)) {
      same = runs.is_right_with({});
      if (same) blame(runs, trials);
      drop_wrong(trials);
    }
    runs.end_fill();
  }
  if (!same) memory.give_up("the defaults differ from run to run on other contents");
  return same && !ranks_.must_stop();
}

void ConfigComparison::drop_wrong(Trials& trials) const {
  std::erase_if(trials, [this](const Config& one) { return wrong_.contains(one); });
}

void ConfigComparison::blame(ComparedRuns& runs, const Trials& tried) {
  if (!runs.is_right_with({})) decline_for(FallbackReason::NotDeterministic, {});
  if (ranks_.together()) return blame_together(runs, tried);
  Trials wrong;
  for (const auto& one : tried) {
    if (ranks_.must_stop()) return look_again_at(tried);
    if (!runs.is_right_with({one})) wrong.push_back(one);
  }
  if (wrong.empty() && !runs.is_right_with(tried)) {
    // Wrong in company only: without one of the fewest that are, the others are right.
    Trials company = tried;
    for (std::size_t i = 0; i < company.size() && company.size() > 1;) {
      if (ranks_.must_stop()) return look_again_at(tried);
      Trials fewer = company;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (runs.is_right_with(fewer)) {
        ++i;
      } else {
        company = std::move(fewer);
      }
    }
    wrong.push_back(company.back());
  }
  // If the wrong result does not come again, none of them is to be trusted.
  for (const auto& [site, config] : wrong.empty() ? tried : wrong) reject(*site, config);
}

void ConfigComparison::blame_together(ComparedRuns& runs, const Trials& tried) {
  // Ranks try one config of one rank at a time, with the others' defaults beside it. Configs of
  // collectives are no rank's own, and not run here: they are left where no other is found to be
  // wrong.
  const auto own = runs.trials_of([&](const Site& site) {
    const auto at = std::find_if(tried.begin(), tried.end(),
                                 [&](const auto& one) { return one.first == &site; });
    return at == tried.end() ? 0 : at->second;
  });
  const auto by_rank = ranks_.exchange(true, static_cast<std::uint32_t>(own.size())).numbers;
  bool found = false;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (std::uint32_t i = 0; i < by_rank[rank]; ++i) {
      if (ranks_.must_stop()) return look_again_at(tried);
      const bool mine = rank == ranks_.lockstep().position();
      if (runs.is_right_with(mine ? Trials{own[i]} : Trials{})) continue;
      found = true;
      if (mine) reject(*own[i].first, own[i].second);
    }
  }
  // Wrong in company only, or once and not again: none of them is to be trusted.
  if (!found)
    for (const auto& [site, config] : tried) reject(*site, config);
}

void ConfigComparison::look_again_at(const Trials& tried) {
  for (const auto& one : tried) screened_.erase(one);
}

ConfigComparison::Trials ConfigComparison::unjudged(const ComparedRuns& runs) const {
  Trials found;
  for (const Site* site : runs.sites()) {
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

bool ConfigComparison::has_judged(const ComparedRuns& runs) const {
  const auto& sites = runs.sites();
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

bool ConfigComparison::waits_for_other_contents(const ComparedRuns& runs,
                                                const FillableMemory& memory) {
  constexpr std::uint32_t may_wait = 1;
  constexpr std::uint32_t has_others = 2;
  const Trials open = ranks_.must_stop() ? Trials() : unjudged(runs);
  std::uint32_t own = has_judged(runs) ? has_others : 0;
  if (std::any_of(open.begin(), open.end(),
                  [this](const Config& one) { return looks_[one].number < most_looks; }))
    own |= may_wait;
  std::uint32_t any = 0;
  for (const std::uint32_t of_rank : ranks_.exchange(true, own).numbers) any |= of_rank;
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
            memory.why_not_covered(*site, config) + ".");
  }
  if (waits && !open.empty()) {
    services_.log.fallback(
        FallbackReason::NotCompared, region_.name(), open.front().first->label(),
        "Nothing of the region is tuned before its next visit, in which its configs are compared "
        "again: " +
            memory.why_not_covered(*open.front().first, open.front().second) + ".");
  }
  return waits;
}

void ConfigComparison::reject(const Site& site, std::uint32_t config) {
  wrong_.emplace(&site, config);
  search_.screening().reject(site, config);
}

}  // namespace contextune::intercept
