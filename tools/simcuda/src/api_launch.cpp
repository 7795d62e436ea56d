#include "observed.hpp"
#include "operation.hpp"

using namespace simcuda;

namespace {

void pay_for_launch(const Launch& launch) {
  Driver& state = driver();
  const simcuda_listener* const listener = state.listener.load(std::memory_order_acquire);
  const DeviceProfile& profile = state.devices.front()->profile;
  const bool chained = launch.programmatic && launch.code->is_machine_code;
  state.host_time += (chained ? profile.chained_launch_cost : profile.launch_cost) +
                     (listener == nullptr ? 0.0 : listener->launch_overhead);
}

CUresult launch_on(NullStream null_stream, CUstream handle, CUfunction function,
                   const LaunchArguments& arguments, const CUlaunchAttribute* attributes,
                   unsigned attribute_count, std::uint32_t correlation) {
  Stream& stream = stream_of(handle, null_stream);
  const Launch launch =
      check_launch(*stream.context, function, arguments, attributes, attribute_count);
  pay_for_launch(launch);
  enqueue_launch(stream, launch, correlation);
  return CUDA_SUCCESS;
}

// The layouts in which CUPTI shows the arguments of a call to its subscribers.
struct KernelCall {
  CUfunction f;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  CUstream stream;
  void** parameters;
  void** extra;
};
struct KernelExCall {
  const CUlaunchConfig* config;
  CUfunction f;
  void** parameters;
  void** extra;
};

CUresult launch_kernel(EntryPoint entry, NullStream null_stream, const KernelCall& call) noexcept {
  return observed(entry, &call, [&](DriverLock&, std::uint32_t correlation) {
    return launch_on(null_stream, call.stream, call.f,
                     {{call.grid_x, call.grid_y, call.grid_z},
                      {call.block_x, call.block_y, call.block_z},
                      call.shared_bytes,
                      call.parameters,
                      call.extra},
                     nullptr, 0, correlation);
  });
}

CUresult launch_ex(EntryPoint entry, NullStream null_stream, const KernelExCall& call) noexcept {
  return observed(entry, &call, [&](DriverLock&, std::uint32_t correlation) {
    require(call.config != nullptr);
    const CUlaunchConfig& config = *call.config;
    return launch_on(null_stream, config.hStream, call.f,
                     {{config.gridDimX, config.gridDimY, config.gridDimZ},
                      {config.blockDimX, config.blockDimY, config.blockDimZ},
                      config.sharedMemBytes,
                      call.parameters,
                      call.extra},
                     config.attrs, config.numAttrs, correlation);
  });
}

CUresult launch_cooperative(EntryPoint entry, NullStream null_stream,
                            const KernelCall& call) noexcept {
  return observed(entry, &call, [&](DriverLock&, std::uint32_t correlation) {
    CUlaunchAttribute cooperative{};
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
    return launch_on(null_stream, call.stream, call.f,
                     {{call.grid_x, call.grid_y, call.grid_z},
                      {call.block_x, call.block_y, call.block_z},
                      call.shared_bytes,
                      call.parameters,
                      nullptr},
                     &cooperative, 1, correlation);
  });
}

}  // namespace

#define KERNEL_PARAMETERS                                                            \
  CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, \
      unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,        \
      unsigned int sharedMemBytes, CUstream hStream, void **kernelParams
#define KERNEL_CALL                                                                          \
  f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream, \
      kernelParams

CUresult CUDAAPI cuLaunchKernel(KERNEL_PARAMETERS, void** extra) {
  return launch_kernel({307, "cuLaunchKernel"}, NullStream::legacy, {KERNEL_CALL, extra});
}
CUresult CUDAAPI cuLaunchKernel_ptsz(KERNEL_PARAMETERS, void** extra) {
  return launch_kernel({442, "cuLaunchKernel_ptsz"}, NullStream::per_thread, {KERNEL_CALL, extra});
}
CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction f, void** kernelParams,
                                  void** extra) {
  return launch_ex({652, "cuLaunchKernelEx"}, NullStream::legacy, {config, f, kernelParams, extra});
}
CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig* config, CUfunction f,
                                       void** kernelParams, void** extra) {
  return launch_ex({653, "cuLaunchKernelEx_ptsz"}, NullStream::per_thread,
                   {config, f, kernelParams, extra});
}
CUresult CUDAAPI cuLaunchCooperativeKernel(KERNEL_PARAMETERS) {
  return launch_cooperative({477, "cuLaunchCooperativeKernel"}, NullStream::legacy,
                            {KERNEL_CALL, nullptr});
}
CUresult CUDAAPI cuLaunchCooperativeKernel_ptsz(KERNEL_PARAMETERS) {
  return launch_cooperative({478, "cuLaunchCooperativeKernel_ptsz"}, NullStream::per_thread,
                            {KERNEL_CALL, nullptr});
}

// Not supported by any device since CUDA 13; the name is still exported.
SIMCUDA_ENTRY(cuLaunchCooperativeKernelMultiDevice,
              (CUDA_LAUNCH_PARAMS*, unsigned int, unsigned int),
              { return CUDA_ERROR_NOT_SUPPORTED; })

SIMCUDA_BOTH_STREAMS(cuLaunchHostFunc, _ptsz, (CUstream hStream, CUhostFn fn, void* userData), {
  require(fn != nullptr);
  enqueue(stream_of(hStream, null_stream), HostOperation{fn, userData});
  return CUDA_SUCCESS;
})
