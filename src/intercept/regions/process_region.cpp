#include "intercept/regions/process_region.hpp"

#include <algorithm>
#include <exception>

#include "intercept/collectives/process_collectives.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/program/capture_watch.hpp"
#include "intercept/site/launcher.hpp"
#include "intercept/tuner/open_pass.hpp"
#include "intercept/tuner/screening.hpp"
#include "intercept/tuner/search_sites.hpp"
#include "intercept/tuner/search_trials.hpp"
#include "log/events.hpp"

namespace contextune::intercept {
namespace {

/// Launches of one window in the stages that compare regions elsewhere.
constexpr std::uint32_t window_launches = 8;
// Nobody waits for a site that was not launched for so long.
constexpr double most_absent_seconds = 0.25;

}  // namespace

ProcessRegion::ProcessRegion(std::string name, const Options& options,
                             const RegionServices& services)
    : LaunchRegion(std::move(name), services),
      options_(tuning_options(options)),
      judging_(judging(options)),
      trial_timeout_(options.trial_timeout),
      table_(this->name(), static_cast<std::size_t>(options.max_sites), services.for_sites(),
             *this),
      trial_(*this, services, table_) {}

bool ProcessRegion::finished() const noexcept {
  const std::lock_guard lock(mutex_);
  return std::all_of(windows_.begin(), windows_.end(),
                     [](const Window& window) { return window.search.finished(); });
}

void ProcessRegion::adopt(Site& site, SiteSpec spec, const log::SiteFacts& facts,
                          std::span<const std::uint32_t> unusable) {
  entries().say_first();
  Window* window = nullptr;
  {
    const std::lock_guard lock(mutex_);
    window = &windows_.emplace_back(name(), options_, judging_, services(), trial_timeout_);
  }
  site.region = this;
  site.window = window;
  (void)window->search.sites().add(site, std::move(spec), facts, unusable);
  if (!window->search.screening().has_suspects()) return;
  window->suspected.store(true, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  queue(*window, now_seconds());
}

void ProcessRegion::ready(Site& site, std::span<const std::uint32_t> unusable) {
  site.search->sites().ready(site, unusable);
}

CUresult ProcessRegion::launch(const contextune_launch& call, bool) noexcept {
  // NCCL's own kernel: what one rank does of a collective is no affair of this one alone.
  if (ProcessCollectives::is_inside()) return services().launcher.as_written(call);
  const std::uint64_t version = settled_version.load(std::memory_order_acquire);
  const Launch launch = launch_of(call);
  SiteTable::Found found;
  try {
    if (table_.has_builds()) table_.finish_builds();
    found = table_.find(launch);
  } catch (const std::exception& error) {
    stop(FallbackReason::InternalError, error.what());
    return services().launcher.as_written(call);
  }
  if (found.resolved == nullptr) {
    return trial_.settled_for_good(call, launch, found, 0, nullptr, version);
  }
  Site& site = found.resolved->site();
  if (site.window == nullptr) return services().launcher.as_written(call);  // one too many
  Window& window = *static_cast<Window*>(site.window);
  const CUresult result = launch_site(call, launch, found, window, version);
  window.search.await_notes();
  return result;
}

CUresult ProcessRegion::launch_site(const contextune_launch& call, const Launch& launch,
                                    const SiteTable::Found& found, Window& window,
                                    std::uint64_t version) noexcept {
  const Site& site = found.resolved->site();
  const bool done = window.search.finished() || services().stopped.load(std::memory_order_acquire);
  if (is_capturing(launch)) {
    if (!done) services().log.fallback(FallbackReason::Capture, name(), site.label(), {});
    return trial_.settled(call, launch, found, done ? site.settled() : 0, &window.search);
  }
  if (done) {
    if (window.search.trials().any_winners()) window.lookout.begin(*this);
    return trial_.settled_for_good(call, launch, found, site.settled(), &window.search, version);
  }
  // A second thread at the same site does not disturb the window of the first.
  if (window.busy.exchange(true, std::memory_order_acquire)) {
    return trial_.settled(call, launch, found, site.settled(), &window.search);
  }
  const CUresult result = launch_in_window(call, launch, found, window);
  window.busy.store(false, std::memory_order_release);
  return result;
}

void ProcessRegion::queue(Window& window, double now) {
  window.seen = now;
  if (std::find(suspected_.begin(), suspected_.end(), &window) != suspected_.end()) return;
  suspected_.push_back(&window);
  if (suspected_.size() == 1) turn_began_ = now;
  any_suspected_.store(true, std::memory_order_relaxed);
}

void ProcessRegion::next_turn(double now) {
  suspected_.pop_front();
  turn_began_ = now;
  any_suspected_.store(!suspected_.empty(), std::memory_order_relaxed);
}

bool ProcessRegion::may_begin(Window& window, double now) {
  const bool is_suspected = window.suspected.load(std::memory_order_relaxed);
  if (!is_suspected && !any_suspected_.load(std::memory_order_relaxed)) return true;
  const std::lock_guard lock(mutex_);
  if (is_suspected) queue(window, now);
  window.seen = now;
  const auto is_here = [&](const Window& one) { return now - one.seen < most_absent_seconds; };
  while (!suspected_.empty()) {
    Window& first = *suspected_.front();
    const bool awaits = first.search.screening().awaits_trials(now);
    if (!first.search.screening().has_suspects()) {
      first.suspected.store(false, std::memory_order_relaxed);
    } else if (awaits || is_here(first)) {
      break;
    }
    next_turn(now);
  }
  if (suspected_.empty()) return true;
  if (suspected_.front() != &window) return false;
  if (now - turn_began_ > trial_timeout_) return true;  // of the others it is said that they hang
  return std::none_of(windows_.begin(), windows_.end(), [&](Window& other) {
    return &other != &window && is_here(other) && other.search.screening().awaits_trials(now);
  });
}

CUresult ProcessRegion::launch_in_window(const contextune_launch& call, const Launch& launch,
                                         const SiteTable::Found& found, Window& window) noexcept {
  Search& search = window.search;
  try {
    const double now = now_seconds();
    if (window.left == 0 && !may_begin(window, now)) {
      search.pass_by(now);
      window.left = 1;
    } else if (window.left == 0) {
      search.begin(now);
      window.left = search.pass().compares_regions() ? window_launches : 1;
    }
  } catch (const std::exception& error) {
    stop(FallbackReason::InternalError, error.what());
  }
  const Site& site = found.resolved->site();
  const Watch watch = search.watch();
  window.lookout.begin(*this);  // before: the launch may not come back
  const CUresult result = watch == Watch::Nothing
                              ? trial_.settled(call, launch, found, site.settled(), &search)
                              : trial_.watched(call, launch, found, site.planned(), search, watch);
  if (window.left != 0 && --window.left == 0) {
    try {
      search.end(now_seconds());
    } catch (const std::exception& error) {
      stop(FallbackReason::InternalError, error.what());
    }
  }
  return result;
}

void ProcessRegion::saw_collective() noexcept {
  if (said_collectives_.load(std::memory_order_relaxed) || said_collectives_.exchange(true)) return;
  services().log.fallback(FallbackReason::UnmarkedCollectives, name(), {}, {});
}

void ProcessRegion::check_probation() noexcept {
  if (services().captures.any()) return;
  const std::lock_guard lock(mutex_);
  for (Window& window : windows_) {
    try {
      if (window.search.trials().any_winners()) window.search.trials().check();
    } catch (const std::exception&) {
      // No memory: it is looked at again.
    }
  }
}

void ProcessRegion::forget_context(CUcontext context, bool /*gone*/) noexcept {
  const std::lock_guard lock(mutex_);
  for (Window& window : windows_) window.lookout.forget_context(context);
}

void ProcessRegion::write_summary() noexcept {
  // The region gets one line: its sites are searches of their own only inside.
  log::SummaryEvent event;
  event.region = name();
  event.stage = finished() ? "finished" : "table";
  event.simulated = services().log.simulated();
  const std::lock_guard lock(mutex_);
  for (Window& window : windows_) {
    const SearchFigures figures = window.search.figures();
    event.passes += figures.passes;
    event.entries += figures.entries;
    event.tuning_seconds = std::max(event.tuning_seconds, figures.tuning_seconds);
    event.sites += figures.sites;
    event.tuned += figures.tuned;
    if (!window.search.finished()) event.stage = to_string(figures.stage);
  }
  log::write_summary(services().log.lines(), event);
}

void ProcessRegion::stop(FallbackReason reason, const std::string& text) noexcept {
  const std::lock_guard lock(mutex_);
  for (Window& window : windows_) {
    try {
      window.search.stop(reason, text);
    } catch (const std::exception&) {
      // It runs what was settled.
    }
  }
}

}  // namespace contextune::intercept
