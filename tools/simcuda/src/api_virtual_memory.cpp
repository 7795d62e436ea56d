#include "allocation.hpp"
#include "capture.hpp"

using namespace simcuda;

namespace {

Allocation& allocation_at(CUmemGenericAllocationHandle handle) {
  auto& allocation = driver().handles.get<Allocation>(
      reinterpret_cast<const void*>(static_cast<std::uintptr_t>(handle)), CUDA_ERROR_INVALID_VALUE);
  require(allocation.references > 0);
  return allocation;
}

CUmemGenericAllocationHandle handle_of(const Allocation& allocation) {
  return reinterpret_cast<std::uintptr_t>(&allocation);
}

}  // namespace

SIMCUDA_ENTRY(cuMemAddressReserve,
              (CUdeviceptr * ptr, size_t size, size_t alignment, CUdeviceptr,
               unsigned long long flags),
              {
                require(ptr != nullptr && flags == 0);
                forbid_unsafe_call();
                *ptr = driver().virtual_memory.reserve(size, alignment);
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuMemAddressFree, (CUdeviceptr ptr, size_t size), {
  forbid_unsafe_call();
  driver().virtual_memory.free(ptr, size);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuMemCreate,
              (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp* prop,
               unsigned long long flags),
              {
                require(handle != nullptr && prop != nullptr && flags == 0);
                forbid_unsafe_call();
                meet_allocation_fault(Memory::Kind::device, size);
                *handle = handle_of(driver().virtual_memory.create(size, *prop));
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuMemRelease, (CUmemGenericAllocationHandle handle), {
  driver().virtual_memory.release(allocation_at(handle));
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void* addr), {
  require(handle != nullptr);
  Allocation& allocation = driver().virtual_memory.at(reinterpret_cast<std::uintptr_t>(addr));
  ++allocation.references;
  *handle = handle_of(allocation);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuMemGetAllocationPropertiesFromHandle,
              (CUmemAllocationProp * prop, CUmemGenericAllocationHandle handle), {
                require(prop != nullptr);
                *prop = allocation_at(handle).properties;
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuMemGetAllocationGranularity,
              (size_t * granularity, const CUmemAllocationProp* prop,
               CUmemAllocationGranularity_flags option),
              {
                require(granularity != nullptr && prop != nullptr &&
                        option <= CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
                *granularity = VirtualMemory::granularity;
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuMemMap,
              (CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
               unsigned long long flags),
              {
                require(flags == 0);
                forbid_unsafe_call();
                driver().virtual_memory.map(ptr, size, offset, allocation_at(handle));
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuMemUnmap, (CUdeviceptr ptr, size_t size), {
  forbid_unsafe_call();
  driver().pending.finish_all(nullptr, lock);
  driver().virtual_memory.unmap(ptr, size);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuMemSetAccess,
              (CUdeviceptr ptr, size_t size, const CUmemAccessDesc* desc, size_t count), {
                require(desc != nullptr && count > 0);
                driver().pending.finish_all(nullptr, lock);
                for (std::size_t i = 0; i < count; ++i)
                  driver().virtual_memory.set_access(ptr, size, desc[i]);
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuMemGetAccess,
              (unsigned long long* flags, const CUmemLocation* location, CUdeviceptr ptr), {
                require(flags != nullptr && location != nullptr);
                require(location->type == CU_MEM_LOCATION_TYPE_DEVICE);
                *flags = driver().virtual_memory.access(ptr, location->id);
                return CUDA_SUCCESS;
              })

// Memory is not shared between processes.
SIMCUDA_ENTRY(cuMemExportToShareableHandle,
              (void*, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType,
               unsigned long long),
              {
                (void)allocation_at(handle);
                return CUDA_ERROR_NOT_SUPPORTED;
              })
SIMCUDA_ENTRY(cuMemImportFromShareableHandle,
              (CUmemGenericAllocationHandle*, void*, CUmemAllocationHandleType),
              { return CUDA_ERROR_NOT_SUPPORTED; })
