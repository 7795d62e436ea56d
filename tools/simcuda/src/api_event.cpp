#include <algorithm>

#include "capture.hpp"
#include "contexts.hpp"
#include "host_calls.hpp"
#include "operation.hpp"
#include "timeline.hpp"

using namespace simcuda;

namespace {

Event& event_at(CUevent handle) {
  return driver().handles.get<Event>(handle);
}

CUresult record(Stream& stream, Event& event, unsigned flags) {
  require(flags <= CU_EVENT_RECORD_EXTERNAL);
  require(stream.context == event.context, CUDA_ERROR_INVALID_HANDLE);
  check_implicit_dependency(stream);
  if (stream.capture == nullptr)
    record_event(stream, event);
  else if (flags == CU_EVENT_RECORD_EXTERNAL)
    capture_operation(stream, EventOperation{&event, false});
  else
    capture_event_record(stream, event);
  return CUDA_SUCCESS;
}

/// As if a stream of its own waited for all others.
CUresult record_all(Context& context, Event& event) {
  require(event.context == &context, CUDA_ERROR_INVALID_HANDLE);
  for (const Stream* const stream : context.streams) forbid_while_capturing(*stream);
  Stream* const joined = make_stream(context, CU_STREAM_NON_BLOCKING, 0);
  std::shared_ptr<HostCalls> pending;
  std::uint64_t pending_before = 0;
  for (Stream* const stream : context.streams) {
    if (stream == joined) continue;
    Event part;
    part.context = &context;
    part.flags = CU_EVENT_DISABLE_TIMING;
    record_event(*stream, part);
    wait_for_event(*joined, part);
    if (part.host_calls->idle_since(part.host_calls_before)) continue;
    pending = part.host_calls;
    pending_before = part.host_calls_before;
  }
  record_event(*joined, event);
  if (pending != nullptr) {
    event.host_calls = pending;
    event.host_calls_before = pending_before;
  }
  destroy_stream(joined);
  return CUDA_SUCCESS;
}

CUresult destroy(CUevent handle) {
  Event& event = event_at(handle);
  event.context->events.erase(&event);
  driver().handles.destroy(&event);
  return CUDA_SUCCESS;
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
  require(milliseconds != nullptr);
  const Event& from = event_at(start);
  const Event& to = event_at(end);
  require(from.context == to.context && from.recorded && to.recorded, CUDA_ERROR_INVALID_HANDLE);
  require(((from.flags | to.flags) & CU_EVENT_DISABLE_TIMING) == 0, CUDA_ERROR_INVALID_HANDLE);
  if (from.hung || to.hung || (from.stamp->known && !has_passed(from.stamp->done)) ||
      (to.stamp->known && !has_passed(to.stamp->done)))
    return CUDA_ERROR_NOT_READY;
  if (!driver().pending.try_finish(from.task) || !driver().pending.try_finish(to.task))
    return CUDA_ERROR_NOT_READY;
  if (!has_passed(std::max(from.stamp->done, to.stamp->done))) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>((to.stamp->timestamp - from.stamp->timestamp) * 1e3);
  return CUDA_SUCCESS;
}

}  // namespace

SIMCUDA_ENTRY(cuEventCreate, (CUevent * phEvent, unsigned int Flags), {
  constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
  require(phEvent != nullptr);
  require((Flags & CU_EVENT_INTERPROCESS) == 0, CUDA_ERROR_NOT_SUPPORTED);
  require((Flags & ~known) == 0);
  Context& context = current_context();
  auto* const event = driver().handles.make<Event>();
  event->context = &context;
  event->flags = Flags;
  context.events.insert(event);
  *phEvent = reinterpret_cast<CUevent>(event);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuEventDestroy, (CUevent hEvent), { return destroy(hEvent); })
SIMCUDA_ENTRY(cuEventDestroy_v2, (CUevent hEvent), { return destroy(hEvent); })

SIMCUDA_BOTH_STREAMS(cuEventRecord, _ptsz, (CUevent hEvent, CUstream hStream),
                     { return record(stream_of(hStream, null_stream), event_at(hEvent), 0); })
SIMCUDA_BOTH_STREAMS(cuEventRecordWithFlags, _ptsz,
                     (CUevent hEvent, CUstream hStream, unsigned int flags),
                     { return record(stream_of(hStream, null_stream), event_at(hEvent), flags); })

#if CUDA_VERSION >= 12050
SIMCUDA_ENTRY(cuCtxRecordEvent, (CUcontext hCtx, CUevent hEvent), {
  Context& context = hCtx == nullptr
                         ? current_context()
                         : driver().handles.get<Context>(hCtx, CUDA_ERROR_INVALID_CONTEXT);
  return record_all(context, event_at(hEvent));
})
#endif

SIMCUDA_ENTRY(cuEventQuery, (CUevent hEvent), {
  const Event& event = event_at(hEvent);
  require(event.context->error == CUDA_SUCCESS, event.context->error);
  require(event.capture == nullptr, CUDA_ERROR_CAPTURED_EVENT);
  forbid_unsafe_call();
  if (!event.recorded) return CUDA_SUCCESS;
  driver().pending.advance();
  if (event.hung || (event.stamp->known && !has_passed(event.stamp->done)))
    return CUDA_ERROR_NOT_READY;
  if (!driver().pending.try_finish(event.task)) return CUDA_ERROR_NOT_READY;
  if (!has_passed(event.stamp->done)) return CUDA_ERROR_NOT_READY;
  require(event.context->error == CUDA_SUCCESS, event.context->error);
  return event.host_calls->idle_since(event.host_calls_before) ? CUDA_SUCCESS
                                                               : CUDA_ERROR_NOT_READY;
})

SIMCUDA_ENTRY(cuEventSynchronize, (CUevent hEvent), {
  const Event& event = event_at(hEvent);
  const Context* const context = event.context;
  require(context->error == CUDA_SUCCESS, context->error);
  require(event.capture == nullptr, CUDA_ERROR_CAPTURED_EVENT);
  forbid_unsafe_call();
  if (!event.recorded) return CUDA_SUCCESS;
  if (event.hung) hang(lock);
  const auto calls = event.host_calls;
  const std::uint64_t before = event.host_calls_before;
  const auto stamp = event.stamp;
  driver().pending.finish({event.task}, lock);
  driver().host_time = std::max(driver().host_time, stamp->done);
  if (!calls->idle_since(before)) {
    lock.unlock();
    calls->wait_for(before);
    lock.lock();
  }
  return driver().handles.find<Context>(context) == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                            : context->error;
})

SIMCUDA_ENTRY(cuEventElapsedTime, (float* pMilliseconds, CUevent hStart, CUevent hEnd),
              { return elapsed(pMilliseconds, hStart, hEnd); })
#if CUDA_VERSION >= 12080
SIMCUDA_ENTRY(cuEventElapsedTime_v2, (float* pMilliseconds, CUevent hStart, CUevent hEnd),
              { return elapsed(pMilliseconds, hStart, hEnd); })
#endif
