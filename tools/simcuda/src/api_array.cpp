// Arrays: memory that only copies reach, since there are no textures.
#include "allocation.hpp"
#include "array.hpp"
#include "capture.hpp"

using namespace simcuda;

namespace {

std::size_t bytes_of(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      throw Failure{CUDA_ERROR_NOT_SUPPORTED};
  }
}

CUresult create(CUarray* to, const CUDA_ARRAY3D_DESCRIPTOR& shape, DriverLock& lock) {
  require(to != nullptr && shape.Width > 0 && (shape.Height > 0 || shape.Depth == 0));
  require(shape.NumChannels == 1 || shape.NumChannels == 2 || shape.NumChannels == 4);
  Array array;
  array.shape = shape;
  array.element_bytes = bytes_of(shape.Format) * shape.NumChannels;
  Context& context = current_context();
  forbid_unsafe_call();
  array.begin = allocate(context, context.device, array.bytes(), Memory::Kind::device, lock).begin;
  auto* const made = driver().handles.make<Array>();
  made->shape = array.shape;
  made->element_bytes = array.element_bytes;
  made->begin = array.begin;
  *to = reinterpret_cast<CUarray>(made);
  return CUDA_SUCCESS;
}

Array& array_at(CUarray handle) {
  return driver().handles.get<Array>(handle);
}

}  // namespace

SIMCUDA_ENTRY(cuArrayCreate_v2, (CUarray * pHandle, const CUDA_ARRAY_DESCRIPTOR* descriptor), {
  require(descriptor != nullptr);
  return create(
      pHandle,
      {descriptor->Width, descriptor->Height, 0, descriptor->Format, descriptor->NumChannels, 0},
      lock);
})
SIMCUDA_ENTRY(cuArray3DCreate_v2, (CUarray * pHandle, const CUDA_ARRAY3D_DESCRIPTOR* descriptor), {
  require(descriptor != nullptr);
  return create(pHandle, *descriptor, lock);
})
SIMCUDA_ENTRY(cuArrayDestroy, (CUarray hArray), {
  (void)array_at(hArray);
  driver().pending.finish_all(nullptr, lock);
  Array& array = array_at(hArray);
  driver().memory.release(array.begin);
  driver().handles.destroy(&array);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuArrayGetDescriptor_v2, (CUDA_ARRAY_DESCRIPTOR * descriptor, CUarray hArray), {
  require(descriptor != nullptr);
  const CUDA_ARRAY3D_DESCRIPTOR& shape = array_at(hArray).shape;
  *descriptor = {shape.Width, shape.Height, shape.Format, shape.NumChannels};
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR * descriptor, CUarray hArray), {
  require(descriptor != nullptr);
  *descriptor = array_at(hArray).shape;
  return CUDA_SUCCESS;
})
