// The map of allocations as the real frontend feeds it: this process has it preloaded, and calls
// the simulated driver as any program would.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "catch.hpp"
#include "intercept/runtime/hooks.hpp"
#include "intercept/runtime/process_runtime.hpp"

using namespace contextune::intercept;

namespace {

/// The memory of this process, once the driver is up and a context is current.
ProcessMemory& memory() {
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  CUcontext context = nullptr;
  REQUIRE(cuCtxGetCurrent(&context) == CUDA_SUCCESS);
  if (context == nullptr) {
    REQUIRE(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
    REQUIRE(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  }
  INFO("LD_PRELOAD has to name libcontextune_preload.so, as it does under ctest");
  REQUIRE(running_runtime() != nullptr);
  return running_runtime()->services().memory;
}

bool knows(const AllocationMap& map, CUdeviceptr begin, std::size_t bytes, AllocationKind kind) {
  const auto found = map.find(begin);
  return found && found->begin == begin && found->bytes == bytes && found->kind == kind;
}

CUdeviceptr address_of(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

}  // namespace

TEST_CASE("Every kind of memory of a program is seen to come and go", "[seen]") {
  const AllocationMap& map = memory().allocations();
  CHECK(memory().changes().incomplete() == nullptr);
  const std::size_t before = map.all().size();

  CUdeviceptr plain = 0;
  CUdeviceptr pitched = 0;
  std::size_t pitch = 0;
  CUdeviceptr managed = 0;
  void* pinned = nullptr;
  void* mapped = nullptr;
  std::vector<char> registered(8192);
  REQUIRE(cuMemAlloc(&plain, 1000) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocPitch(&pitched, &pitch, 100, 7, 4) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocManaged(&managed, 3000, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocHost(&pinned, 4000) == CUDA_SUCCESS);
  REQUIRE(cuMemHostAlloc(&mapped, 5000, CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
  REQUIRE(cuMemHostRegister(registered.data(), registered.size(), 0) == CUDA_SUCCESS);
  CHECK(knows(map, plain, 1000, AllocationKind::Device));
  CHECK(knows(map, pitched, pitch * 7, AllocationKind::Device));
  CHECK(knows(map, managed, 3000, AllocationKind::Managed));
  CHECK(knows(map, address_of(pinned), 4000, AllocationKind::Host));
  CHECK(knows(map, address_of(mapped), 5000, AllocationKind::Host));
  CHECK(knows(map, address_of(registered.data()), 8192, AllocationKind::Host));
  CHECK(map.all().size() == before + 6);

  CUdeviceptr nothing = 0;
  CHECK(cuMemFree(plain + 8) != CUDA_SUCCESS);
  CHECK(cuMemAlloc(&nothing, std::size_t{1} << 60) != CUDA_SUCCESS);
  CHECK(map.all().size() == before + 6);

  REQUIRE(cuMemFree(plain) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(pitched) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(managed) == CUDA_SUCCESS);
  REQUIRE(cuMemFreeHost(pinned) == CUDA_SUCCESS);
  REQUIRE(cuMemFreeHost(mapped) == CUDA_SUCCESS);
  REQUIRE(cuMemHostUnregister(registered.data()) == CUDA_SUCCESS);
  CHECK(map.all().size() == before);
  CHECK(memory().changes().incomplete() == nullptr);
}

TEST_CASE("Stream-ordered memory is seen in the order of the calls", "[seen]") {
  const AllocationMap& map = memory().allocations();
  const std::size_t before = map.all().size();
  CUmemoryPool pool = nullptr;
  REQUIRE(cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  REQUIRE(cuMemAllocAsync(&first, 1000, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuMemAllocFromPoolAsync(&second, 2000, pool, CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
  CHECK(knows(map, first, 1000, AllocationKind::Pool));
  CHECK(knows(map, second, 2000, AllocationKind::Pool));
  CHECK(map.find(second)->context == nullptr);
  REQUIRE(cuMemFreeAsync(first, nullptr) == CUDA_SUCCESS);
  REQUIRE(cuMemFree(second) == CUDA_SUCCESS);
  CHECK(map.all().size() == before);
}

TEST_CASE("A pointer that was looked up is seen as a linked one is", "[seen]") {
  const AllocationMap& map = memory().allocations();
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  REQUIRE(cuGetProcAddress("cuMemAlloc", &found, 12000, 0, &status) == CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  REQUIRE(reinterpret_cast<decltype(&cuMemAlloc)>(found)(&memory, 64) == CUDA_SUCCESS);
  CHECK(knows(map, memory, 64, AllocationKind::Device));
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  auto* const free = reinterpret_cast<decltype(&cuMemFree)>(dlsym(library, "cuMemFree_v2"));
  REQUIRE(free(memory) == CUDA_SUCCESS);
  CHECK_FALSE(map.find(memory).has_value());
}

TEST_CASE("A variable that the program asks for is seen until its module is unloaded", "[seen]") {
  const AllocationMap& map = memory().allocations();
  CUmodule module = nullptr;
  REQUIRE(cuModuleLoadData(&module, "simcuda image 1\nglobal table 256\n") == CUDA_SUCCESS);
  CUdeviceptr with_size = 0;
  CUdeviceptr without_size = 0;
  std::size_t bytes = 0;
  REQUIRE(cuModuleGetGlobal(&without_size, nullptr, module, "table") == CUDA_SUCCESS);
  CHECK(knows(map, without_size, 256, AllocationKind::Global));
  REQUIRE(cuModuleGetGlobal(&with_size, &bytes, module, "table") == CUDA_SUCCESS);
  CHECK(with_size == without_size);
  CHECK(knows(map, with_size, 256, AllocationKind::Global));
  REQUIRE(cuModuleUnload(module) == CUDA_SUCCESS);
  CHECK_FALSE(map.find(with_size).has_value());
}

TEST_CASE("Memory ends with its context, and with the last holder of the primary one", "[seen]") {
  const AllocationMap& map = memory().allocations();
  CUcontext primary = nullptr;
  REQUIRE(cuCtxGetCurrent(&primary) == CUDA_SUCCESS);
  CUdeviceptr of_primary = 0;
  REQUIRE(cuMemAlloc(&of_primary, 100) == CUDA_SUCCESS);

  CUcontext other = nullptr;
  const auto create = reinterpret_cast<CUresult (*)(CUcontext*, unsigned, CUdevice)>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuCtxCreate_v2"));
  REQUIRE(create(&other, 0, 0) == CUDA_SUCCESS);
  CUdeviceptr of_other = 0;
  REQUIRE(cuMemAlloc(&of_other, 100) == CUDA_SUCCESS);
  CHECK(map.find(of_other)->context == other);
  REQUIRE(cuCtxDestroy(other) == CUDA_SUCCESS);
  CHECK_FALSE(map.find(of_other).has_value());

  REQUIRE(cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  REQUIRE(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  CHECK(map.find(of_primary).has_value());
  REQUIRE(cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  CHECK_FALSE(map.find(of_primary).has_value());
  CHECK(memory().changes().incomplete() == nullptr);
  REQUIRE(cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
}
