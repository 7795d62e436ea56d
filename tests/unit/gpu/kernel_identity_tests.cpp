#include "catch.hpp"

#include "fake_driver.hpp"
#include "gpu/image/kernel_identity.hpp"
#include "gpu/image/launch_limits.hpp"

using namespace contextune;
using namespace contextune::gpu;

namespace {

CUfunction handle(std::uintptr_t id) {
  return reinterpret_cast<CUfunction>(0x1000 + id);
}

Driver driver_with_kernels() {
  Driver driver = FakeDriver::make();
  auto& fake = FakeDriver::get();
  fake.functions[handle(1)] = {"_Z4tileILi32ELi8EEvPfi", {{0, 8}, {8, 4}}, 40, 1024};
  fake.functions[handle(2)] = {"saxpy", {{0, 8}, {8, 8}, {16, 4}, {20, 4}}, 20, 0};
  fake.kernels[handle(3)] = {"_Z4tileILi32ELi8EEvPfi", {{0, 8}, {8, 4}}, 40, 1024};
  fake.kernels[handle(4)] = {"_Z4tileILi16ELi16EEvPfi", {{0, 8}, {8, 4}}, 40, 1024};
  return driver;
}

}  // namespace

TEST_CASE("A function and a kernel in disguise are told apart", "[identity]") {
  const Driver driver = driver_with_kernels();
  std::string why;
  const auto function = identify(driver, handle(1), why);
  REQUIRE(function);
  CHECK(function->kind == HandleKind::Function);
  CHECK(function->name == "tile<32, 8>");
  CHECK(function->symbol == "_Z4tileILi32ELi8EEvPfi");
  CHECK(function->registers == 40);
  CHECK(function->static_shared_bytes == 1024);
  REQUIRE(function->parameters.size() == 2);
  CHECK(function->parameters[1].offset_bytes == 8);
  CHECK(function->module != nullptr);

  const auto kernel = identify(driver, handle(3), why);
  REQUIRE(kernel);
  CHECK(kernel->kind == HandleKind::Kernel);
  CHECK(kernel->library != nullptr);
  CHECK(kernel->parameters.size() == 2);
  CHECK(kernel->registers == 40);
  CHECK(kernel->code_hash == function->code_hash);
}

TEST_CASE("The code hash changes with the code and not with what a program sets", "[identity]") {
  const Driver driver = driver_with_kernels();
  std::string why;
  const auto before = identify(driver, handle(1), why)->code_hash;
  CHECK(before != identify(driver, handle(2), why)->code_hash);
  FakeDriver::get().max_dynamic_shared = 100 << 10;
  CHECK(before == identify(driver, handle(1), why)->code_hash);
  FakeDriver::get().functions[handle(1)].registers = 41;
  CHECK(before != identify(driver, handle(1), why)->code_hash);
}

TEST_CASE("An unknown handle is refused with a reason", "[identity]") {
  Driver driver = driver_with_kernels();
  std::string why;
  CHECK_FALSE(identify(driver, handle(99), why));
  CHECK(why == "the driver does not know the kernel handle of this launch");
  driver.cuFuncGetName = nullptr;
  driver.cuKernelGetName = nullptr;
  CHECK_FALSE(identify(driver, handle(1), why));
  CHECK(why.find("older") != std::string::npos);
}

TEST_CASE("Another function of the same module is found by symbol and by name", "[identity]") {
  const Driver driver = driver_with_kernels();
  std::string why;
  const auto function = identify(driver, handle(1), why);
  CHECK(find_function(driver, *function, "saxpy") == handle(2));
  CHECK(find_function(driver, *function, "tile<32,8>") == handle(1));
  CHECK(find_function(driver, *function, "tile<16, 16>") ==
        nullptr);  // of the library, not of the module
  CHECK(function_names(driver, *function) == std::vector<std::string>{"saxpy", "tile<32, 8>"});
  const auto kernel = identify(driver, handle(3), why);
  CHECK(find_function(driver, *kernel, "tile<16, 16>") == handle(4));
  CHECK(find_function(driver, *kernel, "_Z4tileILi16ELi16EEvPfi") == handle(4));
  CHECK(find_function(driver, *kernel, "saxpy") == nullptr);
}

TEST_CASE("A launch that fitted in one wave must still fit", "[limits]") {
  const Driver driver = driver_with_kernels();
  std::string why;
  const auto kernel = identify(driver, handle(2), why);
  DeviceFacts device;
  device.num_sms = 10;
  LaunchSize written;
  written.grid = {20, 1, 1};
  written.block = {256, 1, 1};
  LaunchSize crowded = written;
  crowded.shared_bytes = 150'000;  // one block an SM
  CHECK(fits_in_one_wave(driver, device, *kernel, written));
  CHECK_FALSE(keeps_co_residency(driver, device, *kernel, written, crowded, false));
  written.grid = crowded.grid = {21, 1, 1};
  CHECK(keeps_co_residency(driver, device, *kernel, written, crowded, false));
  CHECK_FALSE(keeps_co_residency(driver, device, *kernel, written, crowded, true));
  LaunchSize huge;
  huge.grid = {0xffffffff, 0xffff, 0xffff};
  CHECK_FALSE(fits_in_one_wave(driver, device, *kernel, huge));
}

TEST_CASE("A context with some of the SMs has room for less", "[limits]") {
  Driver driver = driver_with_kernels();
  std::string why;
  const auto kernel = identify(driver, handle(2), why);
  DeviceFacts device;
  device.name = "whole";
  device.num_sms = 132;
  LaunchSize launch;
  launch.grid = {132, 1, 1};
  launch.block = {256, 1, 1};
  const auto most = [&](CUstream on) {
    return resident_blocks(driver, facts_on(driver, device, on), *kernel, launch, {0, 0, 0});
  };
  CHECK(most(nullptr) == 264);
  driver.cuCtxGetDevResource = [](CUcontext context, CUdevResource* resource, CUdevResourceType) {
    resource->sm.smCount = context == reinterpret_cast<CUcontext>(0x20) ? 16 : 132;
    return CUDA_SUCCESS;
  };
  CHECK(most(nullptr) == 264);
  CHECK(facts_on(driver, device, nullptr).name == "whole");
  FakeDriver::get().contexts[stream(1)] = reinterpret_cast<CUcontext>(0x20);
  CHECK(most(stream(1)) == 32);
  driver.cuCtxGetExecAffinity = [](CUexecAffinityParam* affinity, CUexecAffinityType) {
    affinity->param.smCount.val = 8;
    return CUDA_SUCCESS;
  };
  CHECK(most(nullptr) == 16);
  driver.cuStreamGetGreenCtx = [](CUstream of, CUgreenCtx* green) {
    *green = of == stream(2) ? reinterpret_cast<CUgreenCtx>(0x30) : nullptr;
    return CUDA_SUCCESS;
  };
  driver.cuGreenCtxGetDevResource = [](CUgreenCtx, CUdevResource* resource, CUdevResourceType) {
    resource->sm.smCount = 4;
    return CUDA_SUCCESS;
  };
  CHECK(most(stream(2)) == 8);
  CHECK(most(stream(3)) == 16);
}

TEST_CASE("Dynamic shared memory is raised and never lowered", "[limits]") {
  const Driver driver = driver_with_kernels();
  std::string why;
  auto kernel = identify(driver, handle(1), why);
  DeviceFacts device;
  device.max_shared_bytes = 227 << 10;
  CHECK(max_dynamic_shared_bytes(device, *kernel) == (227 << 10) - 1024);
  CHECK(allow_dynamic_shared(driver, *kernel, 1000));
  CHECK(FakeDriver::get().max_dynamic_shared == 48 << 10);
  CHECK(allow_dynamic_shared(driver, *kernel, 100 << 10));
  CHECK(FakeDriver::get().max_dynamic_shared == 100 << 10);
  CHECK_FALSE(allow_dynamic_shared(driver, *kernel, 300 << 10));
  CHECK(FakeDriver::get().max_dynamic_shared == 100 << 10);
}

TEST_CASE("Carve-outs that hold no block are left out", "[limits]") {
  const Driver driver = driver_with_kernels();
  std::string why;
  const auto kernel = identify(driver, handle(1), why);
  DeviceFacts device;
  CHECK(carveout_percentages(device, *kernel, 0).empty());
  device.max_shared_bytes_per_sm = 228 << 10;
  CHECK(carveout_percentages(device, *kernel, 0) == std::vector<int>{25, 50, 75, 100});
  CHECK(carveout_percentages(device, *kernel, 120 << 10) == std::vector<int>{75, 100});
  CHECK_FALSE(has_clusters(*kernel, {0, 0, 0}));
  CHECK(has_clusters(*kernel, {2, 1, 1}));
}
