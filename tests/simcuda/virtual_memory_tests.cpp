// Reserved addresses, memory mapped there, and handles of memory.
#include <cstdint>

#include "session.hpp"

namespace {

constexpr std::size_t page = 2 << 20;

CUmemAllocationProp device_memory() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  return properties;
}

CUmemGenericAllocationHandle create(std::size_t bytes = page) {
  const CUmemAllocationProp properties = device_memory();
  CUmemGenericAllocationHandle handle = 0;
  SUCCEEDS(cuMemCreate(&handle, bytes, &properties, 0));
  return handle;
}

CUdeviceptr reserve(std::size_t bytes) {
  CUdeviceptr begin = 0;
  SUCCEEDS(cuMemAddressReserve(&begin, bytes, 0, 0, 0));
  return begin;
}

CUresult give_access(CUdeviceptr begin, std::size_t bytes) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return cuMemSetAccess(begin, bytes, &access, 1);
}

std::size_t free_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  SUCCEEDS(cuMemGetInfo_v2(&free, &total));
  return free;
}

}  // namespace

TEST_CASE("Memory mapped side by side is one range", "[virtual]") {
  Session session;
  std::size_t granularity = 0;
  const CUmemAllocationProp properties = device_memory();
  SUCCEEDS(
      cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  CHECK(granularity == page);
  const std::size_t before = free_bytes();
  const CUdeviceptr begin = reserve(4 * page);
  CHECK(free_bytes() == before);
  const auto first = create();
  const auto second = create();
  CHECK(free_bytes() == before - 2 * page);
  SUCCEEDS(cuMemMap(begin, page, 0, first, 0));
  SUCCEEDS(cuMemMap(begin + page, page, 0, second, 0));
  CHECK(cuMemMap(begin, page, 0, second, 0) == CUDA_ERROR_INVALID_VALUE);
  // Nobody may touch it before it is given access.
  CHECK(cuMemsetD8_v2(begin, 1, 16) == CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(give_access(begin, 2 * page));
  SUCCEEDS(cuMemsetD8_v2(begin + page - 8, 5, 16));
  CHECK(cuMemsetD8_v2(begin + 2 * page - 8, 5, 16) == CUDA_ERROR_INVALID_VALUE);
  int n = 16;
  CUdeviceptr x = begin + page - 32;
  float value = 3;
  SUCCEEDS(session.launch(session.function("fill"), 1, 32, {&n, &x, &value}));
  CHECK(session.floats(x, 16) == std::vector<float>(16, 3.0F));
  SUCCEEDS(cuMemRelease(first));
  SUCCEEDS(cuMemRelease(second));
  CHECK(cuMemRelease(first) == CUDA_ERROR_INVALID_VALUE);
  CHECK(free_bytes() == before - 2 * page);
  CHECK(cuMemAddressFree(begin, 4 * page) == CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(cuMemUnmap(begin, 2 * page));
  CHECK(free_bytes() == before);
  CHECK(cuMemsetD8_v2(begin, 1, 16) != CUDA_SUCCESS);
  SUCCEEDS(cuMemAddressFree(begin, 4 * page));
}

TEST_CASE("One piece of memory shows in all places where it is mapped", "[virtual]") {
  const Session session;
  const CUdeviceptr begin = reserve(2 * page);
  const auto memory = create();
  SUCCEEDS(cuMemMap(begin, page, 0, memory, 0));
  SUCCEEDS(cuMemMap(begin + page, page, 0, memory, 0));
  SUCCEEDS(give_access(begin, 2 * page));
  SUCCEEDS(cuMemsetD32_v2(begin, 7, 4));
  std::uint32_t seen = 0;
  SUCCEEDS(cuMemcpyDtoH_v2(&seen, begin + page + 4, 4));
  CHECK(seen == 7);

  CUmemGenericAllocationHandle again = 0;
  SUCCEEDS(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(begin + page + 100)));
  CHECK(again == memory);
  CUmemAllocationProp properties{};
  SUCCEEDS(cuMemGetAllocationPropertiesFromHandle(&properties, again));
  CHECK(properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE);
  int file = 0;
  CHECK(cuMemExportToShareableHandle(&file, again, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) ==
        CUDA_ERROR_NOT_SUPPORTED);
  SUCCEEDS(cuMemRelease(again));
  SUCCEEDS(cuMemRelease(memory));
  SUCCEEDS(cuMemUnmap(begin, page));
  SUCCEEDS(cuMemcpyDtoH_v2(&seen, begin + page, 4));
  CHECK(seen == 7);
  SUCCEEDS(cuMemUnmap(begin + page, page));
  SUCCEEDS(cuMemAddressFree(begin, 2 * page));
}

TEST_CASE("Mapped memory can be asked what it is", "[virtual]") {
  const Session session;
  const CUdeviceptr begin = reserve(page);
  const auto memory = create();
  SUCCEEDS(cuMemMap(begin, page, 0, memory, 0));
  SUCCEEDS(give_access(begin, page));
  unsigned type = 0;
  SUCCEEDS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, begin + 64));
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  unsigned long long flags = 0;
  CUmemLocation location{};
  location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  SUCCEEDS(cuMemGetAccess(&flags, &location, begin));
  CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CHECK(cuMemFree_v2(begin) == CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(cuMemUnmap(begin, page));
  SUCCEEDS(cuMemRelease(memory));
  SUCCEEDS(cuMemAddressFree(begin, page));
}

TEST_CASE("Physical memory runs out and can be made to", "[virtual][fault]") {
  const Session session;
  const CUmemAllocationProp properties = device_memory();
  CUmemGenericAllocationHandle handle = 0;
  const std::size_t rounded = free_bytes() / page * page;
  CHECK(cuMemCreate(&handle, rounded + page, &properties, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemCreate(&handle, page + 1, &properties, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(simcuda_set_fault("alloc_fail:*") == 0);
  CHECK(cuMemCreate(&handle, page, &properties, 0) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("A handle for another process opens the same memory in this one", "[ipc]") {
  Session session;
  const CUdeviceptr x = session.memory(256);
  CUipcMemHandle handle{};
  SUCCEEDS(cuIpcGetMemHandle(&handle, x + 16));
  CUdeviceptr opened = 0;
  SUCCEEDS(cuIpcOpenMemHandle_v2(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  SUCCEEDS(cuMemsetD8_v2(opened, 9, 256));
  unsigned char seen = 0;
  SUCCEEDS(cuMemcpyDtoH_v2(&seen, x + 200, 1));
  CHECK(seen == 9);
  SUCCEEDS(cuIpcCloseMemHandle(opened));
  CHECK(cuIpcCloseMemHandle(opened) == CUDA_ERROR_INVALID_VALUE);
  handle = {};
  CHECK(cuIpcOpenMemHandle_v2(&opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) ==
        CUDA_ERROR_INVALID_HANDLE);
}
