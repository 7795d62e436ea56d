// Work in a region that waits for what the host does after it.
#include <unistd.h>

#include <simcuda/simcuda.h>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "scenarios.hpp"

namespace awkward {

int value_of_the_host(Device& device) {
  const CUdeviceptr memory = new_memory();
  const CUstream stream = new_stream();
  CUdeviceptr address = 0;
  std::uint32_t* const word = new_host_word(address);
  const std::size_t free_before = free_bytes();
  for (std::uint32_t visit = 1; visit <= 3; ++visit) {
    {
      const Range range(region);
      check(cuStreamWaitValue32(stream, address, visit, CU_STREAM_WAIT_VALUE_EQ),
            "cuStreamWaitValue32");
      device.launch(memory, stream);
    }
    std::atomic_ref(*word).store(visit);
    print_memory("after a visit", memory);
  }
  std::printf("%zu bytes more are taken\n", free_before - free_bytes());
  return 0;
}

int function_of_the_host(Device& device) {
  static std::atomic<bool> through = false;
  const CUdeviceptr memory = new_memory();
  const CUstream stream = new_stream();
  {
    const Range range(region);
    device.launch(memory, stream);
    check(cuLaunchHostFunc(
              stream, [](void*) { through.wait(false); }, nullptr),
          "cuLaunchHostFunc");
    device.launch(memory, stream);
  }
  through = true;
  through.notify_one();
  print_memory("memory", memory);
  return 0;
}

int allocations_while_the_gpu_waits(Device& device) {
  const CUdeviceptr memory = new_memory();
  const CUstream stream = new_stream();
  CUdeviceptr address = 0;
  std::uint32_t* const word = new_host_word(address);
  {
    const Range range(region);
    check(cuStreamWaitValue32(stream, address, 1, CU_STREAM_WAIT_VALUE_EQ), "cuStreamWaitValue32");
    device.launch(memory, stream);
  }
  // So many that whoever waits before each, for the GPU, does not end.
  for (int i = 0; i < 1000; ++i) {
    CUdeviceptr more = 0;
    check(cuMemAlloc(&more, 4096), "cuMemAlloc");
  }
  std::puts("all is allocated");
  std::atomic_ref(*word).store(1);
  print_memory("memory", memory);
  return 0;
}

int large_allocation_while_the_gpu_works(Device& device) {
  CUdeviceptr memory = 0;
  check(cuMemAlloc(&memory, 350 * mebibyte), "cuMemAlloc");
  take_memory_but(640 * mebibyte);
  const CUstream stream = new_stream();
  CUdeviceptr address = 0;
  std::uint32_t* const word = new_host_word(address);
  std::thread rest_of_the_work;
  {
    const Range range(region);
    check(cuStreamWaitValue32(stream, address, 1, CU_STREAM_WAIT_VALUE_EQ), "cuStreamWaitValue32");
    device.launch(memory, stream);
    // Longer than copies are waited for that nobody needs to be gone.
    rest_of_the_work = std::thread([word] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      std::atomic_ref(*word).store(1);
    });
    CUdeviceptr wanted = 0;
    check(cuMemAlloc(&wanted, 500 * mebibyte), "cuMemAlloc in the region");
  }
  rest_of_the_work.join();
  print_memory("memory", memory);
  return 0;
}

int end_while_the_gpu_is_at_work(Device& device) {
  const CUdeviceptr memory = new_memory();
  simcuda_set_fault("hang:advance");
  {
    const Range range(region);
    device.launch(memory);
  }
  std::puts("the kernel is still at work");
  // _exit waits for nobody: the log's thread writes meanwhile, on a machine that may be busy.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  _exit(4);
}

}  // namespace awkward
