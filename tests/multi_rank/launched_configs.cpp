// A program whose kernels tell with which blocks they were really launched: one kernel for each
// number of configs, all in one region. Config c of a kernel has blocks of 32 * (c + 1) threads, and
// the last one is the fastest. Writes a line an entry of the region to FILE: the config of each
// kernel. The region is a `body` that is repeated until it is tuned, or is entered until there is a
// file of that name.
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>

#include <contextune/contextune.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <simcuda/kernel.hpp>
#include <string>
#include <vector>

namespace {

constexpr int num_elements = 1024;
constexpr unsigned threads_a_config = 32;

std::vector<unsigned> configs_run;  // one for each launch, as it came to the GPU

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s failed: %d\n", what, static_cast<int>(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

void fill(const simcuda_launch* launch) {
  configs_run.push_back(launch->block[0] / threads_a_config - 1);
  const int n = simcuda::argument<int>(*launch, 0);
  for (int i = 0; i < n; ++i)
    simcuda::argument<int*>(*launch, 2)[i] = simcuda::argument<int>(*launch, 1) + i;
}

// Nothing but a serial part that depends on the block.
void describe(const simcuda_launch* launch, simcuda_work* work) {
  work->block_cycles = 200e3 - 5e3 * launch->block[0] / threads_a_config;
}

struct Program {
  explicit Program(const std::vector<std::string>& num_configs) : names(num_configs.size()) {
    std::string image = "simcuda image 1\n";
    for (std::size_t k = 0; k < names.size(); ++k) {
      names[k] = "kernel_" + std::to_string(k);
      image += "kernel " + names[k] + "\n";
      kernels.push_back(
          simcuda::whole_launch_kernel<int, int, int*>(names[k].c_str(), &fill, &describe));
    }
    for (const simcuda_kernel& kernel : kernels) pointers.push_back(&kernel);
    table = {SIMCUDA_VERSION, pointers.data(), pointers.size()};
    CUdevice device = 0;
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    CHECK(cuInit(0));
    if (simcuda_register_kernels(&table) != 0) std::exit(1);
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, image.c_str()));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (const std::string& name : names) {
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

  std::vector<std::string> names;
  std::vector<simcuda_kernel> kernels;
  std::vector<const simcuda_kernel*> pointers;
  simcuda_kernel_table table{};
  CUstream stream = nullptr;
  std::vector<CUfunction> functions;
  std::vector<CUdeviceptr> buffers;
};

void write(const char* path, std::size_t num_kernels) {
  std::ofstream file(path);
  for (std::size_t i = 0; i < configs_run.size(); ++i)
    file << configs_run[i] << ((i + 1) % num_kernels == 0 ? '\n' : ' ');
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fputs("usage: launched_configs FILE (body | STOP) NUM_CONFIGS...\n", stderr);
    return 2;
  }
  const std::string how = argv[2];
  const std::vector<std::string> num_configs(argv + 3, argv + argc);
  Program program(num_configs);
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
  write(argv[1], num_configs.size());
  std::puts("done");
  return 0;
}
