#pragma once

#include <cuda.h>

/// The entry points that come in two forms: one in which no stream means the legacy stream, one in
/// which it means that of the calling thread.
struct StreamCalls {
  decltype(&cuLaunchKernel) launch;
  decltype(&cuLaunchKernelEx) launch_extended;
  decltype(&cuLaunchCooperativeKernel) launch_cooperative;
  decltype(&cuMemcpyHtoDAsync_v2) copy_from_host;
  decltype(&cuMemcpyDtoDAsync_v2) copy_on_device;
  decltype(&cuMemcpyDtoHAsync_v2) copy_to_host;
  decltype(&cuMemcpyAsync) copy;
  decltype(&cuMemsetD8Async) set8;
  decltype(&cuMemsetD16Async) set16;
  decltype(&cuMemsetD32Async) set32;
  decltype(&cuMemsetD2D32Async) set_rows;
  decltype(&cuEventRecord) record;
  decltype(&cuStreamWaitEvent) wait;
  decltype(&cuStreamSynchronize) synchronise;
  decltype(&cuStreamQuery) query;
  decltype(&cuGraphLaunch) launch_graph;
  decltype(&cuLaunchHostFunc) launch_host_function;
  decltype(&cuStreamWriteValue32_v2) write_value;
  decltype(&cuStreamWaitValue32_v2) wait_for_value;
  decltype(&cuMemcpy2DAsync_v2) copy_rows;
};

[[nodiscard]] const StreamCalls& stream_calls(bool per_thread);
