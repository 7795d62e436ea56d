#include "kernel_call.hpp"

CUresult KernelCall::launch(const StreamCalls& calls, Form form, unsigned grid, unsigned block,
                            CUstream stream) {
  switch (form) {
    case Form::Packed: {
      void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, bytes_.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                       &size_, CU_LAUNCH_PARAM_END};
      return calls.launch(function_, grid, 1, 1, block, 1, 1, 0, stream, nullptr, extra);
    }
    case Form::Extended: {
      CUlaunchAttribute priority{};
      priority.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
      priority.value.priority = 0;
      CUlaunchConfig config{};
      config.gridDimX = grid;
      config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
      config.blockDimX = block;
      config.hStream = stream;
      config.attrs = &priority;
      config.numAttrs = grid % 2;
      return calls.launch_extended(&config, function_, pointers(), nullptr);
    }
    case Form::Cooperative:
      return calls.launch_cooperative(function_, grid, 1, 1, block, 1, 1, 0, stream, pointers());
    case Form::Parameters:
      break;
  }
  return calls.launch(function_, grid, 1, 1, block, 1, 1, 0, stream, pointers(), nullptr);
}
