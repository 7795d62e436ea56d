#include "intercept/runtime/process_timers.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "gpu/clock/clock_monitor.hpp"
#include "gpu/clock/span_timer.hpp"
#include "gpu/driver/context_idle.hpp"

namespace contextune::intercept {

ProcessTimers::ProcessTimers(TimerKind kind, const gpu::Driver& driver, EventLog& log,
                             CaptureWatch& captures, ContextTable& contexts,
                             std::function<std::vector<pid_t>()> nccl_threads)
    : driver_(driver),
      captures_(captures),
      contexts_(contexts),
      measurement_(kind, make_timers(std::move(nccl_threads)), log) {}

Measurement::Timers ProcessTimers::make_timers(std::function<std::vector<pid_t>()> nccl_threads) {
  Measurement::Timers timers;
  auto cupti = std::make_unique<gpu::ActivityTimer>(driver_);
  auto events = std::make_unique<gpu::EventTimer>(driver_);
  events_ = events.get();
  activity_ = cupti.get();
  timers.presence.release = [timer = cupti.get()] { return timer->release(); };
  timers.presence.delay_seconds = driver_.simulated ? 0 : 0.5;  // the simulated one opens at once
  timers.presence.gpu_is_idle = [this] { return is_idle(); };
  timers.presence.nccl_threads = std::move(nccl_threads);
  timers.cupti = std::move(cupti);
  timers.events = std::move(events);
  CUdevice device = 0;
  if (driver_.cuDeviceGet(&device, 0) == CUDA_SUCCESS) {
    timers.clock = gpu::make_clock_monitor(driver_, device);
  }
  timers.make_span_timer = [this] { return std::make_unique<gpu::EventSpanTimer>(driver_); };
  timers.make_stream_hold = [this] { return std::make_unique<gpu::StreamHold>(driver_); };
  return timers;
}

bool ProcessTimers::is_idle() {
  if (captures_.any()) return false;  // to ask would end them
  auto contexts = contexts_.all();
  if (contexts && contexts->empty()) contexts->push_back(gpu::context_of(driver_, nullptr));
  return contexts && std::all_of(contexts->begin(), contexts->end(),
                                 [&](CUcontext context) { return gpu::is_idle(driver_, context); });
}

}  // namespace contextune::intercept
