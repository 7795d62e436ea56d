#include <algorithm>

#include "allocation.hpp"
#include "capture.hpp"
#include "stream_order.hpp"
#include "timeline.hpp"

using namespace simcuda;

namespace {

Memory::Block& allocate_now(std::size_t bytes, Memory::Kind kind, DriverLock& lock) {
  Context& context = current_context();
  forbid_unsafe_call();
  return allocate(context, context.device, bytes, kind, lock);
}

const Memory::Block& device_block(CUdeviceptr pointer) {
  const Memory::Block* const block = driver().memory.at(pointer);
  require(block != nullptr && !block->freed &&
          (block->kind == Memory::Kind::device || block->kind == Memory::Kind::managed));
  return *block;
}

void release_device(const Memory::Block& block) {
  Driver& state = driver();
  state.device(block.device).cost.cache().forget(block.begin, block.bytes);
  state.memory.release(block.begin);
}

// Freeing waits for the work that may still use the memory.
CUresult free_device(CUdeviceptr pointer, DriverLock& lock) {
  if (pointer == 0) return CUDA_SUCCESS;
  wait_for_context(current_context(), lock);
  (void)current_context();
  forbid_unsafe_call();
  const auto* const owner = reinterpret_cast<const Context*>(device_block(pointer).context);
  driver().pending.finish_all(owner, lock);
  release_device(device_block(pointer));
  return CUDA_SUCCESS;
}

CUresult free_in_order(CUdeviceptr pointer, Stream& stream) {
  if (pointer == 0) return CUDA_SUCCESS;
  forbid_unsafe_call();
  driver().memory.mark_freed(device_block(pointer).begin);
  perform(stream, [pointer] {
    if (const Memory::Block* const block = driver().memory.at(pointer)) release_device(*block);
  });
  return CUDA_SUCCESS;
}

CUresult allocate_host(void** pp, std::size_t bytes, unsigned flags, DriverLock& lock) {
  require(pp != nullptr);
  Memory::Block& block = allocate_now(bytes, Memory::Kind::host, lock);
  block.flags = flags;
  *pp = reinterpret_cast<void*>(block.begin);
  return CUDA_SUCCESS;
}

const Memory::Block& host_block(const void* pointer) {
  const Memory::Block* const block =
      driver().memory.find(reinterpret_cast<std::uintptr_t>(pointer));
  require(block != nullptr && (block->on_host() || block->kind == Memory::Kind::managed));
  return *block;
}

}  // namespace

SIMCUDA_ENTRY(cuMemGetInfo_v2, (size_t * free, size_t* total), {
  require(free != nullptr && total != nullptr);
  const int device = current_context().device;
  *total = driver().device(device).profile.memory_bytes;
  *free = *total - std::min(*total, driver().memory.used_bytes(device));
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemAlloc_v2, (CUdeviceptr * dptr, size_t bytesize), {
  require(dptr != nullptr);
  *dptr = allocate_now(bytesize, Memory::Kind::device, lock).begin;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemAllocPitch_v2,
              (CUdeviceptr * dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
               unsigned int ElementSizeBytes),
              {
                require(dptr != nullptr && pPitch != nullptr);
                require(ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16);
                *pPitch = (WidthInBytes + 511) / 512 * 512;
                *dptr = allocate_now(*pPitch * Height, Memory::Kind::device, lock).begin;
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuMemAllocManaged, (CUdeviceptr * dptr, size_t bytesize, unsigned int flags), {
  require(dptr != nullptr);
  require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST);
  *dptr = allocate_now(bytesize, Memory::Kind::managed, lock).begin;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemFree_v2, (CUdeviceptr dptr), { return free_device(dptr, lock); })

SIMCUDA_ENTRY(cuMemGetAddressRange_v2, (CUdeviceptr * pbase, size_t* psize, CUdeviceptr dptr), {
  const Memory::Block* const block = driver().memory.find(dptr);
  require(block != nullptr && block->kind != Memory::Kind::registered, CUDA_ERROR_NOT_FOUND);
  if (pbase != nullptr) *pbase = block->begin;
  if (psize != nullptr) *psize = block->bytes;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemAllocHost_v2, (void** pp, size_t bytesize),
              { return allocate_host(pp, bytesize, 0, lock); })
SIMCUDA_ENTRY(cuMemHostAlloc, (void** pp, size_t bytesize, unsigned int Flags),
              { return allocate_host(pp, bytesize, Flags, lock); })

SIMCUDA_ENTRY(cuMemFreeHost, (void* p), {
  if (p == nullptr) return CUDA_SUCCESS;
  require(host_block(p).kind == Memory::Kind::host);
  driver().pending.finish_all(nullptr, lock);
  driver().memory.release(host_block(p).begin);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemHostRegister_v2, (void* p, size_t bytesize, unsigned int Flags), {
  Context& context = current_context();
  driver().memory.register_host(p, bytesize, Flags, context.device,
                                reinterpret_cast<CUcontext>(&context));
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemHostUnregister, (void* p), {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const Memory::Block* const block = driver().memory.at(address);
  require(block != nullptr && block->kind == Memory::Kind::registered,
          CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  driver().pending.finish_all(nullptr, lock);
  driver().memory.release(address);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemHostGetDevicePointer_v2, (CUdeviceptr * pdptr, void* p, unsigned int Flags), {
  require(pdptr != nullptr && Flags == 0);
  (void)host_block(p);
  *pdptr = reinterpret_cast<CUdeviceptr>(p);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemHostGetFlags, (unsigned int* pFlags, void* p), {
  require(pFlags != nullptr);
  *pFlags = host_block(p).flags;
  return CUDA_SUCCESS;
})

SIMCUDA_BOTH_STREAMS(
    cuMemAllocAsync, _ptsz, (CUdeviceptr * dptr, size_t bytesize, CUstream hStream), {
      require(dptr != nullptr);
      Stream& stream = stream_of(hStream, null_stream);
      // An allocation node would be needed.
      require(stream.capture == nullptr, CUDA_ERROR_NOT_SUPPORTED);
      Context& context = *stream.context;
      *dptr = allocate(context, context.device, bytesize, Memory::Kind::device, lock).begin;
      return CUDA_SUCCESS;
    })

SIMCUDA_BOTH_STREAMS(cuMemFreeAsync, _ptsz, (CUdeviceptr dptr, CUstream hStream), {
  Stream& stream = stream_of(hStream, null_stream);
  require(stream.capture == nullptr, CUDA_ERROR_NOT_SUPPORTED);
  return free_in_order(dptr, stream);
})
