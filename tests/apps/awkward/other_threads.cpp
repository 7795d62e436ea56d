// What other threads do while a region is prepared, recorded and repeated.
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <barrier>
#include <csignal>
#include <initializer_list>
#include <thread>
#include <vector>

#include "moments.hpp"
#include "scenarios.hpp"

namespace awkward {
namespace {

constexpr std::uint32_t uploaded = 77;

void upload(CUdeviceptr memory) {
  const std::vector<std::uint32_t> words(num_words, uploaded);
  check(cuMemcpyHtoD(memory, words.data(), num_bytes), "cuMemcpyHtoD");
}

void visit(const Device& device, std::initializer_list<CUdeviceptr> written, CUstream stream) {
  const Range range(region);
  for (const CUdeviceptr memory : written) device.launch(memory, stream);
}

}  // namespace

int allocation_while_prepared(Device& device) {
  const CUdeviceptr memory = new_memory();
  const CUstream stream = new_stream();
  CUdeviceptr address = 0;
  std::uint32_t* const word = new_host_word(address);
  CUdeviceptr late = 0;
  std::atomic<bool> entered = false;
  // Whoever prepares a region waits for the GPU first, and that waits for us.
  check(cuStreamWaitValue32(stream, address, 1, CU_STREAM_WAIT_VALUE_EQ), "cuStreamWaitValue32");
  Helper helper(device.context, [&] {
    wait_until([&] { return entered || has_thread("contextune-idle"); });
    late = new_memory();
    std::atomic_ref(*word).store(1);
  });
  {
    helper.begin();
    const Range range(region);
    entered = true;
    helper.join();
    device.launch(memory, stream);
    device.launch(late, stream);
  }
  print_memory("memory", memory);
  print_memory("late", late);
  visit(device, {memory, late}, stream);
  print_memory("memory", memory);
  print_memory("late", late);
  return 0;
}

/// Whoever prepares a region reads all memory of the program, which comes and goes meanwhile.
int memory_freed_while_prepared(Device& device) {
  constexpr std::size_t many_bytes = std::size_t{64} << 20U;
  const CUdeviceptr memory = new_memory();
  std::atomic<bool> over = false;
  std::thread helper([&] {
    check(cuCtxSetCurrent(device.context), "cuCtxSetCurrent");
    while (!over) {
      CUdeviceptr passing = 0;
      check(cuMemAlloc(&passing, many_bytes), "cuMemAlloc");
      check(cuMemFree(passing), "cuMemFree");
    }
  });
  for (int i = 0; i < 30; ++i) visit(device, {memory}, nullptr);
  over = true;
  helper.join();
  print_memory("memory", memory);
  return 0;
}

int allocation_while_recorded(Device& device) {
  const CUdeviceptr memory = new_memory();
  CUdeviceptr late = 0;
  Helper helper(device.context, [&] { check(cuMemAlloc(&late, num_bytes), "cuMemAlloc"); });
  {
    const Range range(region);
    device.launch(memory);
    helper.begin();
    helper.join();
    check(cuMemsetD32Async(late, 1, num_words, nullptr), "cuMemsetD32Async");
    device.launch(late);
  }
  print_memory("memory", memory);
  print_memory("late", late);
  visit(device, {memory, late}, nullptr);
  print_memory("memory", memory);
  print_memory("late", late);
  return 0;
}

int two_threads_in_a_region(Device& device) {
  const CUdeviceptr of_main = new_memory();
  const CUdeviceptr of_helper = new_memory();
  std::barrier both(2);
  const auto work = [&](CUdeviceptr memory, CUstream stream) {
    const Range range(region);
    both.arrive_and_wait();
    for (int i = 0; i < 3; ++i) device.launch(memory, stream);
    both.arrive_and_wait();
  };
  Helper helper(device.context, [&] { work(of_helper, new_stream()); });
  helper.begin();
  work(of_main, new_stream());
  helper.join();
  print_memory("of the main thread", of_main);
  print_memory("of the helper", of_helper);
  return 0;
}

int other_region_while_repeated(Device& device) {
  const CUdeviceptr memory = new_memory();
  const CUdeviceptr elsewhere = new_memory();
  const CUdeviceptr uploads = new_memory();
  const CUstream stream = new_stream();
  Helper visitor(device.context, [&] {
    const Range range(other_region);
    device.launch(elsewhere, stream);
  });
  Helper uploader(device.context, [&] { upload(uploads); });
  Moments::get().when_repeated([&] {
    visitor.begin();
    uploader.begin();
  });
  visit(device, {memory}, nullptr);
  Moments::get().unless_repeated();
  visitor.join();
  uploader.join();
  print_memory("memory", memory);
  print_memory("elsewhere", elsewhere);
  print_memory("uploads", uploads);
  return 0;
}

int upload_while_repeated(Device& device) {
  const CUdeviceptr memory = new_memory();
  const CUdeviceptr uploads = new_memory();
  Helper helper(device.context, [&] {
    upload(uploads);
    upload(memory);
  });
  Moments::get().when_repeated([&] { helper.begin(); });
  visit(device, {memory}, nullptr);
  Moments::get().unless_repeated();
  helper.join();
  print_memory("memory", memory);
  print_memory("uploads", uploads);
  return 0;
}

namespace {

std::atomic<bool> held = false;
std::atomic<bool> released = false;

/// An upload that the system keeps from going on, from the middle of a launch in the region or
/// before it, until the region is repeated.
int upload_under_way(Device& device, bool begins_in_region) {
  struct sigaction action {};
  action.sa_handler = [](int) {
    held = true;
    wait_until([] { return released.load(); });
  };
  sigaction(SIGUSR1, &action, nullptr);
  const CUdeviceptr memory = new_memory();
  const CUdeviceptr uploads = new_memory();
  Helper helper(device.context, [&] { upload(uploads); });
  // The driver is locked by the launch, so the upload waits inside of it.
  Moments::get().in_next_launch([&] {
    helper.begin();
    pthread_kill(helper.thread().native_handle(), SIGUSR1);
    wait_until([] { return held.load(); });
  });
  if (!begins_in_region) device.launch(memory);
  Moments::get().when_repeated([] { released = true; });
  visit(device, {memory}, nullptr);
  Moments::get().unless_repeated();
  helper.join();
  print_memory("memory", memory);
  print_memory("uploads", uploads);
  return 0;
}

}  // namespace

int upload_from_within_the_region(Device& device) {
  return upload_under_way(device, true);
}

int upload_from_before_the_region(Device& device) {
  return upload_under_way(device, false);
}

int threads_end_in_regions(Device& device) {
  const CUdeviceptr memory = new_memory();
  const CUdeviceptr elsewhere = new_memory();
  Helper helper(device.context, [&] {
    nvtxRangePushA(region);
    device.launch(memory);
  });
  helper.begin();
  helper.join();
  for (int i = 0; i < 3; ++i) {
    visit(device, {memory}, nullptr);
    const Range range(other_region);
    device.launch(elsewhere);
  }
  print_memory("memory", memory);
  print_memory("elsewhere", elsewhere);
  return 0;
}

}  // namespace awkward
