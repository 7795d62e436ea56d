#include "contexts.hpp"

using namespace simcuda;

namespace {

CUmemorytype type_of(const Memory::Block& block) {
  return block.on_host() ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

void read_attribute(void* data, CUpointer_attribute attribute, CUdeviceptr pointer) {
  const Memory::Block* const block = driver().memory.find(pointer);
  require(block != nullptr);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<CUcontext*>(data) = block->context;
      return;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<unsigned*>(data) = type_of(*block);
      return;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<CUdeviceptr*>(data) = pointer;
      return;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      require(block->on_host() || block->kind == Memory::Kind::managed);
      *static_cast<void**>(data) = reinterpret_cast<void*>(pointer);
      return;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<unsigned long long*>(data) = block->id;
      return;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<unsigned*>(data) = block->kind == Memory::Kind::managed ? 1 : 0;
      return;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = block->device;
      return;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(data) = block->begin;
      return;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(data) = block->bytes;
      return;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<unsigned*>(data) = 1;
      return;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      *static_cast<unsigned*>(data) = 0;
      return;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      *static_cast<CUmemoryPool*>(data) = block->pool;
      return;
    default:
      throw Failure{CUDA_ERROR_NOT_SUPPORTED};
  }
}

}  // namespace

SIMCUDA_ENTRY(cuPointerGetAttribute, (void* data, CUpointer_attribute attribute, CUdeviceptr ptr), {
  require(data != nullptr);
  read_attribute(data, attribute, ptr);
  return CUDA_SUCCESS;
})

// Unlike the single form, this one succeeds for memory that the driver does not know.
SIMCUDA_ENTRY(cuPointerGetAttributes,
              (unsigned int numAttributes, CUpointer_attribute* attributes, void** data,
               CUdeviceptr ptr),
              {
                require(attributes != nullptr && data != nullptr);
                for (unsigned i = 0; i < numAttributes; ++i) {
                  try {
                    read_attribute(data[i], attributes[i], ptr);
                  } catch (const Failure&) {
                    if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
                      *static_cast<unsigned*>(data[i]) = 0;
                    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
                      *static_cast<int*>(data[i]) = -2;
                    if (attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT)
                      *static_cast<CUcontext*>(data[i]) = nullptr;
                  }
                }
                return CUDA_SUCCESS;
              })
