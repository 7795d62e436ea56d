// Memory pools: every pool gives out ordinary device memory and only counts it.
#include "allocation.hpp"

using namespace simcuda;

namespace {

MemoryPool* pool_of_device(Device& device, int index) {
  if (device.default_pool == nullptr) {
    device.default_pool = driver().handles.make<MemoryPool>();
    device.default_pool->device = index;
    device.default_pool->is_default = true;
  }
  return device.default_pool;
}

MemoryPool& pool_at(CUmemoryPool handle) {
  return driver().handles.get<MemoryPool>(handle);
}

}  // namespace

SIMCUDA_ENTRY(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool_out, CUdevice dev), {
  require(pool_out != nullptr);
  *pool_out = reinterpret_cast<CUmemoryPool>(pool_of_device(driver().device(dev), dev));
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice dev), {
  require(pool != nullptr);
  Device& device = driver().device(dev);
  MemoryPool* const current = device.pool != nullptr ? device.pool : pool_of_device(device, dev);
  *pool = reinterpret_cast<CUmemoryPool>(current);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuDeviceSetMemPool, (CUdevice dev, CUmemoryPool pool), {
  MemoryPool& chosen = pool_at(pool);
  require(chosen.device == dev);
  driver().device(dev).pool = &chosen;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps* poolProps), {
  require(pool != nullptr && poolProps != nullptr);
  require(poolProps->location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  (void)driver().device(poolProps->location.id);
  auto* const made = driver().handles.make<MemoryPool>();
  made->device = poolProps->location.id;
  *pool = reinterpret_cast<CUmemoryPool>(made);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemPoolDestroy, (CUmemoryPool pool), {
  MemoryPool& gone = pool_at(pool);
  require(!gone.is_default);
  Device& device = driver().device(gone.device);
  if (device.pool == &gone) device.pool = nullptr;
  driver().handles.destroy(&gone);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemPoolTrimTo, (CUmemoryPool pool, size_t), {
  (void)pool_at(pool);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void* value), {
  require(value != nullptr);
  MemoryPool& of = pool_at(pool);
  if (attr == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
    of.release_threshold = *static_cast<cuuint64_t*>(value);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attr, void* value), {
  require(value != nullptr);
  const MemoryPool& of = pool_at(pool);
  switch (attr) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
      *static_cast<int*>(value) = 1;
      break;
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      *static_cast<cuuint64_t*>(value) = of.release_threshold;
      break;
    default:
      *static_cast<cuuint64_t*>(value) = driver().memory.used_bytes(of.device);
      break;
  }
  return CUDA_SUCCESS;
})

SIMCUDA_BOTH_STREAMS(cuMemAllocFromPoolAsync, _ptsz,
                     (CUdeviceptr * dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream), {
                       require(dptr != nullptr);
                       const int device = pool_at(pool).device;
                       const Stream& stream = stream_of(hStream, null_stream);
                       require(stream.capture == nullptr, CUDA_ERROR_NOT_SUPPORTED);
                       Memory::Block& block =
                           allocate(*stream.context, device, bytesize, Memory::Kind::device, lock);
                       block.pool = pool;
                       *dptr = block.begin;
                       return CUDA_SUCCESS;
                     })
