#include "intercept/tunable_launch.hpp"

#include <exception>

#include "intercept/search.hpp"

namespace contextune::intercept {

bool TunableLaunch::belongs_to(const TunableCall& tunable, const LaunchRegion* region) noexcept {
  return tunable.site_ != nullptr && tunable.site_->region == region;
}

CUresult TunableLaunch::issue(TunableCall& tunable, const contextune_launch& call,
                              const Launch& launch, const RegionServices& services) noexcept {
  if (!tunable.watched_) return services.launcher.as_written(call);
  Search& search = *tunable.site_->search;
  const Watch watch = search.watch();
  LaunchTimer* timer = watch == Watch::Activity ? services.measurement.timer() : nullptr;
  if (watch == Watch::Span) search.touch(launch.stream, false);
  if (timer != nullptr) timer->launch_begin(tunable.tag_, launch.stream);
  const CUresult result = services.launcher.as_written(call);
  if (timer != nullptr) timer->launch_end(tunable.tag_, launch.stream);
  if (is_sticky_error(result)) services.broke(result);
  if (result != CUDA_SUCCESS) return result;
  try {
    search.launched(tunable.tag_, tunable.site_->index, 0, timer != nullptr ? 1 : 0);
  } catch (const std::exception&) {
    // No memory to count it: the pass will miss a record.
  }
  if (watch == Watch::Span) search.touch(launch.stream, true);
  return result;
}

TunableCall::TunableCall(Site* site, StreamHandle stream) noexcept : site_(site), stream_(stream) {
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
  tag_ = search.tag(site->index);
  if (services.frontend != nullptr) return;
  if (stream_ == nullptr) stream_ = CU_STREAM_LEGACY;
  if (watch == Watch::Span) search.touch(stream_, false);
  if (watch == Watch::Activity) timer_ = services.measurement.timer();
  if (timer_ != nullptr) timer_->launch_begin(tag_, stream_);
}

bool TunableCall::end(bool launched) noexcept {
  if (!open_) return false;
  open_ = false;
  ThreadState& thread = this_thread();
  if (thread.call == this) thread.call = outer_;
  Search& search = *site_->search;
  if (timer_ != nullptr) timer_->launch_end(tag_, stream_);
  try {
    if (!watched_) {
      if (!launched && config_ != 0) {
        search.drop_winner(*site_, "Config " + std::to_string(config_) + " could not be launched.");
      }
    } else if (launched || config_ != 0) {
      if (!launched) search.failed(tag_, site_->index);
      search.launched(tag_, site_->index, 1, timer_ != nullptr && launched ? 1 : 0);
      if (stream_ != nullptr && search.watch() == Watch::Span) search.touch(stream_, true);
    }
  } catch (const std::exception&) {
    // No memory to count it: the pass will miss a record.
  }
  return !launched && config_ != 0;
}

}  // namespace contextune::intercept
