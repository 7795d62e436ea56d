#include "collector.hpp"
#include "driver_link.hpp"

using simcupti::Collector;
using simcupti::DriverLink;

namespace {

bool valid(CUpti_ExternalCorrelationKind kind) {
  return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID &&
         kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

}  // namespace

extern "C" {

CUptiResult CUPTIAPI
cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc funcBufferRequested,
                               CUpti_BuffersCallbackCompleteFunc funcBufferCompleted) {
  return Collector::called().set_callbacks(funcBufferRequested, funcBufferCompleted);
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  return Collector::called().enable(kind);
}
CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  return Collector::called().disable(kind);
}

CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable) {
  Collector::called().select_driver_api(cbid, enable != 0);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId, uint8_t) {
  return CUPTI_SUCCESS;  // there is no runtime to report
}

CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                            uint64_t id) {
  if (!valid(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
  Collector::called().push_external(kind, id);
  return CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                           uint64_t* lastId) {
  if (!valid(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
  return Collector::called().pop_external(kind, lastId);
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag) {
  return Collector::called().flush((flag & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0);
}
CUptiResult CUPTIAPI cuptiActivityFlushPeriod(uint32_t time) {
  Collector::called().set_flush_period(time);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t* buffer, size_t validBufferSizeBytes,
                                                CUpti_Activity** record) {
  if (buffer == nullptr || record == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  uint8_t* next = buffer;
  if (*record != nullptr) next = reinterpret_cast<uint8_t*>(*record) + simcupti::size_of(*record);
  const auto used = static_cast<size_t>(next - buffer);
  if (used >= validBufferSizeBytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  auto* const found = reinterpret_cast<CUpti_Activity*>(static_cast<void*>(next));
  const size_t size = simcupti::size_of(found);
  if (size == 0 || used + size > validBufferSizeBytes) return CUPTI_ERROR_INVALID_KIND;
  *record = found;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t* dropped) {
  if (dropped == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  *dropped = Collector::called().take_dropped_count();
  return CUPTI_SUCCESS;
}

// Sizes of pools that the simulation does not have.
CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute, size_t* valueSize,
                                               void* value) {
  return valueSize == nullptr || value == nullptr ? CUPTI_ERROR_INVALID_PARAMETER : CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiFinalize(void) {
  Collector::called().finalize();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t* to) {
  if (to == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  (void)Collector::called();
  if (!DriverLink::instance().usable()) return CUPTI_ERROR_NOT_INITIALIZED;
  *to = simcupti::timestamp(DriverLink::instance().host_time());
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetContextId(CUcontext context, uint32_t* contextId) {
  if (contextId == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!DriverLink::instance().usable()) return CUPTI_ERROR_NOT_INITIALIZED;
  *contextId = DriverLink::instance().context_id(context);
  return *contextId == 0 ? CUPTI_ERROR_INVALID_CONTEXT : CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext context, uint32_t* deviceId) {
  if (deviceId == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!DriverLink::instance().usable()) return CUPTI_ERROR_NOT_INITIALIZED;
  const int device = DriverLink::instance().context_device(context);
  if (device < 0) return CUPTI_ERROR_INVALID_CONTEXT;
  *deviceId = static_cast<uint32_t>(device);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t perThreadStream,
                                        uint32_t* streamId) {
  if (streamId == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!DriverLink::instance().usable()) return CUPTI_ERROR_NOT_INITIALIZED;
  *streamId = DriverLink::instance().stream_id(context, stream, perThreadStream);
  return *streamId == 0 ? CUPTI_ERROR_INVALID_STREAM : CUPTI_SUCCESS;
}
CUptiResult CUPTIAPI cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t* streamId) {
  return cuptiGetStreamIdEx(context, stream, 0, streamId);
}

}  // extern "C"
