#include "gpu/clock/event_pool.hpp"

#include <algorithm>

namespace contextune::gpu {

bool EventPool::may_record(CUstream stream) const noexcept {
  // Also an error here means no: CUDA_ERROR_STREAM_CAPTURE_IMPLICIT is the legacy stream's answer
  // while another stream is captured, and recording there would ruin that capture.
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver_.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_NONE;
}

CUevent EventPool::take(CUcontext context) noexcept {
  {
    const std::lock_guard lock(mutex_);
    for (Free& free : free_) {
      if (free.context != context || free.events.empty()) continue;
      CUevent event = free.events.back();
      free.events.pop_back();
      return event;
    }
  }
  const CurrentContext current(driver_, context);
  CUevent event = nullptr;
  return driver_.cuEventCreate(&event, CU_EVENT_DEFAULT) == CUDA_SUCCESS ? event : nullptr;
}

PooledEvent EventPool::record(CUstream stream) noexcept {
  if (!may_record(stream)) return {};
  PooledEvent event;
  event.context = context_of(driver_, stream);
  if (event.context == nullptr) return {};
  const RelaxedCapture relaxed(driver_);
  event.event = take(event.context);
  if (!event) return {};
  if (driver_.cuEventRecord(event.event, stream) == CUDA_SUCCESS) return event;
  give_back(event);
  return {};
}

bool EventPool::record_again(const PooledEvent& event, CUstream stream) noexcept {
  return event && may_record(stream) && driver_.cuEventRecord(event.event, stream) == CUDA_SUCCESS;
}

void EventPool::give_back(const PooledEvent& event) noexcept {
  if (!event) return;
  try {
    const std::lock_guard lock(mutex_);
    auto free =
        std::ranges::find_if(free_, [&](const Free& one) { return one.context == event.context; });
    if (free == free_.end()) free = free_.insert(free_.end(), Free{event.context, {}});
    free->events.push_back(event.event);
  } catch (...) {  // no memory: one event is never used again
  }
}

void EventPool::forget_context(CUcontext context) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(free_, [&](const Free& free) { return free.context == context; });
}

}  // namespace contextune::gpu
