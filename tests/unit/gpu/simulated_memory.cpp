#include "simulated_memory.hpp"

#include <dlfcn.h>

#include <algorithm>

#include "catch.hpp"

using namespace contextune::gpu;

SimulatedDevice& SimulatedDevice::get() {
  static auto* device = [] {
    auto* made = new SimulatedDevice;
    void* library = dlopen(CONTEXTUNE_SIMCUDA, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    made->driver = load_driver(library, &dlsym);
    const Driver& driver = made->driver;
    check(driver, driver.cuInit(0), "cuInit");
    check(driver, driver.cuDevicePrimaryCtxRetain(&made->context, 0), "cuDevicePrimaryCtxRetain");
    check(driver, driver.cuCtxSetCurrent(made->context), "cuCtxSetCurrent");
    return made;
  }();
  return *device;
}

std::size_t SimulatedDevice::free_bytes() const {
  std::size_t free = 0;
  std::size_t total = 0;
  check(driver, driver.cuMemGetInfo(&free, &total), "cuMemGetInfo");
  return free;
}

SimulatedMemory::SimulatedMemory(std::size_t bytes, std::uint32_t seed) {
  const Driver& driver = SimulatedDevice::get().driver;
  range_.bytes = bytes;
  check(driver, driver.cuMemAlloc(&range_.begin, bytes), "cuMemAlloc");
  std::mt19937 random(seed);
  std::generate(data(), data() + bytes, [&] { return static_cast<unsigned char>(random()); });
}

SimulatedMemory::~SimulatedMemory() {
  (void)SimulatedDevice::get().driver.cuMemFree(range_.begin);
}
