#include "stream_calls.hpp"

extern "C" {
decltype(cuLaunchKernel) cuLaunchKernel_ptsz;
decltype(cuLaunchKernelEx) cuLaunchKernelEx_ptsz;
decltype(cuLaunchCooperativeKernel) cuLaunchCooperativeKernel_ptsz;
decltype(cuMemcpyHtoDAsync_v2) cuMemcpyHtoDAsync_v2_ptsz;
decltype(cuMemcpyDtoDAsync_v2) cuMemcpyDtoDAsync_v2_ptsz;
decltype(cuMemcpyDtoHAsync_v2) cuMemcpyDtoHAsync_v2_ptsz;
decltype(cuMemcpyAsync) cuMemcpyAsync_ptsz;
decltype(cuMemsetD8Async) cuMemsetD8Async_ptsz;
decltype(cuMemsetD16Async) cuMemsetD16Async_ptsz;
decltype(cuMemsetD32Async) cuMemsetD32Async_ptsz;
decltype(cuMemsetD2D32Async) cuMemsetD2D32Async_ptsz;
decltype(cuEventRecord) cuEventRecord_ptsz;
decltype(cuStreamWaitEvent) cuStreamWaitEvent_ptsz;
decltype(cuStreamSynchronize) cuStreamSynchronize_ptsz;
decltype(cuStreamQuery) cuStreamQuery_ptsz;
decltype(cuGraphLaunch) cuGraphLaunch_ptsz;
decltype(cuLaunchHostFunc) cuLaunchHostFunc_ptsz;
decltype(cuStreamWriteValue32_v2) cuStreamWriteValue32_v2_ptsz;
decltype(cuStreamWaitValue32_v2) cuStreamWaitValue32_v2_ptsz;
decltype(cuMemcpy2DAsync_v2) cuMemcpy2DAsync_v2_ptsz;
}

const StreamCalls& stream_calls(bool per_thread) {
  static constexpr StreamCalls legacy{
      &cuLaunchKernel,         &cuLaunchKernelEx,     &cuLaunchCooperativeKernel,
      &cuMemcpyHtoDAsync_v2,   &cuMemcpyDtoDAsync_v2, &cuMemcpyDtoHAsync_v2,
      &cuMemcpyAsync,          &cuMemsetD8Async,      &cuMemsetD16Async,
      &cuMemsetD32Async,       &cuMemsetD2D32Async,   &cuEventRecord,
      &cuStreamWaitEvent,      &cuStreamSynchronize,  &cuStreamQuery,
      &cuGraphLaunch,          &cuLaunchHostFunc,     &cuStreamWriteValue32_v2,
      &cuStreamWaitValue32_v2, &cuMemcpy2DAsync_v2};
  static constexpr StreamCalls own{
      &cuLaunchKernel_ptsz,         &cuLaunchKernelEx_ptsz,     &cuLaunchCooperativeKernel_ptsz,
      &cuMemcpyHtoDAsync_v2_ptsz,   &cuMemcpyDtoDAsync_v2_ptsz, &cuMemcpyDtoHAsync_v2_ptsz,
      &cuMemcpyAsync_ptsz,          &cuMemsetD8Async_ptsz,      &cuMemsetD16Async_ptsz,
      &cuMemsetD32Async_ptsz,       &cuMemsetD2D32Async_ptsz,   &cuEventRecord_ptsz,
      &cuStreamWaitEvent_ptsz,      &cuStreamSynchronize_ptsz,  &cuStreamQuery_ptsz,
      &cuGraphLaunch_ptsz,          &cuLaunchHostFunc_ptsz,     &cuStreamWriteValue32_v2_ptsz,
      &cuStreamWaitValue32_v2_ptsz, &cuMemcpy2DAsync_v2_ptsz};
  return per_thread ? own : legacy;
}
