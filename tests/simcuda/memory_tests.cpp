#include <cstdint>

#include "session.hpp"

TEST_CASE("Copies move what they are told", "[memory]") {
  Session session;
  const CUdeviceptr x = session.memory(64);
  const CUdeviceptr y = session.memory(64);
  const std::vector<float> values{1, 2, 3, 4};
  SUCCEEDS(cuMemcpyHtoD_v2(x, values.data(), 16));
  SUCCEEDS(cuMemcpyDtoD_v2(y, x, 16));
  CHECK(session.floats(y, 4) == values);
  // Past the end of the allocation.
  CHECK(cuMemcpyHtoD_v2(x + 56, values.data(), 16) == CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(cuMemsetD16_v2(x, 0x0102, 4));
  std::vector<std::uint16_t> halves(4);
  SUCCEEDS(cuMemcpyDtoH_v2(halves.data(), x, 8));
  CHECK(halves == std::vector<std::uint16_t>(4, 0x0102));
}

TEST_CASE("A two-dimensional copy keeps its pitches apart", "[memory]") {
  Session session;
  CUdeviceptr pitched = 0;
  std::size_t pitch = 0;
  SUCCEEDS(cuMemAllocPitch_v2(&pitched, &pitch, 12, 3, 4));
  CHECK(pitch >= 12);
  const std::vector<float> rows{1, 2, 3, 4, 5, 6, 7, 8, 9};
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = rows.data();
  copy.srcPitch = 12;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = pitched;
  copy.dstPitch = pitch;
  copy.WidthInBytes = 12;
  copy.Height = 3;
  SUCCEEDS(cuMemcpy2D_v2(&copy));
  CHECK(session.floats(pitched + 2 * pitch, 3) == std::vector<float>{7, 8, 9});
  SUCCEEDS(cuMemFree_v2(pitched));
}

TEST_CASE("Memory is counted and runs out", "[memory]") {
  Session session;
  std::size_t before = 0;
  std::size_t total = 0;
  SUCCEEDS(cuMemGetInfo_v2(&before, &total));
  CUdeviceptr memory = 0;
  SUCCEEDS(cuMemAlloc_v2(&memory, 1 << 20));
  std::size_t after = 0;
  SUCCEEDS(cuMemGetInfo_v2(&after, &total));
  CHECK(before - after == std::size_t{1} << 20);
  CUdeviceptr too_much = 0;
  CHECK(cuMemAlloc_v2(&too_much, total) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemAlloc_v2(&too_much, 0) == CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(cuMemFree_v2(memory));
  CHECK(cuMemFree_v2(memory) == CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(cuMemFree_v2(0));
}

TEST_CASE("Pointers can be asked what they are", "[memory]") {
  Session session;
  const CUdeviceptr x = session.memory(4096);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  SUCCEEDS(cuMemGetAddressRange_v2(&base, &bytes, x + 100));
  CHECK(base == x);
  CHECK(bytes == 4096);
  unsigned type = 0;
  SUCCEEDS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, x));
  CHECK(type == CU_MEMORYTYPE_DEVICE);
  void* host = nullptr;
  SUCCEEDS(cuMemHostAlloc(&host, 64, 0));
  SUCCEEDS(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 reinterpret_cast<CUdeviceptr>(host)));
  CHECK(type == CU_MEMORYTYPE_HOST);
  SUCCEEDS(cuMemFreeHost(host));
  int local = 0;
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                              reinterpret_cast<CUdeviceptr>(&local)) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Several devices have memory, clocks and contexts of their own", "[memory][devices]") {
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  int count = 0;
  SUCCEEDS(cuDeviceGetCount(&count));
  REQUIRE(count == 2);  // SIMCUDA_DEVICES, see CMakeLists.txt
  CUdevice device = 0;
  CHECK(cuDeviceGet(&device, 2) == CUDA_ERROR_INVALID_DEVICE);
  Session first(0);
  const CUdeviceptr here = first.memory(64);
  {
    Session second(1);
    const CUdeviceptr there = second.memory(64);
    SUCCEEDS(cuMemsetD32_v2(there, 9, 16));
    SUCCEEDS(cuMemcpyPeer(here, first.context, there, second.context, 64));
    CHECK(second.launch(second.function("empty"), 1, 32) == CUDA_SUCCESS);
    int ordinal = 0;
    SUCCEEDS(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there));
    CHECK(ordinal == 1);
  }
  SUCCEEDS(cuCtxSetCurrent(first.context));
  std::vector<unsigned> values(16);
  SUCCEEDS(cuMemcpyDtoH_v2(values.data(), here, 64));
  CHECK(values == std::vector<unsigned>(16, 9));
}

TEST_CASE("Contexts are a stack of each thread", "[memory][context]") {
  Session session;
  CUcontext current = nullptr;
  SUCCEEDS(cuCtxPushCurrent_v2(session.context));
  SUCCEEDS(cuCtxGetCurrent(&current));
  CHECK(current == session.context);
  SUCCEEDS(cuCtxPopCurrent_v2(&current));
  CHECK(current == session.context);
  SUCCEEDS(cuCtxSetCurrent(nullptr));
  CUdeviceptr memory = 0;
  CHECK(cuMemAlloc_v2(&memory, 16) == CUDA_ERROR_INVALID_CONTEXT);
  SUCCEEDS(cuCtxSetCurrent(session.context));
  CHECK(cuCtxSetCurrent(reinterpret_cast<CUcontext>(&memory)) == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("A texture object tells what it was made from until it is destroyed", "[memory]") {
  Session session;
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {session.memory(256), CU_AD_FORMAT_FLOAT, 1, 256};
  const CUDA_TEXTURE_DESC description{};
  CUtexObject texture = 0;
  SUCCEEDS(cuTexObjectCreate(&texture, &resource, &description, nullptr));
  CUDA_RESOURCE_DESC told{};
  SUCCEEDS(cuTexObjectGetResourceDesc(&told, texture));
  CHECK(told.res.linear.devPtr == resource.res.linear.devPtr);
  SUCCEEDS(cuTexObjectDestroy(texture));
  CHECK(cuTexObjectGetResourceDesc(&told, texture) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuTexObjectDestroy(texture) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Arrays keep what copies put into them", "[memory][array]") {
  const Session session;
  const CUDA_ARRAY_DESCRIPTOR shape{3, 2, CU_AD_FORMAT_FLOAT, 1};
  CUarray array = nullptr;
  SUCCEEDS(cuArrayCreate_v2(&array, &shape));
  const std::vector<float> rows{1, 2, 3, 0, 4, 5, 6, 0};
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = rows.data();
  copy.srcPitch = 16;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.WidthInBytes = 12;
  copy.Height = 2;
  SUCCEEDS(cuMemcpy2D_v2(&copy));
  std::vector<float> seen(6);
  SUCCEEDS(cuMemcpyAtoH_v2(seen.data(), array, 0, 24));
  CHECK(seen == std::vector<float>{1, 2, 3, 4, 5, 6});
  copy.WidthInBytes = 16;
  CHECK(cuMemcpy2D_v2(&copy) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemcpyAtoH_v2(seen.data(), array, 4, 24) == CUDA_ERROR_INVALID_VALUE);
  CUDA_ARRAY_DESCRIPTOR told{};
  SUCCEEDS(cuArrayGetDescriptor_v2(&told, array));
  CHECK(told.Width == 3);
  CHECK(told.Height == 2);
  SUCCEEDS(cuArrayDestroy(array));
  CHECK(cuArrayDestroy(array) == CUDA_ERROR_INVALID_HANDLE);
}
