#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <semaphore>
#include <thread>
#include <vector>

#include "fixture.hpp"
#include "gpu/driver/process_exit.hpp"
#include "intercept/host/thread_census.hpp"

using namespace contextune;

namespace {

/// Whether the system still lists the thread, as it does for a moment when it has been joined.
bool is_alive(pid_t thread) {
  const std::vector<pid_t> threads = intercept::thread_ids();
  return std::binary_search(threads.begin(), threads.end(), thread);
}

}  // namespace

#ifndef __SANITIZE_THREAD__  // its own thread keeps CUPTI from being released
TEST_CASE("CUPTI, which waits for the GPU as it leaves, does not while the program's work goes on",
          "[release]") {
  const contextune::gpu::Driver& driver = Simulation::get().driver;
  Program program(Program::quick(&Options::timer, TimerKind::Auto));
  program.runtime().declare(blocks({32, 1024}));
  Adder adder(1 << 10);
  CUstream busy = nullptr;
  REQUIRE(driver.cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  const CUdeviceptr flag = Simulation::get().memory(1);
  auto* const await_value = reinterpret_cast<decltype(&cuStreamWaitValue32)>(
      dlsym(Simulation::get().library, "cuStreamWaitValue32_v2"));
  REQUIRE(await_value(busy, flag, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
  const auto step = [&] {
    program.push("step");
    adder.run(program, 1, 128);
    program.pop();
    (void)driver.cuStreamSynchronize(nullptr);
    program.process().synchronised();
  };
  step();
  for (int i = 0; i < 2000 && !program.runtime().region("step", {}).finished(); ++i) step();
  for (int i = 0; i < 5; ++i) step();
  CHECK(program.said("winner", {"config=2"}));
  CHECK_FALSE(program.said("timer", {"action=release"}));
  {
    // A thread of the program that is there for one look: however often the GPU was looked at.
    std::binary_semaphore let_go(0);
    std::atomic<pid_t> id{0};
    std::thread passing([&] {
      id = static_cast<pid_t>(syscall(SYS_gettid));
      let_go.acquire();
    });
    step();
    let_go.release();
    passing.join();
    for (int i = 0; i < 2000 && is_alive(id); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  *reinterpret_cast<volatile std::uint32_t*>(flag) = 1;
  REQUIRE(driver.cuStreamSynchronize(busy) == CUDA_SUCCESS);
  // On a busy machine many entries may come before it is known that the GPU is idle.
  const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < last && !program.said("timer", {"action=release"}))
    step();
  CHECK(program.said("timer", {"action=release"}));
  CHECK(driver.cuStreamDestroy(busy) == CUDA_SUCCESS);
}
#endif

TEST_CASE("The end of the program waits for a call of CUPTI, once, and says if it was in vain",
          "[cupti]") {
  Program program;
  const gpu::LibraryCall stuck;
  program.end();
  program.end();
  int told = 0;
  for (const std::string& line : program.lines("fallback"))
    told += line.find("a call of CUPTI was still under way") != std::string::npos ? 1 : 0;
  CHECK(told == 1);
}
