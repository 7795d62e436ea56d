// The map of allocations, told of calls as the frontend tells of them.
#include "intercept/allocation_map.hpp"

#include <string>
#include <vector>

#include "catch.hpp"
#include "gpu/driver.hpp"
#include "intercept/memory_hooks.hpp"

using namespace contextune;
using namespace contextune::intercept;

namespace {

CUcontext context_number(std::uintptr_t number) {
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
} answers;

CUresult get_current(CUcontext* context) {
  *context = answers.context;
  return CUDA_SUCCESS;
}
CUresult get_device(CUdevice* device) {
  *device = answers.device;
  return CUDA_SUCCESS;
}
CUresult is_capturing(CUstream, CUstreamCaptureStatus* status) {
  *status = answers.capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult get_attributes(unsigned count, CUpointer_attribute* attributes, void** values,
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
CUresult get_range(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr) {
  *base = answers.base;
  *bytes = answers.bytes;
  return answers.bytes != 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
CUresult get_properties(CUmemAllocationProp* properties, CUmemGenericAllocationHandle) {
  properties->location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  return CUDA_SUCCESS;
}
CUresult get_global(CUdeviceptr* pointer, std::size_t* bytes, CUmodule, const char*) {
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
    memory_call_begins(map, fn, args);
    note_memory_call(map, driver, fn, args, result);
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
  AllocationMap map{&missed};
};

template <typename Handle>
Handle handle(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}

}  // namespace

TEST_CASE("Memory is known from when the driver gave it until it is given back", "[allocations]") {
  Calls program;
  program.allocate(0x2000, 0x20);
  program.allocate(0x1000, 0x10);
  CHECK(program.live() == "1000+10 2000+20");
  const auto found = program.map.find(0x201f);
  REQUIRE(found.has_value());
  CHECK(found->begin == 0x2000);
  CHECK(found->kind == AllocationKind::Device);
  CHECK(found->device == 0);
  CHECK(found->context == context_number(0x10));
  CHECK(found->accessible);
  CHECK_FALSE(program.map.find(0x2020).has_value());
  CHECK_FALSE(program.map.find(0xfff).has_value());
  CHECK(program.map.find(0x1000)->serial > found->serial);
  program.free(0x2000);
  CHECK(program.live() == "1000+10");
  CHECK(program.map.incomplete() == nullptr);
}

TEST_CASE("A call that fails changes nothing", "[allocations]") {
  Calls program;
  CUdeviceptr unset = 0x7000;
  program.call(contextune_fn_cuMemAlloc_v2, CUDA_ERROR_OUT_OF_MEMORY, &unset, std::size_t{8});
  CHECK(program.live().empty());
  program.allocate(0x1000, 0x10);
  const std::uint64_t serial = program.map.find(0x1000)->serial;
  program.free(0x1000, CUDA_ERROR_INVALID_VALUE);
  program.free(0x1008, CUDA_ERROR_INVALID_VALUE);
  CHECK(program.live() == "1000+10");
  CHECK(program.map.find(0x1000)->serial == serial);
}

TEST_CASE("Memory is not to be used from when its release begins", "[allocations]") {
  Calls program;
  program.allocate(0x1000, 0x10);
  CUdeviceptr pointer = 0x1000;
  void* const args[] = {&pointer, nullptr};
  memory_call_begins(program.map, contextune_fn_cuMemFree_v2, args);
  CHECK(program.live().empty());
  // Another thread is given the same address before this one is back.
  program.allocate(0x1000, 0x20);
  note_memory_call(program.map, program.driver, contextune_fn_cuMemFree_v2, args, CUDA_SUCCESS);
  CHECK(program.live() == "1000+20");
  CHECK(program.map.incomplete() == nullptr);
}

TEST_CASE("The version tells whether anything has changed", "[allocations]") {
  Calls program;
  const std::uint64_t before = program.map.version();
  program.free(0x1000, CUDA_ERROR_INVALID_VALUE);
  program.create(7);
  CHECK(program.map.version() == before);
  program.allocate(0x1000, 0x10);
  const std::uint64_t allocated = program.map.version();
  CHECK(allocated > before);
  program.free(0x1000);
  CHECK(program.map.version() > allocated);
}

TEST_CASE("A pitched allocation is as long as its rows", "[allocations]") {
  Calls program;
  CUdeviceptr pointer = 0x1000;
  std::size_t pitch = 0x200;
  program.call(contextune_fn_cuMemAllocPitch_v2, CUDA_SUCCESS, &pointer, &pitch, std::size_t{9},
               std::size_t{3}, 4U);
  CHECK(program.live() == "1000+600");
}

TEST_CASE("Pool memory lives in no context, wherever its pool is", "[allocations]") {
  Calls program;
  answers.memory_device = 1;
  program.allocate_async(0x1000, 0x10);
  answers.managed = true;
  program.allocate_async(0x2000, 0x10);
  answers.managed = false;
  answers.memory_type = CU_MEMORYTYPE_HOST;
  program.allocate_async(0x3000, 0x10);
  const auto all = program.map.all();
  REQUIRE(all.size() == 3);
  CHECK(all[0].kind == AllocationKind::Pool);
  CHECK(all[0].device == 1);
  CHECK(all[0].context == nullptr);
  CHECK(all[1].kind == AllocationKind::Managed);
  CHECK(all[2].kind == AllocationKind::Host);
  CHECK(all[2].device == -1);
  program.call(contextune_fn_cuMemFreeAsync, CUDA_SUCCESS, CUdeviceptr{0x1000}, CUstream{});
  program.free(0x2000);
  CHECK(program.live() == "3000+10");
}

TEST_CASE("Memory of a graph makes the map incomplete", "[allocations]") {
  Calls program;
  SECTION("captured") {
    answers.capturing = true;
    program.allocate_async(0x1000, 0x10);
  }
  SECTION("added as a node") {
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_KERNEL;
    const auto add = [&] {
      program.call(contextune_fn_cuGraphAddNode_v2, CUDA_SUCCESS, nullptr, nullptr, nullptr,
                   nullptr, std::size_t{0}, &params);
    };
    add();
    CHECK(program.map.incomplete() == nullptr);
    params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    add();
  }
  CHECK(program.live().empty());
  REQUIRE(program.map.incomplete() != nullptr);
  CHECK(std::string(program.map.incomplete()).find("graph") != std::string::npos);
}

TEST_CASE("Host memory keeps the flags that it was made with", "[allocations]") {
  Calls program;
  void* pinned = handle<void*>(0x1000);
  program.call(contextune_fn_cuMemHostAlloc, CUDA_SUCCESS, &pinned, std::size_t{0x10},
               unsigned{CU_MEMHOSTALLOC_WRITECOMBINED});
  void* registered = handle<void*>(0x2000);
  program.call(contextune_fn_cuMemHostRegister_v2, CUDA_SUCCESS, registered, std::size_t{0x10},
               unsigned{CU_MEMHOSTREGISTER_PORTABLE});
  void* old = handle<void*>(0x3000);
  program.call(contextune_fn_cuMemAllocHost, CUDA_SUCCESS, &old, 0x10U);
  CHECK(program.live() == "1000+10 2000+10 3000+10");
  CHECK(program.map.find(0x1000)->kind == AllocationKind::Host);
  CHECK(program.map.find(0x1000)->host_flags == CU_MEMHOSTALLOC_WRITECOMBINED);
  CHECK(program.map.find(0x2000)->host_flags == CU_MEMHOSTREGISTER_PORTABLE);
  program.call(contextune_fn_cuMemFreeHost, CUDA_SUCCESS, pinned);
  program.call(contextune_fn_cuMemHostUnregister, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, old);
  program.call(contextune_fn_cuMemHostUnregister, CUDA_SUCCESS, registered);
  CHECK(program.live() == "3000+10");
}

TEST_CASE("Virtual memory is live while it is mapped, and in reach once that is set",
          "[allocations]") {
  Calls program;
  program.create(7, 1);
  program.map_memory(0x10000, 0x2000, 7);
  program.map_memory(0x12000, 0x2000, 7);
  CHECK(program.live() == "10000+2000 12000+2000");
  CHECK(program.map.find(0x10000)->kind == AllocationKind::Virtual);
  CHECK(program.map.find(0x10000)->device == 1);
  CHECK(program.map.find(0x10000)->context == nullptr);
  CHECK_FALSE(program.map.find(0x10000)->accessible);

  program.set_access(0x10000, 0x4000, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CHECK_FALSE(program.map.find(0x10000)->accessible);  // another device's
  program.set_access(0x10000, 0x3000, 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CHECK(program.map.find(0x10000)->accessible);
  CHECK_FALSE(program.map.find(0x12000)->accessible);  // not all of it
  program.set_access(0x10000, 0x1000, 1, CU_MEM_ACCESS_FLAGS_PROT_READ);
  CHECK_FALSE(program.map.find(0x10000)->accessible);

  program.free(0x10000, CUDA_ERROR_INVALID_VALUE);
  program.unmap(0x10000, 0x4000, CUDA_ERROR_INVALID_VALUE);
  CHECK(program.live() == "10000+2000 12000+2000");
  program.unmap(0x11000, 0x2000);
  CHECK(program.live() == "10000+1000 13000+1000");
  program.unmap(0x10000, 0x4000);
  CHECK(program.live().empty());
  CHECK(program.map.incomplete() == nullptr);
}

TEST_CASE("What is mapped from others counts as theirs", "[allocations]") {
  Calls program;
  CUmemGenericAllocationHandle multicast = 1;
  CUmemGenericAllocationHandle imported = 2;
  const CUmulticastObjectProp* no_properties = nullptr;
  program.call(contextune_fn_cuMulticastCreate, CUDA_SUCCESS, &multicast, no_properties);
  program.call(contextune_fn_cuMemImportFromShareableHandle, CUDA_SUCCESS, &imported,
               handle<void*>(0x77), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  program.map_memory(0x10000, 0x1000, multicast);
  program.map_memory(0x20000, 0x1000, imported);
  program.map_memory(0x30000, 0x1000, 99);  // nobody knows where that came from
  for (const Allocation& one : program.map.all()) CHECK(one.kind == AllocationKind::Imported);
  CHECK(program.map.find(0x20000)->device == 1);
  program.unmap(0x30000, 0x1000);
  CHECK(program.live() == "10000+1000 20000+1000");
}

TEST_CASE("A handle that is given again stands for the new memory", "[allocations]") {
  Calls program;
  CUmemGenericAllocationHandle number = 5;
  program.call(contextune_fn_cuMemImportFromShareableHandle, CUDA_SUCCESS, &number,
               handle<void*>(0x77), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  program.map_memory(0x10000, 0x1000, number);
  // Mapped memory stays when its handle is released.
  program.call(contextune_fn_cuMemRelease, CUDA_SUCCESS, number);
  program.create(number);
  program.map_memory(0x20000, 0x1000, number);
  CHECK(program.map.find(0x10000)->kind == AllocationKind::Imported);
  CHECK(program.map.find(0x20000)->kind == AllocationKind::Virtual);
}

TEST_CASE("Memory that others have been let into is marked", "[allocations]") {
  Calls program;
  SECTION("through a handle, which marks every mapping of it") {
    program.create(7);
    program.map_memory(0x10000, 0x1000, 7);
    program.create(8);
    program.map_memory(0x20000, 0x1000, 8);
    CUmemGenericAllocationHandle again = 9;
    program.call(contextune_fn_cuMemRetainAllocationHandle, CUDA_SUCCESS, &again,
                 handle<void*>(0x10800));
    program.call(contextune_fn_cuMemExportToShareableHandle, CUDA_SUCCESS, nullptr, again,
                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0ULL);
    program.map_memory(0x30000, 0x1000, 7);
    CHECK(program.map.find(0x10000)->exported);
    CHECK_FALSE(program.map.find(0x20000)->exported);
    CHECK(program.map.find(0x30000)->exported);
  }
  SECTION("through its address") {
    program.allocate(0x1000, 0x10);
    program.allocate(0x2000, 0x10);
    program.allocate(0x3000, 0x10);
    program.allocate(0x4000, 0x10);
    program.call(contextune_fn_cuIpcGetMemHandle, CUDA_SUCCESS, nullptr, CUdeviceptr{0x1000});
    program.call(contextune_fn_cuMemPoolExportPointer, CUDA_SUCCESS, nullptr, CUdeviceptr{0x2000});
    program.call(contextune_fn_cuMemGetHandleForAddressRange, CUDA_SUCCESS, nullptr,
                 CUdeviceptr{0x3000}, std::size_t{0x10}, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0ULL);
    CHECK(program.map.find(0x1000)->exported);
    CHECK(program.map.find(0x2000)->exported);
    CHECK(program.map.find(0x3000)->exported);
    CHECK_FALSE(program.map.find(0x4000)->exported);
  }
}

TEST_CASE("An import is as long as the driver says, until it is closed as often as opened",
          "[allocations]") {
  Calls program;
  answers.base = 0x1000;
  answers.bytes = 0x100;
  program.open_ipc(0x1040);
  program.open_ipc(0x1040);
  CHECK(program.live() == "1040+c0");
  CHECK(program.map.find(0x1040)->kind == AllocationKind::Imported);
  program.call(contextune_fn_cuIpcCloseMemHandle, CUDA_SUCCESS, CUdeviceptr{0x1040});
  CHECK(program.live() == "1040+c0");
  program.call(contextune_fn_cuIpcCloseMemHandle, CUDA_SUCCESS, CUdeviceptr{0x1040});
  CHECK(program.live().empty());
  CHECK(program.map.incomplete() == nullptr);

  CUDA_EXTERNAL_MEMORY_BUFFER_DESC description{};
  description.size = 0x40;
  const CUDA_EXTERNAL_MEMORY_BUFFER_DESC* given = &description;
  CUdeviceptr mapped = 0x8000;
  program.call(contextune_fn_cuExternalMemoryGetMappedBuffer, CUDA_SUCCESS, &mapped,
               CUexternalMemory{}, given);
  CHECK(program.live() == "8000+40");
  program.free(0x8000);
  CHECK(program.live().empty());

  answers.bytes = 0;
  program.open_ipc(0x9000);
  CHECK(program.map.incomplete() != nullptr);
}

TEST_CASE("A variable is live until its module or library goes away", "[allocations]") {
  Calls program;
  const auto module = handle<CUmodule>(0x100);
  const auto library = handle<CUlibrary>(0x200);
  program.ask_variable(module, 0x1000, 0x10);
  const std::uint64_t version = program.map.version();
  program.ask_variable(module, 0x1000, 0x10);
  CHECK(program.map.version() == version);
  CHECK(program.map.find(0x1000)->kind == AllocationKind::Global);
  program.free(0x1000, CUDA_ERROR_INVALID_VALUE);
  CHECK(program.live() == "1000+10");

  CUdeviceptr at = 0x2000;
  std::size_t bytes = 0x20;
  program.call(contextune_fn_cuLibraryGetGlobal, CUDA_SUCCESS, &at, &bytes, library, "x");
  auto of_library = handle<CUmodule>(0x300);
  program.call(contextune_fn_cuLibraryGetModule, CUDA_SUCCESS, &of_library, library);
  program.ask_variable(of_library, 0x3000, 0x30);
  CHECK(program.live() == "1000+10 2000+20 3000+30");
  program.call(contextune_fn_cuLibraryUnload, CUDA_SUCCESS, library);
  CHECK(program.live() == "1000+10");
  program.call(contextune_fn_cuModuleUnload, CUDA_SUCCESS, module);
  CHECK(program.live().empty());
}

TEST_CASE("A variable's size is asked for where the program did not", "[allocations]") {
  Calls program;
  CUdeviceptr at = 0x5000;
  std::size_t* nowhere = nullptr;
  program.call(contextune_fn_cuModuleGetGlobal_v2, CUDA_SUCCESS, &at, nowhere,
               handle<CUmodule>(0x100), "x");
  CHECK(program.live() == "5000+18");
  CUdeviceptr* no_address = nullptr;
  std::size_t bytes = 8;
  program.call(contextune_fn_cuModuleGetGlobal_v2, CUDA_SUCCESS, no_address, &bytes,
               handle<CUmodule>(0x100), "y");
  CHECK(program.live() == "5000+18");
  answers.managed = true;
  program.ask_variable(handle<CUmodule>(0x100), 0x6000, 8);
  CHECK(program.map.find(0x6000)->kind == AllocationKind::Managed);
  CHECK(program.map.incomplete() == nullptr);
}

TEST_CASE("Arrays are counted, and those that kernels can write", "[allocations]") {
  Calls program;
  CHECK_FALSE(program.map.has_arrays());
  program.create_array(handle<CUarray>(1), 0);
  CHECK(program.map.has_arrays());
  CHECK_FALSE(program.map.has_surface_arrays());
  program.create_array(handle<CUarray>(2), CUDA_ARRAY3D_SURFACE_LDST);
  CHECK(program.map.has_surface_arrays());
  program.call(contextune_fn_cuArrayDestroy, CUDA_ERROR_INVALID_HANDLE, handle<CUarray>(2));
  CHECK(program.map.has_surface_arrays());
  program.call(contextune_fn_cuArrayDestroy, CUDA_SUCCESS, handle<CUarray>(2));
  CHECK_FALSE(program.map.has_surface_arrays());
  CHECK(program.map.has_arrays());
  program.call(contextune_fn_cuArrayDestroy, CUDA_SUCCESS, handle<CUarray>(1));
  CHECK_FALSE(program.map.has_arrays());
}

TEST_CASE("What lived in a context ends with it", "[allocations]") {
  Calls program;
  program.allocate(0x1000, 0x10);
  program.create_array(handle<CUarray>(1), 0);
  program.allocate_async(0x2000, 0x10);
  answers.context = context_number(0x20);
  program.allocate(0x3000, 0x10);
  program.call(contextune_fn_cuCtxDestroy_v2, CUDA_SUCCESS, context_number(0x10));
  CHECK(program.live() == "2000+10 3000+10");
  CHECK_FALSE(program.map.has_arrays());
  CHECK(program.map.incomplete() == nullptr);
}

TEST_CASE("A device that is reset leaves doubt only where memory outlives contexts",
          "[allocations]") {
  Calls program;
  program.allocate(0x1000, 0x10);
  program.map.forget_device(0, context_number(0x10));
  CHECK(program.live().empty());
  CHECK(program.map.incomplete() == nullptr);
  program.allocate_async(0x2000, 0x10);
  program.map.forget_device(1, context_number(0x30));
  CHECK(program.map.incomplete() == nullptr);
  program.map.forget_device(0, context_number(0x10));
  CHECK(program.map.incomplete() != nullptr);
}

TEST_CASE("The map knows when it has missed something", "[allocations]") {
  Calls program;
  SECTION("there is no frontend") {
    CHECK(AllocationMap(nullptr).incomplete() != nullptr);
    return;
  }
  CHECK(program.map.incomplete() == nullptr);
  SECTION("the frontend says so") {
    program.missed = 1;
  }
  SECTION("the driver gives out what was in use") {
    program.allocate(0x1000, 0x10);
    program.allocate(0x1008, 0x10);
    CHECK(program.map.find(0x1010)->begin == 0x1008);
  }
  SECTION("memory is shared with a graphics interface") {
    program.call(contextune_fn_cuGraphicsMapResources, CUDA_SUCCESS, 1U, nullptr, CUstream{});
  }
  CHECK(program.map.incomplete() != nullptr);
}
