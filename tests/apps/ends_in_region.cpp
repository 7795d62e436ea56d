// A program on the CUDA driver API that ends in the middle of an NVTX region, in the way that its
// argument says, or after one, once it has waited for its work. It knows nothing of tuning; what it
// prints and how it ends must be the same whatever watches it.
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

constexpr unsigned elements = 1U << 16U;

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s failed: %d\n", what, static_cast<int>(result));
  std::exit(1);
}

CUdeviceptr device_floats(float first) {
  std::vector<float> values(elements, first);
  CUdeviceptr memory = 0;
  check(cuMemAlloc(&memory, elements * sizeof(float)), "cuMemAlloc");
  check(cuMemcpyHtoD(memory, values.data(), elements * sizeof(float)), "cuMemcpyHtoD");
  return memory;
}

void leave(const char* how) {
  if (std::strcmp(how, "exit") == 0) std::exit(7);
  if (std::strcmp(how, "_exit") == 0) _exit(8);
  if (std::strcmp(how, "quick_exit") == 0) std::quick_exit(10);
  if (std::strcmp(how, "thread") == 0) std::thread([] { std::exit(9); }).join();
  if (std::strcmp(how, "abort") == 0) std::abort();
  if (std::strcmp(how, "uncaught") == 0) throw std::runtime_error("nobody catches this");
  if (std::strcmp(how, "caught") == 0) throw std::runtime_error("main catches this");
  if (std::strcmp(how, "sigterm") == 0) (void)std::raise(SIGTERM);
  if (std::strcmp(how, "sigkill") == 0) (void)std::raise(SIGKILL);
}

void step(CUfunction copy, void** arguments, const char* leaving) {
  nvtxRangePushA("step");
  check(cuLaunchKernel(copy, 64, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr), "launch");
  if (leaving != nullptr) leave(leaving);
  check(cuLaunchKernel(copy, 64, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr), "launch");
  nvtxRangePop();
}

void run(const char* kernels, const char* how, int last_visit) {
  check(cuInit(0), "cuInit");
  CUcontext context = nullptr;
  check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUmodule module = nullptr;
  check(cuModuleLoad(&module, kernels), kernels);
  CUfunction copy = nullptr;
  check(cuModuleGetFunction(&copy, module, "remember"), "remember");
  CUdeviceptr from = device_floats(1.5F);
  CUdeviceptr to = device_floats(0);
  unsigned n = elements;
  void* arguments[] = {&n, &from, &to};
  std::atexit([] { std::puts("at exit"); });
  float last = 0;
  const auto read_last = [&] {
    check(cuMemcpyDtoH(&last, to + (elements - 1) * sizeof(float), sizeof last), "cuMemcpyDtoH");
  };
  for (int i = 0; i < 30; ++i) {
    step(copy, arguments, i == last_visit ? how : nullptr);
    if (i == last_visit && std::strcmp(how, "_exit_once_read") == 0) {
      read_last();
      _exit(8);
    }
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    if (i == last_visit && std::strcmp(how, "_exit_once_idle") == 0) _exit(8);
  }
  read_last();
  std::printf("the last value is %g\n", static_cast<double>(last));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs(
        "usage: ends_in_region KERNEL_FILE end|exit|_exit|quick_exit|thread|abort|uncaught|"
        "caught|sigterm|sigkill|_exit_once_read|_exit_once_idle VISIT\n",
        stderr);
    return 2;
  }
  const int visit = std::atoi(argv[3]);
  std::puts("started");
  std::fflush(stdout);
  if (std::strcmp(argv[2], "uncaught") == 0) {
    run(argv[1], argv[2], visit);
    return 0;
  }
  try {
    run(argv[1], argv[2], visit);
  } catch (const std::exception& error) {
    std::printf("caught: %s\n", error.what());
    return 3;
  }
  return 0;
}
