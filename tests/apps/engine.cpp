// A program on the CUDA driver API whose one kernel loops over its elements with a stride of the
// whole grid, launched in an NVTX range with a shape that suits no GPU. It knows nothing of tuning.
#include <cuda.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <simcuda/kernel.hpp>
#include <vector>

namespace {

void saxpy(const simcuda::Thread& thread, int n, float a, const float* x, float* y) {
  for (std::size_t i = thread.global_x(); i < static_cast<std::size_t>(n); i += thread.stride_x())
    y[i] += a * x[i];
}

void describe_saxpy(const simcuda_launch* launch, simcuda_work* work) {
  const auto n = static_cast<std::size_t>(simcuda::argument<int>(*launch, 0));
  work->items = static_cast<double>(n);
  simcuda::touch(*work, simcuda::argument<const float*>(*launch, 2), n * 4, SIMCUDA_READ);
  simcuda::touch(*work, simcuda::argument<float*>(*launch, 3), n * 4, SIMCUDA_READ | SIMCUDA_WRITE);
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s failed: %d\n", what, static_cast<int>(result));
  std::exit(1);
}

CUfunction load_saxpy() {
  static constexpr simcuda_kernel kernel =
      simcuda::per_thread_kernel<&saxpy>("saxpy_grid_stride", &describe_saxpy);
  static constexpr const simcuda_kernel* list[] = {&kernel};
  static constexpr simcuda_kernel_table table{SIMCUDA_VERSION, list, 1};
  if (simcuda_register_kernels(&table) != 0) std::abort();
  CUmodule module = nullptr;
  check(cuModuleLoadData(
            &module,
            "simcuda image 1\nkernel saxpy_grid_stride\naccess saxpy_grid_stride 2=r 3=rw\n"),
        "cuModuleLoadData");
  CUfunction function = nullptr;
  check(cuModuleGetFunction(&function, module, "saxpy_grid_stride"), "cuModuleGetFunction");
  return function;
}

CUdeviceptr device_floats(int n, float value) {
  const std::vector<float> values(static_cast<std::size_t>(n), value);
  CUdeviceptr memory = 0;
  check(cuMemAlloc(&memory, values.size() * sizeof(float)), "cuMemAlloc");
  check(cuMemcpyHtoD(memory, values.data(), values.size() * sizeof(float)), "cuMemcpyHtoD");
  return memory;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::strcmp(argv[1], "--model") != 0) {
    std::fputs("usage: engine --model NUMBER\nAdds up NUMBER of steps of 65536 values.\n", stderr);
    return 2;
  }
  check(cuInit(0), "cuInit");
  CUcontext context = nullptr;
  check(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const CUfunction saxpy = load_saxpy();
  int n = 1 << 16;
  float a = 0.5F;
  CUdeviceptr x = device_floats(n, 2.0F);
  CUdeviceptr y = device_floats(n, 0.0F);
  void* arguments[] = {&n, &a, &x, &y};
  for (int step = 0; step < std::atoi(argv[2]); ++step) {
    nvtxRangePushA("decode");
    check(cuLaunchKernel(saxpy, 4, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr), "launch");
    nvtxRangePop();
  }
  float last = 0;
  check(cuMemcpyDtoH(&last, y + static_cast<CUdeviceptr>(n - 1) * sizeof(float), sizeof last),
        "cuMemcpyDtoH");
  std::printf("the last value is %g\n", static_cast<double>(last));
  return 0;
}
