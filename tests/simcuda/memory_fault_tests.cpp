// Faults of copies and allocations.
#include <chrono>
#include <cstdint>

#include "session.hpp"

namespace {

void set_fault(const char* text) {
  REQUIRE(simcuda_set_fault(text) == 0);
}

}  // namespace

TEST_CASE("A copy can be made to fail by its direction and size", "[fault][memory]") {
  Session session;
  const CUdeviceptr x = session.memory(64);
  const CUdeviceptr y = session.memory(64);
  std::vector<float> host(16, 5.0F);
  set_fault("copy_fail:HtoD:bytes=32,error=719");
  CHECK(cuMemcpyHtoD_v2(x, host.data(), 32) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(session.floats(x, 1)[0] == 0.0F);
  SUCCEEDS(cuMemcpyHtoD_v2(x, host.data(), 64));
  SUCCEEDS(cuMemcpyDtoD_v2(y, x, 32));
  CHECK(session.floats(y, 1)[0] == 5.0F);
}

TEST_CASE("Faults of copies are counted over copies and memsets", "[fault][memory]") {
  Session session;
  const CUdeviceptr x = session.memory(64);
  set_fault("copy_fail:*:after=2,times=1");
  SUCCEEDS(cuMemsetD8_v2(x, 1, 64));
  SUCCEEDS(cuMemcpyDtoD_v2(x, x + 32, 32));
  CHECK(cuMemsetD32Async(x, 7, 16, nullptr) == CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(cuMemsetD8_v2(x, 2, 64));
  set_fault("copy_fail:set");
  CHECK(cuMemsetD8_v2(x, 1, 64) == CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(cuMemcpyDtoD_v2(x, x + 32, 32));
}

TEST_CASE("The caller of a late copy comes back late", "[fault][memory]") {
  Session session;
  const CUdeviceptr x = session.memory(64);
  set_fault("copy_late:DtoH:bytes=32,times=1;copy_late:HtoD;copy_wrong:DtoH:times=1");
  std::vector<std::uint32_t> seen(16);
  const auto begin = std::chrono::steady_clock::now();
  SUCCEEDS(cuMemcpyDtoH_v2(seen.data(), x, 32));
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(300));
  CHECK(seen[0] == 1U);  // other faults count for themselves
  SUCCEEDS(cuMemcpyAsync(x, reinterpret_cast<CUdeviceptr>(seen.data()), 32, nullptr));
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(600));
}

TEST_CASE("A wrong copy differs in one bit, whenever it runs", "[fault][memory]") {
  for (const int deferred : {0, 1}) {
    simcuda_set_order(deferred, 5);
    Session session;
    const CUdeviceptr x = session.memory(64);
    const std::vector<std::uint32_t> source(16, 0x10U);
    set_fault("copy_wrong:HtoD:times=1;copy_wrong:set:min_bytes=64,times=1");
    SUCCEEDS(cuMemcpyHtoDAsync_v2(x, source.data(), 64, nullptr));
    std::vector<std::uint32_t> seen(16);
    SUCCEEDS(cuMemcpyDtoH_v2(seen.data(), x, 64));
    CHECK(seen[0] == 0x11U);
    CHECK(std::vector<std::uint32_t>(seen.begin() + 1, seen.end()) ==
          std::vector<std::uint32_t>(15, 0x10U));
    SUCCEEDS(cuMemsetD8_v2(x, 0, 32));
    SUCCEEDS(cuMemsetD32_v2(x, 4, 16));
    SUCCEEDS(cuMemcpyDtoH_v2(seen.data(), x, 64));
    CHECK(seen[0] == 5U);
    CHECK(seen[1] == 4U);
    SUCCEEDS(cuMemcpyHtoD_v2(x, source.data(), 64));
    SUCCEEDS(cuMemcpyDtoH_v2(seen.data(), x, 64));
    CHECK(seen == source);
    simcuda_set_order(0, 0);
  }
}

TEST_CASE("Memory runs out when a test says so", "[fault][memory]") {
  Session session;
  CUdeviceptr device = 0;
  void* host = nullptr;
  set_fault("alloc_fail:*:min_bytes=1024,after=1;host_alloc_fail:*:times=1,error=999");
  SUCCEEDS(cuMemAlloc_v2(&device, 4096));
  SUCCEEDS(cuMemFree_v2(device));
  CHECK(cuMemAlloc_v2(&device, 4096) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemAllocAsync(&device, 1024, nullptr) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemAllocManaged(&device, 1024, CU_MEM_ATTACH_GLOBAL) == CUDA_ERROR_OUT_OF_MEMORY);
  SUCCEEDS(cuMemAlloc_v2(&device, 512));
  SUCCEEDS(cuMemFree_v2(device));
  CHECK(cuMemHostAlloc(&host, 64, 0) == CUDA_ERROR_UNKNOWN);
  SUCCEEDS(cuMemAllocHost_v2(&host, 64));
  SUCCEEDS(cuMemFreeHost(host));
}

TEST_CASE("A fault of a copy must name a direction and one of an allocation nothing",
          "[fault][memory]") {
  CHECK(simcuda_set_fault("copy_fail:sideways") == -1);
  CHECK(simcuda_set_fault("alloc_fail:gemm") == -1);
  CHECK(simcuda_set_fault("alloc_fail") == -1);
  CHECK(simcuda_set_fault("copy_wrong:DtoH:min_bytes=1") == 0);
  CHECK(simcuda_set_fault("") == 0);
}
