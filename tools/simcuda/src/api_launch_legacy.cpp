// The launch functions of CUDA 3, which are still exported: a kernel's block shape and arguments
// are set step by step.
#include <cstring>

#include "operation.hpp"

using namespace simcuda;

namespace {

CUresult set_parameter(CUfunction handle, int offset, const void* value, std::size_t bytes) {
  std::vector<std::byte>& packed = function_at(handle).legacy_parameters;
  require(offset >= 0 && offset < 4096 && value != nullptr);
  const auto at = static_cast<std::size_t>(offset);
  if (packed.size() < at + bytes) packed.resize(at + bytes);
  std::memcpy(packed.data() + at, value, bytes);
  return CUDA_SUCCESS;
}

CUresult launch(CUfunction handle, int width, int height, CUstream stream_handle) {
  Stream& stream = stream_of(stream_handle, NullStream::legacy);
  Function& function = function_at(handle);
  require(width >= 1 && height >= 1);
  std::size_t bytes = function.legacy_parameters.size();
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, function.legacy_parameters.data(),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  const LaunchArguments arguments{{static_cast<unsigned>(width), static_cast<unsigned>(height), 1},
                                  function.legacy_block,
                                  function.legacy_shared_bytes,
                                  nullptr,
                                  extra};
  enqueue_launch(stream, check_launch(*stream.context, handle, arguments, nullptr, 0),
                 driver().next_correlation++);
  return CUDA_SUCCESS;
}

}  // namespace

SIMCUDA_ENTRY(cuFuncSetBlockShape, (CUfunction hfunc, int x, int y, int z), {
  require(x >= 1 && y >= 1 && z >= 1);
  function_at(hfunc).legacy_block = {static_cast<unsigned>(x), static_cast<unsigned>(y),
                                     static_cast<unsigned>(z)};
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuFuncSetSharedSize, (CUfunction hfunc, unsigned int bytes), {
  function_at(hfunc).legacy_shared_bytes = bytes;
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuParamSetSize, (CUfunction hfunc, unsigned int numbytes), {
  require(numbytes <= 4096);
  function_at(hfunc).legacy_parameters.resize(numbytes);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuParamSeti, (CUfunction hfunc, int offset, unsigned int value),
              { return set_parameter(hfunc, offset, &value, sizeof value); })
SIMCUDA_ENTRY(cuParamSetf, (CUfunction hfunc, int offset, float value),
              { return set_parameter(hfunc, offset, &value, sizeof value); })
SIMCUDA_ENTRY(cuParamSetv, (CUfunction hfunc, int offset, void* ptr, unsigned int numbytes),
              { return set_parameter(hfunc, offset, ptr, numbytes); })

SIMCUDA_ENTRY(cuLaunch, (CUfunction f), { return launch(f, 1, 1, nullptr); })
SIMCUDA_ENTRY(cuLaunchGrid, (CUfunction f, int grid_width, int grid_height),
              { return launch(f, grid_width, grid_height, nullptr); })
SIMCUDA_ENTRY(cuLaunchGridAsync, (CUfunction f, int grid_width, int grid_height, CUstream hStream),
              { return launch(f, grid_width, grid_height, hStream); })
