// The trials of a replay: which configs are right, and the passes of the search.
#include <algorithm>
#include <utility>

#include "intercept/host/clock.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/replay/region_replay.hpp"
#include "intercept/tuner/screening.hpp"

namespace contextune::intercept {
namespace {

constexpr double build_seconds = 120;
// For so long another thread of the program is kept off the GPU; the next visit goes on then.
constexpr double patience_seconds = 1;

}  // namespace

void RegionReplay::tune(Replayer& replayer) {
  // The first run without anything changed also fetches what a replay needs for the first time.
  const bool same = is_right_here(replayer, {});
  const bool writes_to_host = host_->put_back();
  const bool same_everywhere = exchange(same && !writes_to_host).right;
  if (writes_to_host) decline_for(FallbackReason::HostMemory, "A kernel writes to host memory.");
  if (!same) decline_for(FallbackReason::NotDeterministic, {});
  if (!same_everywhere)
    decline_for(FallbackReason::NotDeterministic, "Another rank's replay left something else.");
  search_.ranks().occupied(build_seconds, "gets its variants ready");
  if (together_) ranks_->occupied(build_seconds, "gets its variants ready");
  finish_builds();
  look_at_code(replayer);
  screen(replayer);
  if (waits_for_other_contents(replayer)) return search_.ranks().pause();
  const auto wait_for_builds = [this] {
    finish_builds();
    return true;  // a replay waits for its own work
  };
  // Where ranks go on together, they stop together, too, and not while they wait for one another.
  const auto interrupted = together_ ? std::function<bool()>() : [this] { return must_stop(); };
  while (!must_stop() && search_.begin_waiting(wait_for_builds, interrupted)) screen_pass(replayer);
  if (must_stop()) search_.ranks().pause();
  // Configs that were right one at a time have to be right together.
  const Trials winners = trials_of(replayer, [](const Site& site) { return site.settled(); });
  if (!is_right_with(replayer, winners)) {
    for (const auto& [site, config] : winners) reject(*site, config);
    search_.stop(FallbackReason::WrongResult,
                 "The winners together compute something else than the defaults.");
  }
}

RegionReplay::Trials RegionReplay::trials_of(
    const Replayer& replayer, const std::function<std::uint32_t(const Site&)>& config_of) {
  Trials trials;
  for (const Site* site : replayer.sites()) {
    const std::uint32_t config = config_of(*site);
    if (!site->pinned && config != 0) trials.emplace_back(site, config);
  }
  return trials;
}

void RegionReplay::screen_pass(Replayer& replayer) {
  Trials tried = trials_of(replayer, [](const Site& site) { return site.planned(); });
  if (together_) {
    for (const Site* site : collectives_->sites())
      if (site->planned() != 0) tried.emplace_back(site, site->planned());
  }
  find_whether_it_repeats(replayer);
  memory_->restore_initial();
  follow_itself(replayer);
  await_ranks(ReplayRanks::Run::Pass);
  replayer.run_pass([this] { search_.end(now_seconds()); });
  ++replays_;
  // Once right is not always right: a config may race with what it does not know of.
  if (!exchange(is_right(replayer)).right) blame(replayer, tried);
}

void RegionReplay::await_ranks(ReplayRanks::Run run) {
  if (together_) ranks_->await(run);
}

ReplayRanks::Findings RegionReplay::exchange(bool right, std::uint32_t number) {
  if (!together_) return {right, false, {number}};
  ReplayRanks::Findings all = ranks_->exchange(right, must_stop_here(), number);
  told_to_stop_ = told_to_stop_ || all.must_stop;
  return all;
}

bool RegionReplay::must_stop() const {
  return together_ ? told_to_stop_ : must_stop_here();
}

bool RegionReplay::must_stop_here() const {
  if (services_.stopped.load(std::memory_order_acquire)) return true;
  if (services_.gate.signal_waits()) {
    services_.log.fallback(FallbackReason::SignalWaits, region_.name(), {}, {});
    return true;
  }
  if (services_.gate.waited_seconds() < patience_seconds) return false;
  services_.log.fallback(FallbackReason::OtherThread, region_.name(), {},
                         "Another thread of the program waits for the GPU, so the replay ends "
                         "before the tuning does; the next visit goes on.");
  return true;
}

void RegionReplay::finish_builds() {
  const double begin = now_seconds();
  table_.finish_builds();
  while (table_.has_builds() && now_seconds() - begin < build_seconds && !must_stop_here()) {
    (void)services_.builds.wait_idle(0.1);
    table_.finish_builds();
  }
}

bool RegionReplay::is_right(Replayer& replayer) {
  // Both look for themselves at what the pass left.
  const bool memory = memory_->is_right();
  return replayer.host_results_agree() && memory;
}

void RegionReplay::run_with(Replayer& replayer, const Trials& trials) {
  replayer.run([&](const Site& site) {
    for (const auto& [tried, config] : trials)
      if (tried == &site) return config;
    return site.pinned.value_or(0);
  });
  ++replays_;
}

bool RegionReplay::is_right_with(Replayer& replayer, const Trials& trials) {
  return exchange(is_right_here(replayer, trials)).right;
}

bool RegionReplay::is_right_here(Replayer& replayer, const Trials& trials) {
  memory_->restore_initial();
  if (filled_) memory_->fill(*filled_, fill_seed_);
  await_ranks(ReplayRanks::Run::Trial);
  search_.screening().begin(trials);
  run_with(replayer, trials);
  const bool right = filled_ ? is_right_on_filled(replayer) : is_right(replayer);
  search_.screening().end();
  return right;
}

void RegionReplay::screen_suspects(Replayer& replayer) {
  Trials suspects;
  for (const Site* site : replayer.sites())
    for (const std::uint32_t config : search_.screening().suspects(*site))
      suspects.emplace_back(site, config);
  // Ranks try one config of one rank at a time.
  const auto by_rank = exchange(true, static_cast<std::uint32_t>(suspects.size())).numbers;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    const bool mine = !together_ || rank == ranks_->lockstep().position();
    for (std::uint32_t i = 0; i < by_rank[rank] && !must_stop(); ++i) {
      if (is_right_with(replayer, mine ? Trials{suspects[i]} : Trials{}) || !mine) continue;
      reject(*suspects[i].first, suspects[i].second);
    }
  }
}

void RegionReplay::screen(Replayer& replayer) {
  screen_suspects(replayer);
  std::size_t most_configs = 0;
  for (const Site* site : replayer.sites()) {
    most_configs = std::max(most_configs, site->pinned ? 0 : site->configs.size());
  }
  for (const std::uint32_t most : exchange(true, static_cast<std::uint32_t>(most_configs)).numbers)
    most_configs = std::max<std::size_t>(most_configs, most);
  // All sites at once, as in the table: only where that goes wrong one has to be found.
  for (std::uint32_t config = 1; config < most_configs && !must_stop(); ++config) {
    Trials tried;
    for (const Site* site : replayer.sites()) {
      if (site->pinned || config >= site->configs.size() ||
          !search_.screening().may_try(*site, config))
        continue;
      if (screened_.emplace(site, config).second) tried.emplace_back(site, config);
    }
    if (!together_ && tried.empty()) continue;
    if (!is_right_with(replayer, tried)) blame(replayer, tried);
    judge(replayer, tried, config);
  }
}

void RegionReplay::blame(Replayer& replayer, const Trials& tried) {
  if (!is_right_with(replayer, {})) decline_for(FallbackReason::NotDeterministic, {});
  if (together_) return blame_together(replayer, tried);
  Trials wrong;
  for (const auto& one : tried) {
    if (must_stop()) return look_again_at(tried);
    if (!is_right_with(replayer, {one})) wrong.push_back(one);
  }
  if (wrong.empty() && !is_right_with(replayer, tried)) {
    // Wrong in company only: without one of the fewest that are, the others are right.
    Trials company = tried;
    for (std::size_t i = 0; i < company.size() && company.size() > 1;) {
      if (must_stop()) return look_again_at(tried);
      Trials fewer = company;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (is_right_with(replayer, fewer)) {
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

void RegionReplay::blame_together(Replayer& replayer, const Trials& tried) {
  // Ranks try one config of one rank at a time, with the others' defaults beside it. Configs of
  // collectives are no rank's own, and not run here: they are left where no other is found to be
  // wrong.
  const auto own = trials_of(replayer, [&](const Site& site) {
    const auto at = std::find_if(tried.begin(), tried.end(),
                                 [&](const auto& one) { return one.first == &site; });
    return at == tried.end() ? 0 : at->second;
  });
  const auto by_rank = exchange(true, static_cast<std::uint32_t>(own.size())).numbers;
  bool found = false;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (std::uint32_t i = 0; i < by_rank[rank]; ++i) {
      if (must_stop()) return look_again_at(tried);
      const bool mine = rank == ranks_->lockstep().position();
      if (is_right_with(replayer, mine ? Trials{own[i]} : Trials{})) continue;
      found = true;
      if (mine) reject(*own[i].first, own[i].second);
    }
  }
  // Wrong in company only, or once and not again: none of them is to be trusted.
  if (!found)
    for (const auto& [site, config] : tried) reject(*site, config);
}

void RegionReplay::look_again_at(const Trials& tried) {
  for (const auto& one : tried) screened_.erase(one);
}

}  // namespace contextune::intercept
