#include <algorithm>

#include "capture.hpp"
#include "contexts.hpp"
#include "timeline.hpp"

using namespace simcuda;

namespace {

CUcontext handle_of(const Context& context) {
  return reinterpret_cast<CUcontext>(const_cast<Context*>(&context));
}

Memory::Block& allocate(std::size_t bytes, Memory::Kind kind) {
  const Context& context = current_context();
  forbid_unsafe_call();
  Driver& state = driver();
  return state.memory.allocate(bytes, kind, context.device, handle_of(context),
                               state.device(context.device).profile.memory_bytes);
}

CUresult free_device(CUdeviceptr pointer) {
  if (pointer == 0) return CUDA_SUCCESS;
  (void)current_context();
  forbid_unsafe_call();
  Driver& state = driver();
  const Memory::Block* const block = state.memory.at(pointer);
  require(block != nullptr &&
          (block->kind == Memory::Kind::device || block->kind == Memory::Kind::managed));
  state.device(block->device).cost.cache().forget(block->begin, block->bytes);
  state.memory.release(pointer);
  return CUDA_SUCCESS;
}

CUresult allocate_host(void** pp, std::size_t bytes, unsigned flags) {
  require(pp != nullptr);
  Memory::Block& block = allocate(bytes, Memory::Kind::host);
  block.flags = flags;
  *pp = reinterpret_cast<void*>(block.begin);
  return CUDA_SUCCESS;
}

const Memory::Block& host_block(const void* pointer) {
  const Memory::Block* const block =
      driver().memory.find(reinterpret_cast<std::uintptr_t>(pointer));
  require(block != nullptr && block->kind != Memory::Kind::device);
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
  *dptr = allocate(bytesize, Memory::Kind::device).begin;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemAllocPitch_v2,
              (CUdeviceptr * dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
               unsigned int ElementSizeBytes),
              {
                require(dptr != nullptr && pPitch != nullptr);
                require(ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16);
                *pPitch = (WidthInBytes + 511) / 512 * 512;
                *dptr = allocate(*pPitch * Height, Memory::Kind::device).begin;
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuMemAllocManaged, (CUdeviceptr * dptr, size_t bytesize, unsigned int flags), {
  require(dptr != nullptr);
  require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST);
  *dptr = allocate(bytesize, Memory::Kind::managed).begin;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemFree_v2, (CUdeviceptr dptr), {
  // Freeing waits for the work that may still use it.
  if (dptr != 0) wait_for_context(current_context(), lock);
  return free_device(dptr);
})

SIMCUDA_ENTRY(cuMemGetAddressRange_v2, (CUdeviceptr * pbase, size_t* psize, CUdeviceptr dptr), {
  const Memory::Block* const block = driver().memory.find(dptr);
  require(block != nullptr && block->kind != Memory::Kind::registered, CUDA_ERROR_NOT_FOUND);
  if (pbase != nullptr) *pbase = block->begin;
  if (psize != nullptr) *psize = block->bytes;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemAllocHost_v2, (void** pp, size_t bytesize),
              { return allocate_host(pp, bytesize, 0); })
SIMCUDA_ENTRY(cuMemHostAlloc, (void** pp, size_t bytesize, unsigned int Flags),
              { return allocate_host(pp, bytesize, Flags); })

SIMCUDA_ENTRY(cuMemFreeHost, (void* p), {
  if (p == nullptr) return CUDA_SUCCESS;
  const Memory::Block& block = host_block(p);
  require(block.kind == Memory::Kind::host);
  driver().memory.release(block.begin);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemHostRegister_v2, (void* p, size_t bytesize, unsigned int Flags), {
  const Context& context = current_context();
  driver().memory.register_host(p, bytesize, Flags, context.device, handle_of(context));
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemHostUnregister, (void* p), {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const Memory::Block* const block = driver().memory.at(address);
  require(block != nullptr && block->kind == Memory::Kind::registered,
          CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
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

SIMCUDA_BOTH_STREAMS(cuMemAllocAsync, _ptsz,
                     (CUdeviceptr * dptr, size_t bytesize, CUstream hStream), {
                       require(dptr != nullptr);
                       Stream& stream = stream_of(hStream, null_stream);
                       // An allocation node would be needed.
                       require(stream.capture == nullptr, CUDA_ERROR_NOT_SUPPORTED);
                       const Context& context = *stream.context;
                       *dptr = driver()
                                   .memory
                                   .allocate(bytesize, Memory::Kind::device, context.device,
                                             handle_of(context),
                                             driver().device(context.device).profile.memory_bytes)
                                   .begin;
                       return CUDA_SUCCESS;
                     })

SIMCUDA_BOTH_STREAMS(cuMemFreeAsync, _ptsz, (CUdeviceptr dptr, CUstream hStream), {
  const Stream& stream = stream_of(hStream, null_stream);
  require(stream.capture == nullptr, CUDA_ERROR_NOT_SUPPORTED);
  // Everything that was enqueued before has computed its results already.
  return free_device(dptr);
})
