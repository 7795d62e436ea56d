// cuMemset*: asynchronous on device memory in all forms, as in the real driver.
#include "operation.hpp"

using namespace simcuda;

namespace {

CUresult set(Stream& stream, CUdeviceptr destination, std::uint32_t value, unsigned element_bytes,
             std::size_t width, std::size_t height, std::size_t pitch) {
  require(destination != 0 && destination % element_bytes == 0);
  require(height <= 1 || pitch >= width * element_bytes);
  const std::size_t bytes = (height == 0 ? 0 : height - 1) * pitch + width * element_bytes;
  require(driver().memory.covers(destination, bytes));
  SetOperation operation;
  operation.destination = destination;
  operation.value = value;
  operation.element_bytes = element_bytes;
  operation.width = width;
  operation.height = height;
  operation.pitch = pitch;
  enqueue(stream, operation);
  return CUDA_SUCCESS;
}

}  // namespace

#define SET_FORMS(BITS, TYPE)                                                                    \
  SIMCUDA_BOTH_STREAMS(                                                                          \
      cuMemsetD##BITS##_v2, _ptds, (CUdeviceptr dstDevice, TYPE value, size_t N),                \
      { return set(stream_of(nullptr, null_stream), dstDevice, value, BITS / 8, N, 1, 0); })     \
  SIMCUDA_BOTH_STREAMS(                                                                          \
      cuMemsetD##BITS##Async, _ptsz,                                                             \
      (CUdeviceptr dstDevice, TYPE value, size_t N, CUstream hStream),                           \
      { return set(stream_of(hStream, null_stream), dstDevice, value, BITS / 8, N, 1, 0); })     \
  SIMCUDA_BOTH_STREAMS(                                                                          \
      cuMemsetD2D##BITS##_v2, _ptds,                                                             \
      (CUdeviceptr dstDevice, size_t dstPitch, TYPE value, size_t Width, size_t Height), {       \
        return set(stream_of(nullptr, null_stream), dstDevice, value, BITS / 8, Width, Height,   \
                   dstPitch);                                                                    \
      })                                                                                         \
  SIMCUDA_BOTH_STREAMS(cuMemsetD2D##BITS##Async, _ptsz,                                          \
                       (CUdeviceptr dstDevice, size_t dstPitch, TYPE value, size_t Width,        \
                        size_t Height, CUstream hStream),                                        \
                       {                                                                         \
                         return set(stream_of(hStream, null_stream), dstDevice, value, BITS / 8, \
                                    Width, Height, dstPitch);                                    \
                       })

SET_FORMS(8, unsigned char)
SET_FORMS(16, unsigned short)
SET_FORMS(32, unsigned int)
