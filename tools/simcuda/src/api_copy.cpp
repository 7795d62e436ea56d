#include <algorithm>
#include <chrono>
#include <thread>

#include "capture.hpp"
#include "copy_shape.hpp"
#include "operation.hpp"
#include "timeline.hpp"

using namespace simcuda;

namespace {

// What a program calls device memory must be memory that the driver knows.
void require_device(CUdeviceptr pointer, std::size_t bytes) {
  require(driver().memory.covers(pointer, bytes));
}

bool on_host(std::uintptr_t address) {
  const Memory::Block* const block = driver().memory.find(address);
  return block == nullptr || block->on_host();
}

// Long against what a program does between two copies.
constexpr auto late = std::chrono::milliseconds(300);

void come_back(const CopyOperation& copy, DriverLock& lock) {
  if (!driver().faults.delays_copy(direction_of(copy), copy.bytes())) return;
  lock.unlock();
  std::this_thread::sleep_for(late);
  lock.lock();
}

// As on a real driver, a copy to pageable memory, or from host to host, is over when the call
// returns; other copies are not.
CUresult copy_async(Stream& stream, const CopyOperation& copy, DriverLock& lock) {
  enqueue(stream, copy);
  if (!driver().pending.immediate() && stream.capture == nullptr && !stream.hung) {
    const bool to_pageable = driver().memory.find(copy.destination) == nullptr;
    if (to_pageable || (on_host(copy.destination) && on_host(copy.source)))
      driver().pending.finish(std::vector<TaskPtr>(stream.tail), lock);
  }
  come_back(copy, lock);
  return CUDA_SUCCESS;
}

// Synchronous copies run on the default stream, which must not be needed by a capture.
CUresult copy_now(NullStream null_stream, const CopyOperation& copy, DriverLock& lock) {
  Stream& stream = stream_of(nullptr, null_stream);
  forbid_unsafe_call();
  const Context* const context = stream.context;
  enqueue(stream, copy);
  // From device to device only the clock of the host waits: a real driver's host does not.
  const bool inside = !on_host(copy.destination) && !on_host(copy.source);
  if (driver().pending.deferred() && inside && !stream.hung)
    driver().host_time = std::max(driver().host_time, stream.ready);
  else
    wait_for_stream(stream, lock);
  come_back(copy, lock);
  return driver().handles.find<Context>(context) == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                            : context->error;
}

// Between devices a copy is in order with all work of both contexts.
CUresult copy_between_contexts(NullStream null_stream, const CopyOperation& copy,
                               DriverLock& lock) {
  driver().pending.finish_all(nullptr, lock);
  const CUresult result = copy_now(null_stream, copy, lock);
  driver().pending.finish_all(nullptr, lock);
  return result;
}

std::uintptr_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

template <class Structure>
CopyOperation shape_at(const Structure* copy) {
  require(copy != nullptr);
  return copy_of(*copy);
}

}  // namespace

SIMCUDA_BOTH_STREAMS(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount),
                     { return copy_now(null_stream, copy_of(dst, src, ByteCount), lock); })
SIMCUDA_BOTH_STREAMS(cuMemcpyAsync, _ptsz,
                     (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream), {
                       return copy_async(stream_of(hStream, null_stream),
                                         copy_of(dst, src, ByteCount), lock);
                     })

SIMCUDA_BOTH_STREAMS(cuMemcpyHtoD_v2, _ptds,
                     (CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount), {
                       require_device(dstDevice, ByteCount);
                       return copy_now(null_stream, copy_of(dstDevice, address(srcHost), ByteCount),
                                       lock);
                     })
SIMCUDA_BOTH_STREAMS(cuMemcpyDtoH_v2, _ptds,
                     (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount), {
                       require_device(srcDevice, ByteCount);
                       return copy_now(null_stream, copy_of(address(dstHost), srcDevice, ByteCount),
                                       lock);
                     })
SIMCUDA_BOTH_STREAMS(cuMemcpyDtoD_v2, _ptds,
                     (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount), {
                       require_device(srcDevice, ByteCount);
                       require_device(dstDevice, ByteCount);
                       return copy_now(null_stream, copy_of(dstDevice, srcDevice, ByteCount), lock);
                     })
SIMCUDA_BOTH_STREAMS(cuMemcpyHtoDAsync_v2, _ptsz,
                     (CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                      CUstream hStream),
                     {
                       require_device(dstDevice, ByteCount);
                       return copy_async(stream_of(hStream, null_stream),
                                         copy_of(dstDevice, address(srcHost), ByteCount), lock);
                     })
SIMCUDA_BOTH_STREAMS(cuMemcpyDtoHAsync_v2, _ptsz,
                     (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream), {
                       require_device(srcDevice, ByteCount);
                       return copy_async(stream_of(hStream, null_stream),
                                         copy_of(address(dstHost), srcDevice, ByteCount), lock);
                     })
SIMCUDA_BOTH_STREAMS(cuMemcpyDtoDAsync_v2, _ptsz,
                     (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                      CUstream hStream),
                     {
                       require_device(srcDevice, ByteCount);
                       require_device(dstDevice, ByteCount);
                       return copy_async(stream_of(hStream, null_stream),
                                         copy_of(dstDevice, srcDevice, ByteCount), lock);
                     })
SIMCUDA_BOTH_STREAMS(
    cuMemcpyPeer, _ptds,
    (CUdeviceptr dstDevice, CUcontext, CUdeviceptr srcDevice, CUcontext, size_t ByteCount), {
      require_device(srcDevice, ByteCount);
      require_device(dstDevice, ByteCount);
      return copy_between_contexts(null_stream, copy_of(dstDevice, srcDevice, ByteCount), lock);
    })
SIMCUDA_BOTH_STREAMS(cuMemcpyPeerAsync, _ptsz,
                     (CUdeviceptr dstDevice, CUcontext, CUdeviceptr srcDevice, CUcontext,
                      size_t ByteCount, CUstream hStream),
                     {
                       require_device(srcDevice, ByteCount);
                       require_device(dstDevice, ByteCount);
                       return copy_async(stream_of(hStream, null_stream),
                                         copy_of(dstDevice, srcDevice, ByteCount), lock);
                     })

SIMCUDA_BOTH_STREAMS(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* pCopy),
                     { return copy_now(null_stream, shape_at(pCopy), lock); })
SIMCUDA_BOTH_STREAMS(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* pCopy),
                     { return copy_now(null_stream, shape_at(pCopy), lock); })
SIMCUDA_BOTH_STREAMS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* pCopy, CUstream hStream),
                     { return copy_async(stream_of(hStream, null_stream), shape_at(pCopy), lock); })
SIMCUDA_BOTH_STREAMS(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D* pCopy),
                     { return copy_now(null_stream, shape_at(pCopy), lock); })
SIMCUDA_BOTH_STREAMS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D* pCopy, CUstream hStream),
                     { return copy_async(stream_of(hStream, null_stream), shape_at(pCopy), lock); })
SIMCUDA_BOTH_STREAMS(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER* pCopy),
                     { return copy_between_contexts(null_stream, shape_at(pCopy), lock); })
SIMCUDA_BOTH_STREAMS(cuMemcpy3DPeerAsync, _ptsz,
                     (const CUDA_MEMCPY3D_PEER* pCopy, CUstream hStream),
                     { return copy_async(stream_of(hStream, null_stream), shape_at(pCopy), lock); })

SIMCUDA_BOTH_STREAMS(cuMemcpyHtoA_v2, _ptds,
                     (CUarray dstArray, size_t dstOffset, const void* srcHost, size_t ByteCount), {
                       return copy_now(null_stream,
                                       copy_of(range_of(dstArray, dstOffset, ByteCount),
                                               address(srcHost), ByteCount),
                                       lock);
                     })
SIMCUDA_BOTH_STREAMS(cuMemcpyAtoH_v2, _ptds,
                     (void* dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount), {
                       return copy_now(null_stream,
                                       copy_of(address(dstHost),
                                               range_of(srcArray, srcOffset, ByteCount), ByteCount),
                                       lock);
                     })
