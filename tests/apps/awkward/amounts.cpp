// Much of something: visits, memory, copies, regions in regions.
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include "moments.hpp"
#include "scenarios.hpp"

namespace {

std::atomic<bool> no_thread_left{false};

}  // namespace

/// libc's, in a process that may have so many threads and no more.
extern "C" [[gnu::visibility("default")]] int pthread_create(pthread_t* thread,
                                                             const pthread_attr_t* attributes,
                                                             void* (*run)(void*), void* argument) {
  static const auto real =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return no_thread_left ? EAGAIN : real(thread, attributes, run, argument);
}

namespace awkward {

int memory_over_visits(Device& device) {
  const CUdeviceptr memory = new_memory();
  const std::size_t free_before = free_bytes();
  for (int visit = 0; visit < 10; ++visit) {
    {
      const Range range(region);
      device.launch(memory);
      // As a program that is warming up.
      if (visit < 5) {
        CUdeviceptr temporary = 0;
        check(cuMemAlloc(&temporary, num_bytes), "cuMemAlloc");
        check(cuMemFree(temporary), "cuMemFree");
      }
    }
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    std::printf("%zu bytes more are taken\n", free_before - free_bytes());
  }
  print_memory("memory", memory);
  return 0;
}

int memory_almost_full(Device& device) {
  CUdeviceptr memory = 0;
  check(cuMemAlloc(&memory, 350 * mebibyte), "cuMemAlloc");
  take_memory_but(640 * mebibyte);
  {
    const Range range(region);
    device.launch(memory);
    CUdeviceptr wanted = 0;
    check(cuMemAlloc(&wanted, 310 * mebibyte), "cuMemAlloc in the region");
  }
  print_memory("memory", memory);
  return 0;
}

int many_copies(Device& device) {
  const CUdeviceptr memory = new_memory();
  const CUstream stream = new_stream();
  {
    const Range range(region);
    for (std::uint32_t i = 0; i < 60'000; ++i) {
      check(cuMemcpyHtoDAsync(memory + i % 100 * sizeof i, &i, sizeof i, stream),
            "cuMemcpyHtoDAsync");
    }
    device.launch(memory, stream);
  }
  print_memory("memory", memory);
  return 0;
}

int much_memory_of_the_host(Device& device) {
  const CUdeviceptr memory = new_memory();
  void* pinned = nullptr;
  check(cuMemHostAlloc(&pinned, 512 * mebibyte, 0), "cuMemHostAlloc");
  const auto taken_bytes = [] {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const std::size_t before = taken_bytes();
  {
    const Range range(region);
    device.launch(memory);
  }
  print_memory("memory", memory);
  std::printf("little more is taken: %d\n", taken_bytes() < before + 2 * mebibyte);
  return 0;
}

int nested_regions(Device& device) {
  const CUdeviceptr memory = new_memory();
  const CUdeviceptr elsewhere = new_memory();
  {
    const Range outer(region);
    device.launch(memory);
    const Range middle(other_region);
    device.launch(elsewhere);
    const Range inner(region);
    device.launch(memory);
  }
  print_memory("memory", memory);
  print_memory("elsewhere", elsewhere);
  return 0;
}

int no_thread_left_while_repeated(Device& device) {
  const CUdeviceptr memory = new_memory();
  let_results_drift();
  Moments::get().when_repeated([] { no_thread_left = true; });
  {
    const Range range(region);
    device.launch(memory);
  }
  Moments::get().unless_repeated();
  no_thread_left = false;
  print_memory("memory", memory);
  return 0;
}

}  // namespace awkward
