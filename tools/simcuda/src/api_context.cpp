#include "capture.hpp"
#include "contexts.hpp"
#include "timeline.hpp"

using namespace simcuda;

namespace {

CUresult create(CUcontext* pctx, unsigned flags, CUdevice dev) {
  require(pctx != nullptr);
  (void)driver().device(dev);
  Context* const context = make_context(dev, flags);
  push_current(context);
  *pctx = reinterpret_cast<CUcontext>(context);
  return CUDA_SUCCESS;
}

CUresult destroy(CUcontext ctx, DriverLock& lock) {
  auto& context = driver().handles.get<Context>(ctx, CUDA_ERROR_INVALID_CONTEXT);
  require(!context.primary, CUDA_ERROR_INVALID_CONTEXT);
  if (current_context_or_null() == &context) (void)pop_current();
  destroy_context(&context, lock);
  return CUDA_SUCCESS;
}

CUresult push(CUcontext ctx) {
  push_current(&driver().handles.get<Context>(ctx, CUDA_ERROR_INVALID_CONTEXT));
  return CUDA_SUCCESS;
}

CUresult pop(CUcontext* pctx) {
  Context* const context = pop_current();
  if (pctx != nullptr) *pctx = reinterpret_cast<CUcontext>(context);
  return CUDA_SUCCESS;
}

CUresult synchronize(Context& context, DriverLock& lock) {
  require(context.error == CUDA_SUCCESS, context.error);
  for (const Stream* const stream : context.streams) forbid_while_capturing(*stream);
  wait_for_context(context, lock);
  return driver().handles.find<Context>(&context) == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                             : context.error;
}

}  // namespace

SIMCUDA_ENTRY(cuCtxCreate, (CUcontext * pctx, unsigned int flags, CUdevice dev),
              { return create(pctx, flags, dev); })
SIMCUDA_ENTRY(cuCtxCreate_v2, (CUcontext * pctx, unsigned int flags, CUdevice dev),
              { return create(pctx, flags, dev); })
SIMCUDA_ENTRY(cuCtxCreate_v3,
              (CUcontext * pctx, CUexecAffinityParam* paramsArray, int numParams,
               unsigned int flags, CUdevice dev),
              {
                require(paramsArray == nullptr && numParams == 0,
                        CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
                return create(pctx, flags, dev);
              })
#if CUDA_VERSION >= 12050
SIMCUDA_ENTRY(cuCtxCreate_v4,
              (CUcontext * pctx, CUctxCreateParams* ctxCreateParams, unsigned int flags,
               CUdevice dev),
              {
                require(ctxCreateParams == nullptr || ctxCreateParams->numExecAffinityParams == 0,
                        CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
                return create(pctx, flags, dev);
              })
#endif

SIMCUDA_ENTRY(cuCtxDestroy, (CUcontext ctx), { return destroy(ctx, lock); })
SIMCUDA_ENTRY(cuCtxDestroy_v2, (CUcontext ctx), { return destroy(ctx, lock); })
SIMCUDA_ENTRY(cuCtxPushCurrent, (CUcontext ctx), { return push(ctx); })
SIMCUDA_ENTRY(cuCtxPushCurrent_v2, (CUcontext ctx), { return push(ctx); })
SIMCUDA_ENTRY(cuCtxPopCurrent, (CUcontext * pctx), { return pop(pctx); })
SIMCUDA_ENTRY(cuCtxPopCurrent_v2, (CUcontext * pctx), { return pop(pctx); })

SIMCUDA_ENTRY(cuCtxSetCurrent, (CUcontext ctx), {
  set_current(ctx == nullptr ? nullptr
                             : &driver().handles.get<Context>(ctx, CUDA_ERROR_INVALID_CONTEXT));
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxGetCurrent, (CUcontext * pctx), {
  require(pctx != nullptr);
  *pctx = reinterpret_cast<CUcontext>(current_context_or_null());
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxGetDevice, (CUdevice * device), {
  require(device != nullptr);
  *device = current_context().device;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxSynchronize, (void), { return synchronize(current_context(), lock); })

#if CUDA_VERSION >= 13000
SIMCUDA_ENTRY(cuCtxGetDevice_v2, (CUdevice * device, CUcontext ctx), {
  require(device != nullptr);
  *device = ctx == nullptr ? current_context().device
                           : driver().handles.get<Context>(ctx, CUDA_ERROR_INVALID_CONTEXT).device;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxSynchronize_v2, (CUcontext ctx), {
  return synchronize(ctx == nullptr
                         ? current_context()
                         : driver().handles.get<Context>(ctx, CUDA_ERROR_INVALID_CONTEXT),
                     lock);
})
#endif

SIMCUDA_ENTRY(cuCtxGetId, (CUcontext ctx, unsigned long long* ctxId), {
  require(ctxId != nullptr);
  *ctxId = ctx == nullptr ? current_context().id
                          : driver().handles.get<Context>(ctx, CUDA_ERROR_CONTEXT_IS_DESTROYED).id;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxGetFlags, (unsigned int* flags), {
  require(flags != nullptr);
  *flags = current_context().flags;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxSetFlags, (unsigned int flags), {
  current_context().flags = flags;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxGetApiVersion, (CUcontext ctx, unsigned int* version), {
  require(version != nullptr);
  if (ctx == nullptr)
    (void)current_context();
  else
    (void)driver().handles.get<Context>(ctx, CUDA_ERROR_INVALID_CONTEXT);
  *version = 3020;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxSetLimit, (CUlimit limit, size_t value), {
  Context& context = current_context();
  require(context.limits.count(limit) != 0, CUDA_ERROR_UNSUPPORTED_LIMIT);
  context.limits[limit] = value;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxGetLimit, (size_t * pvalue, CUlimit limit), {
  require(pvalue != nullptr);
  Context& context = current_context();
  require(context.limits.count(limit) != 0, CUDA_ERROR_UNSUPPORTED_LIMIT);
  *pvalue = context.limits[limit];
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxGetCacheConfig, (CUfunc_cache * pconfig), {
  require(pconfig != nullptr);
  *pconfig = current_context().cache_preference;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxSetCacheConfig, (CUfunc_cache config), {
  current_context().cache_preference = config;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxGetSharedMemConfig, (CUsharedconfig * pConfig), {
  require(pConfig != nullptr);
  (void)current_context();
  *pConfig = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;
  return CUDA_SUCCESS;
})

// No effect since Maxwell, on a real GPU too.
SIMCUDA_ENTRY(cuCtxSetSharedMemConfig, (CUsharedconfig), {
  (void)current_context();
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxGetStreamPriorityRange, (int* leastPriority, int* greatestPriority), {
  (void)current_context();
  if (leastPriority != nullptr) *leastPriority = lowest_priority;
  if (greatestPriority != nullptr) *greatestPriority = highest_priority;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxResetPersistingL2Cache, (void), {
  (void)current_context();
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxEnablePeerAccess, (CUcontext peerContext, unsigned int Flags), {
  require(Flags == 0);
  const auto& peer = driver().handles.get<Context>(peerContext, CUDA_ERROR_INVALID_CONTEXT);
  require(current_context().peers.insert(peer.device).second,
          CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxDisablePeerAccess, (CUcontext peerContext), {
  const auto& peer = driver().handles.get<Context>(peerContext, CUDA_ERROR_INVALID_CONTEXT);
  require(current_context().peers.erase(peer.device) == 1, CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxAttach, (CUcontext * pctx, unsigned int flags), {
  require(pctx != nullptr && flags == 0);
  *pctx = reinterpret_cast<CUcontext>(&current_context());
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuCtxDetach, (CUcontext ctx), {
  (void)driver().handles.get<Context>(ctx, CUDA_ERROR_INVALID_CONTEXT);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuProfilerStart, (void), {
  (void)current_context();
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuProfilerStop, (void), {
  (void)current_context();
  return CUDA_SUCCESS;
})
