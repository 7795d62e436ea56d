#include "intercept/replay/visit_trials.hpp"

#include <functional>

#include "intercept/collectives/region_collectives.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/recording/declined.hpp"

namespace contextune::intercept {
namespace {

constexpr double build_seconds = 120;

}  // namespace

VisitTrials::VisitTrials(LaunchRegion& region, const RegionServices& services, Search& search,
                         SiteTable& table, Replayer& replayer, RegionMemory& memory,
                         VisitRanks& ranks, ConfigComparison& comparison, std::uint64_t visit)
    : region_(region),
      services_(services),
      search_(search),
      table_(table),
      recording_(replayer.recording()),
      memory_(memory),
      ranks_(ranks),
      comparison_(comparison),
      runs_(search, replayer, memory.copies(), ranks, visit),
      fillable_(memory.copies()) {}

void VisitTrials::tune() {
  // The first run without anything changed also fetches what a replay needs for the first time.
  const bool same = runs_.is_right_here({});
  const bool writes_to_host = memory_.host().put_back();
  const bool same_everywhere = ranks_.exchange(same && !writes_to_host).right;
  if (writes_to_host) decline_for(FallbackReason::HostMemory, "A kernel writes to host memory.");
  if (!same) decline_for(FallbackReason::NotDeterministic, {});
  if (!same_everywhere)
    decline_for(FallbackReason::NotDeterministic, "Another rank's replay left something else.");
  search_.ranks().occupied(build_seconds, "gets its variants ready");
  ranks_.occupied(build_seconds, "gets its variants ready");
  finish_builds();
  fillable_.find(find_access(region_, table_, recording_), ranks_);
  comparison_.screen(runs_, fillable_);
  if (comparison_.waits_for_other_contents(runs_, fillable_)) return search_.ranks().pause();
  const auto wait_for_builds = [this] {
    finish_builds();
    return true;  // a replay waits for its own work
  };
  // Where ranks go on together, they stop together, too, and not while they wait for one another.
  const auto interrupted =
      ranks_.together() ? std::function<bool()>() : [this] { return ranks_.must_stop(); };
  while (!ranks_.must_stop() && search_.begin_waiting(wait_for_builds, interrupted)) screen_pass();
  if (ranks_.must_stop()) search_.ranks().pause();
  // Configs that were right one at a time have to be right together.
  const auto winners = runs_.trials_of([](const Site& site) { return site.settled(); });
  if (!runs_.is_right_with(winners)) {
    for (const auto& [site, config] : winners) comparison_.reject(*site, config);
    search_.stop(FallbackReason::WrongResult,
                 "The winners together compute something else than the defaults.");
  }
}

void VisitTrials::finish_builds() {
  const double begin = now_seconds();
  table_.finish_builds();
  while (table_.has_builds() && now_seconds() - begin < build_seconds && !ranks_.must_stop_here()) {
    (void)services_.builds.wait_idle(0.1);
    table_.finish_builds();
  }
}

void VisitTrials::screen_pass() {
  ComparedRuns::Trials tried = runs_.trials_of([](const Site& site) { return site.planned(); });
  if (ranks_.together()) {
    for (const Site* site : region_.collectives()->sites())
      if (site->planned() != 0) tried.emplace_back(site, site->planned());
  }
  find_whether_it_repeats();
  memory_.copies().restore_initial();
  follow_itself();
  const bool right = runs_.is_pass_right([this] { search_.end(now_seconds()); });
  // Once right is not always right: a config may race with what it does not know of.
  if (!right) comparison_.blame(runs_, tried);
}

void VisitTrials::find_whether_it_repeats() {
  if (repeats_) return;
  why_restored_ = ranks_.together() ? "its ranks repeat it together"
                                    : fillable_.why_not_on_own_results(runs_.sites());
  if (why_restored_.empty() && !runs_.computes_the_same_again())
    why_restored_ = "run on its own results it computes something else";
  repeats_ = why_restored_.empty();
}

void VisitTrials::follow_itself() {
  // A lease counts the collectives of the passes, and of nothing else.
  if (ranks_.together()) return;
  // Comparing what the pass before left, and putting it back, has gone through the caches.
  runs_.run_planned();
  if (*repeats_) return;
  // Putting memory back now leaves the caches as they are, as far as it can.
  memory_.copies().restore_initial();
}

}  // namespace contextune::intercept
