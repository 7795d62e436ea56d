// The waits of a visit where it begins and ends.
#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "intercept/collectives/process_collectives.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/program/idle_wait.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/replay/region_replay.hpp"

namespace contextune::intercept {

void RegionReplay::find_context() {
  const gpu::Driver& driver = services_.driver;
  if (driver.cuCtxGetCurrent(&context_) != CUDA_SUCCESS || context_ == nullptr) {
    decline_for(FallbackReason::UnknownMemory, "No context is current where the region begins.",
                true);
  }
  device_ = gpu::current_device(driver).value_or(-1);
  wait_at_begin(idle_seconds);
}

void RegionReplay::go_on_unless_stopped() const {
  if (services_.stopped.load()) decline_for(FallbackReason::ReplayFailed, "Tuning has ended.");
}

void RegionReplay::wait_at_begin(double seconds) {
  go_on_unless_stopped();
  if (services_.captures.any()) decline_for(FallbackReason::Capture, {}, true);
  std::string why;
  // The time since a wait in vain, for another region or to free copies, is not waited again.
  seconds = std::max(0.0, seconds - busy_seconds(context_));
  if (!wait_until_idle(services_.driver, context_, seconds, why, &services_.captures)) {
    decline_for(FallbackReason::NotIdle, "When the region began, " + why + ".");
  }
}

void RegionReplay::wait_for_others() noexcept {
  if (!services_.recorder.active()) return;
  try {
    // Those that wait for work of the region come back when it is done.
    std::string why;
    if (services_.captures.any())
      return services_.recorder.obstruct(FallbackReason::Capture, {}, true);
    if (!wait_until_idle(services_.driver, context_, idle_seconds, why, &services_.captures)) {
      return services_.recorder.obstruct(FallbackReason::NotIdle,
                                         "When the region ended, " + why + ".");
    }
    // A replay would write over work that another thread has begun and the GPU not yet. Inside
    // NCCL, that thread may hold what the replay's own calls need.
    const bool left = services_.gate.others_left(leave_seconds);
    const double until = now_seconds() + leave_seconds;
    while (process_collectives().any_under_way() && now_seconds() < until)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    if (process_collectives().any_under_way()) {
      return services_.recorder.obstruct(FallbackReason::OtherThread,
                                         "Another thread is inside a call of NCCL.", true);
    }
    if (left || !services_.measurement.cupti().program_has_other_threads()) return;
    services_.recorder.obstruct(FallbackReason::OtherThread,
                                "Another thread may be inside a call of the driver.", true);
  } catch (const std::exception& error) {
    services_.recorder.obstruct(FallbackReason::ReplayFailed, error.what());
  }
}

}  // namespace contextune::intercept
