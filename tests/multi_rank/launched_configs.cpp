// A program that tells with which blocks its kernels were really launched: one kernel for each
// number of configs, all in one region. Config c of a kernel has blocks of 32 * (c + 1) threads,
// and the last one is the fastest. Writes a line an entry of the region to FILE: the config of each
// kernel. The region is a `body` that is repeated until it is tuned, or is entered until there is a
// file of that name.
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>

#include <contextune/contextune.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "launched_blocks.hpp"

namespace {

constexpr int num_elements = 1024;
constexpr unsigned threads_a_config = 32;

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s failed: %d\n", what, static_cast<int>(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

struct Program {
  explicit Program(std::size_t num_kernels) {
    CUdevice device = 0;
    CUcontext context = nullptr;
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CUmodule module = load_kernels(num_kernels);
    if (module == nullptr) std::exit(1);
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (std::size_t k = 0; k < num_kernels; ++k) {
      const std::string name = "kernel_" + std::to_string(k);
      CHECK(cuModuleGetFunction(&functions.emplace_back(), module, name.c_str()));
      CHECK(cuMemAlloc(&buffers.emplace_back(), num_elements * sizeof(int)));
      CHECK(cuMemsetD8(buffers.back(), 0, num_elements * sizeof(int)));
    }
  }

  void launch_all() {
    for (std::size_t k = 0; k < functions.size(); ++k) {
      int n = num_elements;
      int value = static_cast<int>(k);
      void* arguments[] = {&n, &value, &buffers[k]};
      CHECK(cuLaunchKernel(functions[k], 4, 1, 1, threads_a_config, 1, 1, 0, stream, arguments,
                           nullptr));
    }
  }

  CUstream stream = nullptr;
  std::vector<CUfunction> functions;
  std::vector<CUdeviceptr> buffers;
};

void write(const char* path, const std::vector<CUfunction>& kernels) {
  const std::vector<unsigned> blocks = launched_blocks(kernels);
  std::ofstream file(path);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    file << blocks[i] / threads_a_config - 1 << ((i + 1) % kernels.size() == 0 ? '\n' : ' ');
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: launched_configs FILE (body | STOP) NUM_CONFIGS...\n", stderr);
    return 2;
  }
  const std::string how = argv[2];
  Program program(static_cast<std::size_t>(argc - 3));
  if (how == "body") {
    CONTEXTUAL_AUTOTUNE("table", {.repeatable = true}) {
      program.launch_all();
    }
  } else {
    while (!std::filesystem::exists(how)) {
      nvtxRangePushA("table");
      program.launch_all();
      nvtxRangePop();
    }
  }
  CHECK(cuCtxSynchronize());
  write(argv[1], program.functions);
  std::puts("done");
  return 0;
}
