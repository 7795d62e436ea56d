#include "capture.hpp"
#include "operation.hpp"
#include "timeline.hpp"

using namespace simcuda;

namespace {

// What a program calls device memory must be memory that the driver knows.
void require_device(CUdeviceptr pointer, std::size_t bytes) {
  require(driver().memory.covers(pointer, bytes));
}

CopyOperation plain(std::uintptr_t destination, std::uintptr_t source, std::size_t bytes) {
  CopyOperation copy;
  copy.destination = destination;
  copy.source = source;
  copy.width_bytes = bytes;
  return copy;
}

// As on a real driver, a copy to pageable memory, or from host to host, is over when the call
// returns; other copies are not.
CUresult copy_async(Stream& stream, const CopyOperation& copy, DriverLock& lock) {
  enqueue(stream, copy);
  if (driver().pending.immediate() || stream.capture != nullptr || stream.hung) return CUDA_SUCCESS;
  const Memory& memory = driver().memory;
  const Memory::Block* const to = memory.find(copy.destination);
  const Memory::Block* const from = memory.find(copy.source);
  const bool from_host = from == nullptr || from->on_host();
  if (to == nullptr || (to->on_host() && from_host))
    driver().pending.finish(std::vector<TaskPtr>(stream.tail), lock);
  return CUDA_SUCCESS;
}

// Synchronous copies run on the default stream, which must not be needed by a capture.
CUresult copy_now(NullStream null_stream, const CopyOperation& copy, DriverLock& lock) {
  Stream& stream = stream_of(nullptr, null_stream);
  forbid_unsafe_call();
  const Context* const context = stream.context;
  enqueue(stream, copy);
  wait_for_stream(stream, lock);
  return driver().handles.find<Context>(context) == nullptr ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                            : context->error;
}

// Between devices a copy is in order with all work of both contexts.
CUresult copy_between_contexts(NullStream null_stream, const CopyOperation& copy,
                               DriverLock& lock) {
  driver().pending.finish_all(nullptr, lock);
  return copy_now(null_stream, copy, lock);
}

std::uintptr_t address(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

struct Place {
  std::uintptr_t base;
  std::size_t pitch;
};

Place place(CUmemorytype type, const void* host, CUdeviceptr device, std::size_t pitch,
            std::size_t width) {
  require(
      type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED,
      CUDA_ERROR_NOT_SUPPORTED);  // arrays are not simulated
  return {type == CU_MEMORYTYPE_HOST ? address(host) : static_cast<std::uintptr_t>(device),
          pitch == 0 ? width : pitch};
}

CopyOperation two_dimensions(const CUDA_MEMCPY2D* copy) {
  require(copy != nullptr);
  const Place from = place(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcPitch,
                           copy->WidthInBytes);
  const Place to = place(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstPitch,
                         copy->WidthInBytes);
  require(from.pitch >= copy->WidthInBytes && to.pitch >= copy->WidthInBytes);
  CopyOperation operation;
  operation.source = from.base + copy->srcY * from.pitch + copy->srcXInBytes;
  operation.destination = to.base + copy->dstY * to.pitch + copy->dstXInBytes;
  operation.source_pitch = from.pitch;
  operation.destination_pitch = to.pitch;
  operation.width_bytes = copy->WidthInBytes;
  operation.height = copy->Height;
  return operation;
}

CopyOperation three_dimensions(const CUDA_MEMCPY3D* copy) {
  require(copy != nullptr);
  const Place from = place(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcPitch,
                           copy->WidthInBytes);
  const Place to = place(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstPitch,
                         copy->WidthInBytes);
  CopyOperation operation;
  operation.source_pitch = from.pitch;
  operation.destination_pitch = to.pitch;
  operation.source_slice = from.pitch * (copy->srcHeight == 0 ? copy->Height : copy->srcHeight);
  operation.destination_slice = to.pitch * (copy->dstHeight == 0 ? copy->Height : copy->dstHeight);
  operation.source =
      from.base + copy->srcZ * operation.source_slice + copy->srcY * from.pitch + copy->srcXInBytes;
  operation.destination = to.base + copy->dstZ * operation.destination_slice +
                          copy->dstY * to.pitch + copy->dstXInBytes;
  operation.width_bytes = copy->WidthInBytes;
  operation.height = copy->Height;
  operation.depth = copy->Depth;
  return operation;
}

}  // namespace

SIMCUDA_BOTH_STREAMS(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount),
                     { return copy_now(null_stream, plain(dst, src, ByteCount), lock); })
SIMCUDA_BOTH_STREAMS(cuMemcpyAsync, _ptsz,
                     (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream), {
                       return copy_async(stream_of(hStream, null_stream),
                                         plain(dst, src, ByteCount), lock);
                     })

SIMCUDA_BOTH_STREAMS(cuMemcpyHtoD_v2, _ptds,
                     (CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount), {
                       require_device(dstDevice, ByteCount);
                       return copy_now(null_stream, plain(dstDevice, address(srcHost), ByteCount),
                                       lock);
                     })
SIMCUDA_BOTH_STREAMS(cuMemcpyDtoH_v2, _ptds,
                     (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount), {
                       require_device(srcDevice, ByteCount);
                       return copy_now(null_stream, plain(address(dstHost), srcDevice, ByteCount),
                                       lock);
                     })
SIMCUDA_BOTH_STREAMS(cuMemcpyDtoD_v2, _ptds,
                     (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount), {
                       require_device(srcDevice, ByteCount);
                       require_device(dstDevice, ByteCount);
                       return copy_now(null_stream, plain(dstDevice, srcDevice, ByteCount), lock);
                     })
SIMCUDA_BOTH_STREAMS(cuMemcpyHtoDAsync_v2, _ptsz,
                     (CUdeviceptr dstDevice, const void* srcHost, size_t ByteCount,
                      CUstream hStream),
                     {
                       require_device(dstDevice, ByteCount);
                       return copy_async(stream_of(hStream, null_stream),
                                         plain(dstDevice, address(srcHost), ByteCount), lock);
                     })
SIMCUDA_BOTH_STREAMS(cuMemcpyDtoHAsync_v2, _ptsz,
                     (void* dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream), {
                       require_device(srcDevice, ByteCount);
                       return copy_async(stream_of(hStream, null_stream),
                                         plain(address(dstHost), srcDevice, ByteCount), lock);
                     })
SIMCUDA_BOTH_STREAMS(cuMemcpyDtoDAsync_v2, _ptsz,
                     (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
                      CUstream hStream),
                     {
                       require_device(srcDevice, ByteCount);
                       require_device(dstDevice, ByteCount);
                       return copy_async(stream_of(hStream, null_stream),
                                         plain(dstDevice, srcDevice, ByteCount), lock);
                     })
SIMCUDA_BOTH_STREAMS(
    cuMemcpyPeer, _ptds,
    (CUdeviceptr dstDevice, CUcontext, CUdeviceptr srcDevice, CUcontext, size_t ByteCount), {
      require_device(srcDevice, ByteCount);
      require_device(dstDevice, ByteCount);
      return copy_between_contexts(null_stream, plain(dstDevice, srcDevice, ByteCount), lock);
    })
SIMCUDA_BOTH_STREAMS(cuMemcpyPeerAsync, _ptsz,
                     (CUdeviceptr dstDevice, CUcontext, CUdeviceptr srcDevice, CUcontext,
                      size_t ByteCount, CUstream hStream),
                     {
                       require_device(srcDevice, ByteCount);
                       require_device(dstDevice, ByteCount);
                       return copy_async(stream_of(hStream, null_stream),
                                         plain(dstDevice, srcDevice, ByteCount), lock);
                     })

SIMCUDA_BOTH_STREAMS(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* pCopy),
                     { return copy_now(null_stream, two_dimensions(pCopy), lock); })
SIMCUDA_BOTH_STREAMS(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* pCopy),
                     { return copy_now(null_stream, two_dimensions(pCopy), lock); })
SIMCUDA_BOTH_STREAMS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* pCopy, CUstream hStream), {
  return copy_async(stream_of(hStream, null_stream), two_dimensions(pCopy), lock);
})
SIMCUDA_BOTH_STREAMS(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D* pCopy),
                     { return copy_now(null_stream, three_dimensions(pCopy), lock); })
SIMCUDA_BOTH_STREAMS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D* pCopy, CUstream hStream), {
  return copy_async(stream_of(hStream, null_stream), three_dimensions(pCopy), lock);
})
