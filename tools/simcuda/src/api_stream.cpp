#include "capture.hpp"
#include "contexts.hpp"
#include "host_calls.hpp"
#include "operation.hpp"
#include "timeline.hpp"

using namespace simcuda;

namespace {

CUresult create(CUstream* phStream, unsigned flags, int priority) {
  require(phStream != nullptr && flags <= CU_STREAM_NON_BLOCKING);
  *phStream = reinterpret_cast<CUstream>(make_stream(current_context(), flags, priority));
  return CUDA_SUCCESS;
}

CUresult destroy(CUstream handle) {
  auto& stream = driver().handles.get<Stream>(handle);
  require(stream.context->legacy != &stream, CUDA_ERROR_INVALID_HANDLE);
  abandon_capture(stream);
  destroy_stream(&stream);
  return CUDA_SUCCESS;
}

struct StreamCallback {
  CUstreamCallback function;
  CUstream stream;
  void* data;

  static void call(void* self) {
    const auto* const callback = static_cast<StreamCallback*>(self);
    callback->function(callback->stream, CUDA_SUCCESS, callback->data);
    delete callback;
  }
};

}  // namespace

SIMCUDA_ENTRY(cuStreamCreate, (CUstream * phStream, unsigned int Flags),
              { return create(phStream, Flags, 0); })
SIMCUDA_ENTRY(cuStreamCreateWithPriority, (CUstream * phStream, unsigned int flags, int priority),
              { return create(phStream, flags, priority); })
SIMCUDA_ENTRY(cuStreamDestroy, (CUstream hStream), { return destroy(hStream); })
SIMCUDA_ENTRY(cuStreamDestroy_v2, (CUstream hStream), { return destroy(hStream); })

SIMCUDA_BOTH_STREAMS(cuStreamGetPriority, _ptsz, (CUstream hStream, int* priority), {
  require(priority != nullptr);
  *priority = stream_of(hStream, null_stream).priority;
  return CUDA_SUCCESS;
})
SIMCUDA_BOTH_STREAMS(cuStreamGetFlags, _ptsz, (CUstream hStream, unsigned int* flags), {
  require(flags != nullptr);
  *flags = stream_of(hStream, null_stream).flags;
  return CUDA_SUCCESS;
})
SIMCUDA_BOTH_STREAMS(cuStreamGetId, _ptsz, (CUstream hStream, unsigned long long* streamId), {
  require(streamId != nullptr);
  *streamId = stream_of(hStream, null_stream).id;
  return CUDA_SUCCESS;
})
SIMCUDA_BOTH_STREAMS(cuStreamGetCtx, _ptsz, (CUstream hStream, CUcontext* pctx), {
  require(pctx != nullptr);
  *pctx = reinterpret_cast<CUcontext>(stream_of(hStream, null_stream).context);
  return CUDA_SUCCESS;
})
#if CUDA_VERSION >= 12050
SIMCUDA_BOTH_STREAMS(cuStreamGetCtx_v2, _ptsz,
                     (CUstream hStream, CUcontext* pCtx, CUgreenCtx* pGreenCtx), {
                       require(pCtx != nullptr && pGreenCtx != nullptr);
                       *pCtx = reinterpret_cast<CUcontext>(stream_of(hStream, null_stream).context);
                       *pGreenCtx = nullptr;
                       return CUDA_SUCCESS;
                     })
#endif
#if CUDA_VERSION >= 12080
SIMCUDA_BOTH_STREAMS(cuStreamGetDevice, _ptsz, (CUstream hStream, CUdevice* device), {
  require(device != nullptr);
  *device = stream_of(hStream, null_stream).context->device;
  return CUDA_SUCCESS;
})
#endif

SIMCUDA_BOTH_STREAMS(cuStreamQuery, _ptsz, (CUstream hStream), {
  const Stream& stream = stream_of(hStream, null_stream);
  forbid_while_capturing(stream);
  forbid_unsafe_call();
  PendingWork& pending = driver().pending;
  pending.advance();
  if (stream.hung) return CUDA_ERROR_NOT_READY;
  if (stream.put_off.empty() && !has_passed(stream.ready)) return CUDA_ERROR_NOT_READY;
  for (const TaskPtr& task : stream.tail)
    if (!pending.try_finish(task)) return CUDA_ERROR_NOT_READY;
  if (!has_passed(stream.ready)) return CUDA_ERROR_NOT_READY;
  require(stream.context->error == CUDA_SUCCESS, stream.context->error);
  const auto calls = stream.host_calls;
  return calls->idle_since(calls->enqueued()) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
})

SIMCUDA_BOTH_STREAMS(cuStreamSynchronize, _ptsz, (CUstream hStream), {
  Stream& stream = stream_of(hStream, null_stream);
  const Context* const context = stream.context;
  forbid_while_capturing(stream);
  wait_for_stream(stream, lock);
  return driver().handles.find<Context>(context) == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                            : context->error;
})

SIMCUDA_BOTH_STREAMS(cuStreamWaitEvent, _ptsz,
                     (CUstream hStream, CUevent hEvent, unsigned int Flags), {
                       require(Flags <= CU_EVENT_WAIT_EXTERNAL);
                       Stream& stream = stream_of(hStream, null_stream);
                       auto& event = driver().handles.get<Event>(hEvent);
                       if (Flags == CU_EVENT_WAIT_EXTERNAL && stream.capture != nullptr) {
                         capture_operation(stream, EventOperation{&event, true});
                         return CUDA_SUCCESS;
                       }
                       if (stream.capture != nullptr || event.capture != nullptr)
                         capture_event_wait(stream, event);
                       else
                         wait_for_event(stream, event);
                       return CUDA_SUCCESS;
                     })

SIMCUDA_BOTH_STREAMS(
    cuStreamAddCallback, _ptsz,
    (CUstream hStream, CUstreamCallback callback, void* userData, unsigned int flags), {
      require(callback != nullptr && flags == 0);
      Stream& stream = stream_of(hStream, null_stream);
      forbid_while_capturing(stream);
      enqueue(stream, HostOperation{&StreamCallback::call,
                                    new StreamCallback{callback, hStream, userData}});
      return CUDA_SUCCESS;
    })

SIMCUDA_BOTH_STREAMS(cuStreamGetAttribute, _ptsz,
                     (CUstream hStream, CUstreamAttrID attr, CUstreamAttrValue* value_out), {
                       require(value_out != nullptr);
                       const Stream& stream = stream_of(hStream, null_stream);
                       *value_out = {};
                       switch (attr) {
                         case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
                           *value_out = stream.access_policy;
                           break;
                         case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
                           *value_out = stream.synchronization_policy;
                           break;
                         case CU_LAUNCH_ATTRIBUTE_PRIORITY:
                           value_out->priority = stream.priority;
                           break;
                         case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
                           value_out->memSyncDomain = stream.memory_domain;
                           break;
                         case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
                           value_out->memSyncDomainMap = stream.memory_domains;
                           break;
                         default:
                           throw Failure{CUDA_ERROR_INVALID_VALUE};
                       }
                       return CUDA_SUCCESS;
                     })

SIMCUDA_BOTH_STREAMS(cuStreamSetAttribute, _ptsz,
                     (CUstream hStream, CUstreamAttrID attr, const CUstreamAttrValue* value), {
                       require(value != nullptr);
                       Stream& stream = stream_of(hStream, null_stream);
                       switch (attr) {
                         case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
                           stream.access_policy = *value;
                           break;
                         case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
                           stream.synchronization_policy = *value;
                           break;
                         case CU_LAUNCH_ATTRIBUTE_PRIORITY:
                           stream.priority = value->priority;
                           break;
                         case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
                           require(value->memSyncDomain <= CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
                           stream.memory_domain = value->memSyncDomain;
                           break;
                         case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
                           stream.memory_domains = value->memSyncDomainMap;
                           break;
                         default:
                           throw Failure{CUDA_ERROR_INVALID_VALUE};
                       }
                       return CUDA_SUCCESS;
                     })

SIMCUDA_BOTH_STREAMS(cuStreamCopyAttributes, _ptsz, (CUstream dst, CUstream src), {
  const Stream& from = stream_of(src, null_stream);
  Stream& to = stream_of(dst, null_stream);
  to.access_policy = from.access_policy;
  to.synchronization_policy = from.synchronization_policy;
  to.memory_domain = from.memory_domain;
  to.memory_domains = from.memory_domains;
  return CUDA_SUCCESS;
})
