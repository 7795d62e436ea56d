#include "intercept/regions/tuned_region.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "gpu/memory/l2_flush.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/host/own_arithmetic.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/program/idle_wait.hpp"
#include "intercept/regions/tunable_launch.hpp"
#include "intercept/tuner/open_pass.hpp"
#include "intercept/tuner/search_sites.hpp"
#include "intercept/tuner/search_trials.hpp"
#include "log/events.hpp"

namespace contextune::intercept {
namespace {

constexpr double build_wait_seconds = 15;  // of one round; begin_waiting makes several

bool may_replay(const Options& options, const RegionServices& services) {
  return (options.mode == Mode::Auto || options.mode == Mode::Replay) &&
         services.frontend != nullptr;
}

Judging judging_in(const Options& options, const RegionServices& services) {
  Judging here = judging(options);
  here.compares = may_replay(options, services);
  return here;
}

}  // namespace

TunedRegion::TunedRegion(std::string name, const Options& options, const RegionServices& services,
                         const StoredAs& as, Takes takes)
    : LaunchRegion(std::move(name), services, takes == Takes::All),
      repeated_(options.mode == Mode::Body),
      flush_l2_(options.flush_l2 && options.mode == Mode::Body),
      options_(options),
      search_(this->name(),
              [&](TuningObserver& observer, bool store_knows) {
                return services.ranks.tuning_of(this->name(), options, observer, store_knows,
                                                as.kind != StoredKind::Region);
              },
              takes == Takes::All ? RegionClock::Entry : RegionClock::EntryOnly,
              judging_in(options, services), services.measurement, services.store, services.log, as,
              {1, options.n_warmup, options.n_repeat}),
      table_(this->name(), static_cast<std::size_t>(options.max_sites), services.for_sites(),
             *this),
      trial_(*this, services, table_),
      lookout_(search_, services, options_.trial_timeout),
      graphs_(*this, services, table_, search_),
      collectives_(services.frontend == nullptr
                       ? nullptr
                       : std::make_unique<RegionCollectives>(
                             this->name(), services.driver, search_, table_, services.ranks,
                             options_, services.log,
                             takes == Takes::All ? Objective::Own : Objective::Region)),
      body_ranks_(*this, search_, collectives_.get(), options_) {
  if (may_replay(options, services)) {
    replay_ = std::make_unique<RegionReplay>(*this, services, options, search_, table_);
  }
  if (options.flush_l2 && !flush_l2_) {
    services.log.fault(
        "flush_l2 does nothing in region '" + this->name() +
        "': only a body that is repeated gets work of contextune between its passes");
  }
}

bool TunedRegion::finished() const noexcept {
  return search_.finished() || services().stopped.load(std::memory_order_acquire);
}

void TunedRegion::entered(bool thread_bound) noexcept {
  services().measurement.cupti().release_when_idle();
  // Another region repeats what it records, with all that is in it.
  if (services().recorder.active()) {
    if (!search_.finished()) services().log.fallback(FallbackReason::OtherRegion, name(), {}, {});
    return;
  }
  if (replay_ != nullptr) replay_->tidy();
  if (replay_ != nullptr && replay_->wanted() && !search_.finished()) {
    if (looks_first()) {
      looks_.store(true);
    } else if (replay_->begin_visit(thread_bound)) {
      return;
    }
  }
  try {
    table_.finish_builds();
    // A pass must not fall into a capture: nothing may be asked of the driver there.
    if (!services().captures.any()) search_.begin(now_seconds());
    lookout_.begin(*this);
  } catch (const std::exception& error) {
    stop(FallbackReason::InternalError, error.what());
  }
}

bool TunedRegion::looks_first() noexcept {
  // Ranks make their visits together, whatever each of them has stored.
  return search_.sites().are_only_shown() && !services().ranks.may_have_others();
}

bool TunedRegion::pass_entry() noexcept {
  const RegionServices& all = services();
  const bool has_work = !search_.finished() || search_.trials().any_winners() ||
                        all.measurement.cupti().wants_release() || all.recorder.active() ||
                        (replay_ != nullptr && !replay_->is_tidy()) || table_.has_builds() ||
                        all.captures.possible();
  if (has_work) return false;
  search_.skip();
  return true;
}

void TunedRegion::left() noexcept {
  const bool is_visited = replay_ != nullptr && replay_->in_visit();
  const bool has_looked = looks_.exchange(false);
  if (is_visited || has_looked || search_.watch() != Watch::Nothing) {
    const Uncancelled uncancelled;
    const OwnArithmetic arithmetic;
    close_entry(is_visited, has_looked);
  }
  search_.await_notes();
}

void TunedRegion::close_entry(bool is_visited, bool has_looked) noexcept {
  if (is_visited) return replay_->end_visit();
  if (services().stopped.load()) return;  // the driver may be gone
  try {
    search_.end(now_seconds());
    if (has_looked) search_.sites().note_unfinished();
  } catch (const std::exception& error) {
    stop(FallbackReason::InternalError, error.what());
  }
}

void TunedRegion::abandoned() noexcept {
  if (replay_ != nullptr && replay_->in_visit()) {
    services().recorder.obstruct(FallbackReason::ThreadEnded, {}, true);
    return replay_->end_visit();
  }
  try {
    search_.pass().spoil(FallbackReason::ThreadEnded);
    search_.end(now_seconds());
  } catch (const std::exception& error) {
    stop(FallbackReason::InternalError, error.what());
  }
}

bool TunedRegion::gpu_is_done() {
  CUcontext context = nullptr;
  if (services().driver.cuCtxGetCurrent(&context) == CUDA_SUCCESS && context != nullptr) {
    const auto end =
        end_within(services().driver, context, options_.trial_timeout, services().captures);
    if (!end) return false;
    // Before anything counts as survived.
    if (is_sticky_error(*end)) services().broke(*end);
  }
  return true;
}

bool TunedRegion::synchronise() {
  if (!gpu_is_done()) return false;
  if (table_.has_builds()) search_.ranks().occupied(build_wait_seconds, "builds its variants");
  (void)services().builds.wait_idle(build_wait_seconds);
  return true;
}

bool TunedRegion::begin_pass() noexcept {
  const bool runs_again = search_.pass().is_to_run_again();
  if (!runs_again) services().measurement.cupti().release_when_idle();
  if (finished() && !table_.has_builds()) {
    body_ranks_.leave();
    return false;
  }
  if (!body_ranks_.may_repeat()) return false;
  if (this_thread().is_in(this) || !entries().claim()) return false;
  if (runs_again && search_.pass().run_again()) {
    entries().begin_on_thread(RegionEntries::api_mark, true);
    return true;
  }
  const OwnArithmetic arithmetic;
  bool counts = false;
  switch (body_ranks_.come()) {
    case BodyRanks::Before::Pass:
      break;
    case BodyRanks::Before::Look:
      entries().begin_on_thread(RegionEntries::api_mark, true);
      return true;
    case BodyRanks::Before::Nothing:
      entries().release();
      return false;
  }
  try {
    table_.finish_builds();
    search_.may_hold_entries(!services().ranks.may_have_others(), !flush_l2_);
    const auto begins = [this] {
      return !services().captures.any() && search_.begin_waiting([this] {
        const bool idle = synchronise();
        table_.finish_builds();
        return idle;
      });
    };
    const auto is_ready = [this] { return options_.align == Align::Pass || gpu_is_done(); };
    do {
      counts = begins();
    } while (counts && options_.align != Align::None &&
             !search_.ranks().begin_together(is_ready, options_.trial_timeout));
    if (counts && flush_l2_) gpu::flush_l2(services().driver);
    lookout_.begin(*this);
  } catch (const std::exception& error) {
    stop(FallbackReason::InternalError, error.what());
  }
  if (!counts) {
    body_ranks_.leave();
    entries().release();
    return false;
  }
  entries().begin_on_thread(RegionEntries::api_mark, true);
  return true;
}

bool TunedRegion::end_pass() noexcept {
  entries().end_on_thread(RegionEntries::api_mark);
  if (const std::optional<bool> is_repeated = body_ranks_.end_look()) return !*is_repeated;
  const bool ends = search_.has_run_winners();
  if (ends) body_ranks_.leave();
  return ends;
}

void TunedRegion::abandon_pass() noexcept {
  // Perhaps the body was left because what was tried broke its context.
  if (!services().captures.any()) {
    const gpu::RelaxedCapture relaxed(services().driver);
    const CUresult state = services().driver.cuStreamQuery(CU_STREAM_LEGACY);
    if (is_sticky_error(state)) services().broke(state);
  }
  body_ranks_.abandon_look();
  search_.ranks().leave_passes("the body was left early");
  stop(FallbackReason::BodyLeft, {});
  entries().end_on_thread(RegionEntries::api_mark);
}

void TunedRegion::give_up(FallbackReason reason, const std::string& text) noexcept {
  try {
    search_.ranks().leave_passes("the body may not be repeated");
  } catch (const std::exception& error) {
    services().log.fault(error.what());
  }
  stop(reason, text);
}

Site* TunedRegion::tunable(const TunableSpec& given) noexcept {
  if (given.configs.size() < 2) return nullptr;
  try {
    SiteSpec spec;
    spec.name = given.name;
    spec.key = given.key;
    spec.configs = given.configs;
    spec.objective = given.region_objective ? Objective::Region : Objective::Own;
    spec.n_warmup = given.n_warmup;
    spec.n_repeat = given.n_repeat;
    return table_.tunable(std::move(spec), given);
  } catch (const std::exception& error) {
    services().log.fallback(FallbackReason::InternalError, name(), given.name, error.what());
    return nullptr;
  }
}

void TunedRegion::adopt(Site& site, SiteSpec spec, const log::SiteFacts& facts,
                        std::span<const std::uint32_t> unusable) {
  site.region = this;
  (void)search_.sites().add(site, std::move(spec), facts, unusable);
}

void TunedRegion::ready(Site& site, std::span<const std::uint32_t> unusable) {
  search_.sites().ready(site, unusable);
}

CUresult TunedRegion::launch(const contextune_launch& call, bool counts) noexcept {
  const bool in_collective = ProcessCollectives::is_inside();
  if (in_collective && search_.finished()) return services().launcher.as_written(call);
  const std::uint64_t version = settled_version.load(std::memory_order_acquire);
  const Launch launch = launch_of(call);
  if (TunableCall* tunable = this_thread().call) {
    if (TunableLaunch::belongs_to(*tunable, this)) return launch_in_call(call, launch, *tunable);
  }
  if (in_collective) {
    return launch_in_collective(call, launch, counts ? search_.watch() : Watch::Nothing);
  }
  SiteTable::Found found;
  try {
    found = table_.find(launch);
  } catch (const std::exception& error) {
    stop(FallbackReason::InternalError, error.what());
    return services().launcher.as_written(call);
  }
  if (is_capturing(launch)) return launch_captured(call, launch, found);
  const Watch watch = counts ? search_.watch() : Watch::Nothing;
  std::uint32_t config = 0;
  if (found.resolved != nullptr) {
    const Site& site = found.resolved->site();
    config = watch != Watch::Nothing ? site.planned() : site.settled();
  }
  if (watch == Watch::Nothing) {
    return search_.finished()
               ? trial_.settled_for_good(call, launch, found, config, &search_, version)
               : trial_.settled(call, launch, found, config, &search_);
  }
  return trial_.watched(call, launch, found, config, search_, watch);
}

CUresult TunedRegion::launch_in_collective(const contextune_launch& call, const Launch& launch,
                                           Watch watch) noexcept {
  if (is_capturing(launch)) return launch_captured(call, launch, {});
  if (watch == Watch::Nothing || collectives_ == nullptr) {
    return services().launcher.as_written(call);
  }
  const Site* const site = collectives_->site_of(ProcessCollectives::made());
  const SiteIndex index = site == nullptr ? no_site : site->index;
  const std::uint64_t tag = search_.pass().tag(index);
  LaunchTimer* timer = watch == Watch::Activity ? services().measurement.timer() : nullptr;
  if (watch == Watch::Span) search_.pass().touch(launch.stream, false);
  if (timer != nullptr) timer->launch_begin(tag, launch.stream);
  const CUresult result = services().launcher.as_written(call);
  if (timer != nullptr) timer->launch_end(tag, launch.stream);
  if (is_sticky_error(result)) services().broke(result);
  if (result != CUDA_SUCCESS) return result;
  try {
    search_.pass().launched(tag, index, 0, timer != nullptr ? 1 : 0);
  } catch (const std::exception&) {
    // No memory to count it: the pass will miss a record.
  }
  if (watch == Watch::Span) search_.pass().touch(launch.stream, true);
  return result;
}

CUresult TunedRegion::launch_captured(const contextune_launch& call, const Launch& launch,
                                      const SiteTable::Found& found) noexcept {
  // A graph keeps what is captured into it: only what is sure goes there.
  if (!search_.finished()) {
    try {
      search_.pass().spoil(FallbackReason::Capture);
    } catch (const std::exception&) {
      // Not said, then.
    }
    return services().launcher.as_written(call);
  }
  const std::uint32_t config = found.resolved == nullptr ? 0 : found.resolved->site().settled();
  try {
    const Variant* variant = config == 0 ? nullptr : table_.variant(found, config, launch);
    if (variant != nullptr && variant->usable) graphs_.captured(*variant);
  } catch (const std::exception&) {
    // No memory: where the graph is launched, its kernel is a site of its own.
  }
  return trial_.settled(call, launch, found, config, &search_);
}

CUresult TunedRegion::launch_graph(const GraphCall& call, bool counts) noexcept {
  return graphs_.launch(call, counts ? search_.watch() : Watch::Nothing);
}

CUresult TunedRegion::launch_in_call(const contextune_launch& call, const Launch& launch,
                                     TunableCall& tunable) noexcept {
  if (is_capturing(launch)) return launch_captured(call, launch, {});
  return TunableLaunch::issue(tunable, call, launch, services());
}

void TunedRegion::write_summary() noexcept {
  try {
    search_.write_summary();
  } catch (const std::exception&) {
    // The summary is lost; the lines before it tell the same.
  }
}

void TunedRegion::let_go() noexcept {
  search_.pass().let_go();
}

void TunedRegion::forget_stream(StreamHandle stream) noexcept {
  search_.pass().forget_stream(stream);
}

void TunedRegion::forget_context(CUcontext context, bool gone) noexcept {
  if (replay_ != nullptr) replay_->forget_context(context, gone);
  search_.pass().forget_context(context);
  lookout_.forget_context(context);
}

bool TunedRegion::is_tuned() {
  return search_.sites().are_tuned();
}

bool TunedRegion::has_winner(const Site& site) {
  return search_.sites().has_winner(site);
}

void TunedRegion::check_probation() noexcept {
  if (!search_.trials().any_winners() || services().captures.any()) return;
  try {
    search_.trials().check();
  } catch (const std::exception&) {
    // No memory: they are looked at again.
  }
}

void TunedRegion::stop(FallbackReason reason, const std::string& text) noexcept {
  body_ranks_.leave();
  try {
    search_.stop(reason, text);
  } catch (const std::exception&) {
    // Its sites run what was settled.
  }
}

}  // namespace contextune::intercept
