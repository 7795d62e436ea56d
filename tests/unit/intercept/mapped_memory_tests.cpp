// Memory that is mapped, imported or shared, in the map of allocations.
#include "allocation_calls.hpp"
#include "catch.hpp"

using namespace allocation_calls;

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
  CHECK(program.memory.changes().incomplete() == nullptr);
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
  CHECK(program.memory.changes().incomplete() == nullptr);

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
  CHECK(program.memory.changes().incomplete() != nullptr);
}
