#include "intercept/regions/tunable_launch.hpp"

#include <exception>
#include <optional>
#include <utility>

#include "intercept/host/entry_form.hpp"
#include "intercept/marks/open_regions.hpp"
#include "intercept/memory/transfer.hpp"
#include "intercept/program/capture_watch.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/site/launcher.hpp"
#include "intercept/tuner/open_pass.hpp"
#include "intercept/tuner/search.hpp"
#include "intercept/tuner/search_sites.hpp"

namespace contextune::intercept {
namespace {

/// Where a copy or a fill goes. Absent: it is none.
std::optional<StreamHandle> stream_of_transfer(contextune_fn fn, void* const* args) noexcept {
  const auto at = [&](std::size_t place) -> StreamHandle {
    return stream_meant(fn, *static_cast<CUstream const*>(args[place]));
  };
  switch (legacy_form(fn)) {
    case contextune_fn_cuMemcpyPeer:
    case contextune_fn_cuMemcpy2D_v2:
    case contextune_fn_cuMemcpy2DUnaligned_v2:
    case contextune_fn_cuMemcpy3D_v2:
    case contextune_fn_cuMemcpy3DPeer:
    case contextune_fn_cuMemcpyDtoA_v2:
    case contextune_fn_cuMemcpyAtoD_v2:
    case contextune_fn_cuMemcpyHtoA_v2:
    case contextune_fn_cuMemcpyAtoH_v2:
    case contextune_fn_cuMemcpyAtoA_v2:
      return stream_meant(fn, nullptr);
    case contextune_fn_cuMemcpy2DAsync_v2:
    case contextune_fn_cuMemcpy3DAsync_v2:
    case contextune_fn_cuMemcpy3DPeerAsync:
      return at(1);
    case contextune_fn_cuMemcpyHtoAAsync_v2:
    case contextune_fn_cuMemcpyAtoHAsync_v2:
      return at(4);
    case contextune_fn_cuMemcpyPeerAsync:
      return at(5);
    default:
      break;
  }
  const std::optional<Transfer> transfer = transfer_of(fn, args);
  if (!transfer) return std::nullopt;
  return transfer->stream;
}

/// Several copies in one call, of which CUPTI does not say how many records there will be.
bool is_batch(contextune_fn fn) noexcept {
  switch (legacy_form(fn)) {
    case contextune_fn_cuMemcpyBatchAsync:
    case contextune_fn_cuMemcpyBatchAsync_v2:
    case contextune_fn_cuMemcpy3DBatchAsync:
    case contextune_fn_cuMemcpy3DBatchAsync_v2:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool TunableLaunch::belongs_to(const TunableCall& tunable, const LaunchRegion* region) noexcept {
  return tunable.site_ != nullptr && tunable.site_->region == region;
}

CUresult TunableLaunch::issue(TunableCall& tunable, const contextune_launch& call,
                              const Launch& launch, const RegionServices& services) noexcept {
  if (!tunable.watched_) return services.launcher.as_written(call);
  Search& search = *tunable.site_->search;
  const Watch watch = search.watch();
  LaunchTimer* timer = watch == Watch::Activity ? services.measurement.timer() : nullptr;
  const bool spans = watch == Watch::Span && tunable.stream_ != launch.stream;
  if (spans && search.pass().touch(launch.stream, false)) tunable.stream_ = launch.stream;
  if (timer != nullptr) timer->launch_begin(tunable.tag_, launch.stream);
  const CUresult result = services.launcher.as_written(call);
  if (timer != nullptr) timer->launch_end(tunable.tag_, launch.stream);
  if (is_sticky_error(result)) services.broke(result);
  if (result != CUDA_SUCCESS || (watch == Watch::Span && !spans)) return result;
  try {
    search.pass().launched(tunable.tag_, tunable.site_->index, 0, timer != nullptr ? 1 : 0);
  } catch (const std::exception&) {
    // No memory to count it: the pass will miss a record.
  }
  if (spans) search.pass().touch(launch.stream, true);
  return result;
}

void TunableLaunch::forget_streams(TunableCall& tunable) noexcept {
  tunable.stream_ = nullptr;
}

void TunableLaunch::transfer_begins(TunableCall& tunable, contextune_fn fn,
                                    void* const* args) noexcept {
  if (!tunable.shows_copies_) return;
  if (is_batch(fn)) return cannot_time(tunable);
  const auto stream = stream_of_transfer(fn, args);
  const RegionServices& services = tunable.site_->region->services();
  if (!stream || services.captures.any()) return;
  Search& search = *tunable.site_->search;
  tunable.in_transfer_ = true;
  tunable.timer_ = search.watch() == Watch::Activity ? services.measurement.timer() : nullptr;
  if (search.watch() == Watch::Span) search.pass().touch(*stream, false);
  if (tunable.timer_ != nullptr) tunable.timer_->launch_begin(tunable.tag_, *stream);
}

void TunableLaunch::transfer_ended(TunableCall& tunable, contextune_fn fn, void* const* args,
                                   bool made) noexcept {
  // Whatever has begun meanwhile: the timer was told of its beginning.
  if (!std::exchange(tunable.in_transfer_, false)) return;
  const auto stream = stream_of_transfer(fn, args);
  Search& search = *tunable.site_->search;
  LaunchTimer* const timer = std::exchange(tunable.timer_, nullptr);
  if (timer != nullptr) timer->launch_end(tunable.tag_, *stream);
  if (!made) return;
  try {
    search.pass().launched(tunable.tag_, tunable.site_->index, 0, timer != nullptr ? 1 : 0);
  } catch (const std::exception&) {
    // No memory to count it: the pass will miss a record.
  }
  if (search.watch() == Watch::Span) search.pass().touch(*stream, true);
}

void TunableLaunch::cannot_time(TunableCall& tunable) noexcept {
  if (!tunable.watched_) return;
  try {
    tunable.site_->search->pass().ran_another(tunable.tag_, tunable.site_->index);
  } catch (const std::exception&) {
    // No memory to note it: its time lacks a part.
  }
}

bool TunableCall::is_span() const noexcept {
  return aside_ || (site_ != nullptr && site_->timed_as_span);
}

TunableCall::TunableCall(Aside) noexcept : open_(true), aside_(true) {
  ThreadState& thread = this_thread();
  outer_ = thread.call;
  thread.call = this;
}

TunableCall::TunableCall(Site* site) noexcept : site_(site) {
  if (site == nullptr) return;
  const RegionServices& services = site->region->services();
  config_ = site->settled();
  open_ = true;
  if (services.stopped.load(std::memory_order_acquire)) return;
  ThreadState& thread = this_thread();
  outer_ = thread.call;
  thread.call = this;
  const bool here =
      (thread.region != nullptr ? thread.region : services.open.only()) == site->region;
  Search& search = *site->search;
  const Watch watch = search.watch();
  watched_ = here && (thread.region == nullptr || thread.counts) && watch != Watch::Nothing;
  if (!watched_) return;
  config_ = site->planned();
  try {
    tag_ = site->timed_as_span && watch == Watch::Activity ? search.pass().begin_call(site->index)
                                                           : search.pass().tag(site->index);
  } catch (const std::exception&) {
    watched_ = false;  // no memory to time it: the site has one call less
    return;
  }
  if (services.frontend != nullptr) {
    // Copies are part of a span, and else are nobody's.
    shows_copies_ = site->timed_as_span;
    if (shows_copies_) services.gate.show_copies(true);
    return;
  }
  stream_ = CU_STREAM_LEGACY;
  if (watch == Watch::Span) search.pass().touch(stream_, false);
  if (watch == Watch::Activity) timer_ = services.measurement.timer();
  if (timer_ != nullptr) timer_->launch_begin(tag_, stream_);
}

bool TunableCall::end(bool launched, std::string_view why, std::uint32_t calls) noexcept {
  if (!open_) return false;
  open_ = false;
  ThreadState& thread = this_thread();
  if (thread.call == this) thread.call = outer_;
  if (aside_) return false;
  Search& search = *site_->search;
  if (std::exchange(shows_copies_, false)) site_->region->services().gate.show_copies(false);
  if (timer_ != nullptr) timer_->launch_end(tag_, stream_);
  try {
    if (!launched && config_ != 0 && !why.empty()) {
      site_->region->services().log.fallback(
          FallbackReason::LaunchFailed, site_->region->name(), site_->name,
          "Config " + std::to_string(config_) + " (" + site_->configs[config_].to_string() +
              ") failed: " + std::string(why));
    }
    if (!watched_) {
      if (!launched && config_ != 0) {
        search.sites().drop_winner(*site_,
                                   "Config " + std::to_string(config_) + " could not be launched.");
      }
    } else if (launched || config_ != 0) {
      if (!launched) search.pass().failed(tag_, site_->index);
      search.pass().launched(tag_, site_->index, calls, timer_ != nullptr && launched ? 1 : 0);
      if (stream_ != nullptr && search.watch() == Watch::Span) search.pass().touch(stream_, true);
    }
  } catch (const std::exception&) {
    // No memory to count it: the pass will miss a record.
  }
  return !launched && config_ != 0;
}

}  // namespace contextune::intercept
