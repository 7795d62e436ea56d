// A program that calls the driver, as far as the map of allocations is told of it.
#pragma once

#include <cstdio>
#include <string>

#include "gpu/driver/driver.hpp"
#include "intercept/memory/memory_hooks.hpp"
#include "intercept/memory/process_memory.hpp"

namespace allocation_calls {

using namespace contextune;
using namespace contextune::intercept;

inline CUcontext context_number(std::uintptr_t number) {
  return reinterpret_cast<CUcontext>(number);
}

/// What the driver that is asked answers.
struct Answers {
  CUcontext context = context_number(0x10);
  int device = 0;
  bool capturing = false;
  bool managed = false;
  unsigned memory_type = CU_MEMORYTYPE_DEVICE;
  int memory_device = 0;
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
};
inline Answers answers;

inline CUresult get_current(CUcontext* context) {
  *context = answers.context;
  return CUDA_SUCCESS;
}
inline CUresult get_device(CUdevice* device) {
  *device = answers.device;
  return CUDA_SUCCESS;
}
inline CUresult is_capturing(CUstream, CUstreamCaptureStatus* status) {
  *status = answers.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
inline CUresult get_attributes(unsigned count, CUpointer_attribute* attributes, void** values,
                               CUdeviceptr) {
  for (unsigned i = 0; i < count; ++i) {
    if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL) {
      *static_cast<int*>(values[i]) = answers.memory_device;
    } else if (attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE) {
      *static_cast<unsigned*>(values[i]) = answers.memory_type;
    } else {
      *static_cast<unsigned*>(values[i]) = answers.managed ? 1 : 0;
    }
  }
  return CUDA_SUCCESS;
}
inline CUresult get_range(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr) {
  *base = answers.base;
  *bytes = answers.bytes;
  return answers.bytes != 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
inline CUresult get_properties(CUmemAllocationProp* properties, CUmemGenericAllocationHandle) {
  properties->location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  return CUDA_SUCCESS;
}
inline CUresult get_global(CUdeviceptr* pointer, std::size_t* bytes, CUmodule, const char*) {
  *pointer = 0x5000;
  *bytes = 24;
  return CUDA_SUCCESS;
}

/// A program that calls the driver, as far as the map is concerned.
struct Calls {
  Calls() {
    answers = {};
    driver.cuCtxGetCurrent = get_current;
    driver.cuCtxGetDevice = get_device;
    driver.cuStreamIsCapturing = is_capturing;
    driver.cuPointerGetAttributes = get_attributes;
    driver.cuMemGetAddressRange = get_range;
    driver.cuMemGetAllocationPropertiesFromHandle = get_properties;
    driver.cuModuleGetGlobal = get_global;
  }

  template <typename... Arguments>
  void call(contextune_fn fn, CUresult result, Arguments... arguments) {
    void* const args[] = {&arguments..., nullptr};
    memory_call_begins(memory, fn, args);
    note_memory_call(memory, driver, fn, args, result);
  }

  void allocate(CUdeviceptr at, std::size_t bytes) {
    call(contextune_fn_cuMemAlloc_v2, CUDA_SUCCESS, &at, bytes);
  }
  void allocate_async(CUdeviceptr at, std::size_t bytes) {
    call(contextune_fn_cuMemAllocAsync, CUDA_SUCCESS, &at, bytes, CUstream{});
  }
  void free(CUdeviceptr at, CUresult result = CUDA_SUCCESS) {
    call(contextune_fn_cuMemFree_v2, result, at);
  }
  void create(CUmemGenericAllocationHandle handle, int device = 0) {
    CUmemAllocationProp properties{};
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    const CUmemAllocationProp* given = &properties;
    call(contextune_fn_cuMemCreate, CUDA_SUCCESS, &handle, std::size_t{0x2000}, given, 0ULL);
  }
  void map_memory(CUdeviceptr at, std::size_t bytes, CUmemGenericAllocationHandle handle) {
    call(contextune_fn_cuMemMap, CUDA_SUCCESS, at, bytes, std::size_t{0}, handle, 0ULL);
  }
  void set_access(CUdeviceptr at, std::size_t bytes, int device, CUmemAccess_flags flags) {
    const CUmemAccessDesc one{{CU_MEM_LOCATION_TYPE_DEVICE, device}, flags};
    const CUmemAccessDesc* given = &one;
    call(contextune_fn_cuMemSetAccess, CUDA_SUCCESS, at, bytes, given, std::size_t{1});
  }
  void unmap(CUdeviceptr at, std::size_t bytes, CUresult result = CUDA_SUCCESS) {
    call(contextune_fn_cuMemUnmap, result, at, bytes);
  }
  void open_ipc(CUdeviceptr at) {
    call(contextune_fn_cuIpcOpenMemHandle_v2, CUDA_SUCCESS, &at, CUipcMemHandle{}, 1U);
  }
  void ask_variable(CUmodule module, CUdeviceptr at, std::size_t bytes) {
    call(contextune_fn_cuModuleGetGlobal_v2, CUDA_SUCCESS, &at, &bytes, module, "variable");
  }
  void create_array(CUarray array, unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR description{};
    description.Flags = flags;
    const CUDA_ARRAY3D_DESCRIPTOR* given = &description;
    call(contextune_fn_cuArray3DCreate_v2, CUDA_SUCCESS, &array, given);
  }

  /// "1000+20 2000+8": what is live.
  [[nodiscard]] std::string live() const {
    std::string text;
    char one[64];
    for (const Allocation& allocation : map.all()) {
      (void)std::snprintf(one, sizeof one, "%s%llx+%zx", text.empty() ? "" : " ",
                          static_cast<unsigned long long>(allocation.begin), allocation.bytes);
      text += one;
    }
    return text;
  }

  std::uint32_t missed = 0;
  gpu::Driver driver;
  ProcessMemory memory{&missed};
  AllocationMap& map = memory.allocations();
};

template <typename Handle>
Handle handle(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}

}  // namespace allocation_calls
