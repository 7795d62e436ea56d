// Things that the program gives back inside of a region. The visit after it has none of that.
#include <simcuda/simcuda.h>
#include <cstdio>

#include "scenarios.hpp"

namespace awkward {
namespace {

void visit(const Device& device, CUdeviceptr memory, CUstream stream) {
  {
    const Range range(region);
    device.launch(memory, stream);
  }
  print_memory("after another visit", memory);
}

void synchronise(CUstream stream) {
  check(cuStreamSynchronize(stream), "cuStreamSynchronize");
}

CUevent new_event() {
  CUevent event = nullptr;
  check(cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
  return event;
}

}  // namespace

int memory_freed(Device& device) {
  const CUdeviceptr memory = new_memory();
  const CUdeviceptr freed = new_memory();
  const CUstream stream = new_stream();
  {
    const Range range(region);
    device.launch(memory, stream);
    device.launch(freed, stream);
    synchronise(stream);
    check(cuMemFree(freed), "cuMemFree");
  }
  visit(device, memory, stream);
  return 0;
}

int module_unloaded(Device& device) {
  const CUdeviceptr memory = new_memory();
  const CUstream stream = new_stream();
  {
    const Range range(region);
    device.launch(memory, stream);
    synchronise(stream);
    check(cuModuleUnload(device.module), "cuModuleUnload");
  }
  device.load_module();
  visit(device, memory, stream);
  return 0;
}

int stream_destroyed(Device& device) {
  const CUdeviceptr memory = new_memory();
  CUstream stream = new_stream();
  {
    const Range range(region);
    device.launch(memory, stream);
    synchronise(stream);
    check(cuStreamDestroy(stream), "cuStreamDestroy");
    stream = new_stream();  // perhaps by the same handle
    device.launch(memory, stream);
  }
  visit(device, memory, stream);
  return 0;
}

int event_destroyed(Device& device) {
  const CUdeviceptr memory = new_memory();
  const CUdeviceptr other = new_memory();
  const CUstream first = new_stream();
  const CUstream second = new_stream();
  CUevent event = new_event();
  // Work is put off, and done in an order that only the events hold together.
  simcuda_set_order(1, 1);
  {
    const Range range(region);
    check(cuMemsetD32Async(memory, 5, num_words, first), "cuMemsetD32Async");
    check(cuEventRecord(event, first), "cuEventRecord");
    check(cuStreamWaitEvent(second, event, 0), "cuStreamWaitEvent");
    device.launch(memory, second);
    check(cuEventDestroy(event), "cuEventDestroy");
    event = new_event();  // perhaps by the same handle; nothing has recorded it
    check(cuStreamWaitEvent(first, event, 0), "cuStreamWaitEvent");
    device.launch(other, first);
    check(cuEventRecord(event, first), "cuEventRecord");
  }
  check(cuEventSynchronize(event), "cuEventSynchronize");
  print_memory("memory", memory);
  print_memory("other", other);
  return 0;
}

int texture_destroyed(Device& device) {
  const CUdeviceptr memory = new_memory();
  {
    const Range range(region);
    const CUtexObject texture = new_texture(memory);
    device.launch_reading(texture, memory);
    device.launch(memory);
    check(cuCtxSynchronize(), "cuCtxSynchronize");
    destroy_texture(texture);
  }
  visit(device, memory, nullptr);
  return 0;
}

int primary_context_reset(Device& device) {
  CUdeviceptr memory = new_memory();
  {
    const Range range(region);
    device.launch(memory);
    check(cuDevicePrimaryCtxReset(0), "cuDevicePrimaryCtxReset");
  }
  device = Device::open();
  memory = new_memory();
  visit(device, memory, nullptr);
  return 3;
}

int primary_context_in_pairs(Device& device) {
  const CUdeviceptr memory = new_memory();
  {
    const Range range(region);
    CUcontext same = nullptr;
    check(cuDevicePrimaryCtxRetain(&same, 0), "cuDevicePrimaryCtxRetain");
    device.launch(memory);
    check(cuDevicePrimaryCtxRelease(0), "cuDevicePrimaryCtxRelease");
    device.launch(memory);
  }
  print_memory("memory", memory);
  return 0;
}

int primary_context_released(Device& device) {
  CUdeviceptr memory = new_memory();
  {
    const Range range(region);
    device.launch(memory);
    check(cuDevicePrimaryCtxRelease(0), "cuDevicePrimaryCtxRelease");
  }
  device = Device::open();
  memory = new_memory();
  visit(device, memory, nullptr);
  return 3;
}

int second_context_destroyed(Device& device) {
  const CUdeviceptr memory = new_memory();
  CUcontext second = nullptr;
#if CUDA_VERSION >= 13000
  check(cuCtxCreate(&second, nullptr, 0, 0), "cuCtxCreate");
#else
  check(cuCtxCreate(&second, 0, 0), "cuCtxCreate");
#endif
  CUmodule module = nullptr;
  const CUfunction advance = load_advance(module);
  const CUdeviceptr elsewhere = new_memory();
  {
    const Range range(region);
    launch(advance, elsewhere, nullptr);
    check(cuCtxDestroy(second), "cuCtxDestroy");
    check(cuCtxSetCurrent(device.context), "cuCtxSetCurrent");
    device.launch(memory);
  }
  visit(device, memory, nullptr);
  return 3;
}

}  // namespace awkward
