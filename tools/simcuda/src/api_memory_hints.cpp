// Hints about managed memory: all memory is host memory here, so they are checked and dropped.
#include "contexts.hpp"

using namespace simcuda;

namespace {

CUresult check_range(CUdeviceptr pointer, std::size_t bytes) {
  const Memory::Block* const block = driver().memory.find(pointer);
  require(block != nullptr && block->kind == Memory::Kind::managed && bytes > 0 &&
          pointer + bytes <= block->begin + block->bytes);
  return CUDA_SUCCESS;
}

}  // namespace

SIMCUDA_BOTH_STREAMS(cuMemPrefetchAsync, _ptsz,
                     (CUdeviceptr devPtr, size_t count, CUdevice, CUstream hStream), {
                       (void)stream_of(hStream, null_stream);
                       return check_range(devPtr, count);
                     })
SIMCUDA_BOTH_STREAMS(cuMemPrefetchAsync_v2, _ptsz,
                     (CUdeviceptr devPtr, size_t count, CUmemLocation, unsigned int flags,
                      CUstream hStream),
                     {
                       require(flags == 0);
                       (void)stream_of(hStream, null_stream);
                       return check_range(devPtr, count);
                     })
SIMCUDA_ENTRY(cuMemAdvise, (CUdeviceptr devPtr, size_t count, CUmem_advise, CUdevice),
              { return check_range(devPtr, count); })
SIMCUDA_ENTRY(cuMemAdvise_v2, (CUdeviceptr devPtr, size_t count, CUmem_advise, CUmemLocation),
              { return check_range(devPtr, count); })
