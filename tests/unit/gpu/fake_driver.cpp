#include "fake_driver.hpp"

#include <memory>

namespace {

std::unique_ptr<FakeDriver> the_fake_driver;

FakeDriver& fake_driver() {
  return *the_fake_driver;
}

CUresult get_current(CUcontext* context) {
  *context = fake_driver().current;
  return CUDA_SUCCESS;
}
CUresult push(CUcontext context) {
  fake_driver().below = fake_driver().current;
  fake_driver().current = context;
  return CUDA_SUCCESS;
}
CUresult pop(CUcontext* context) {
  *context = fake_driver().current;
  fake_driver().current = fake_driver().below;
  return CUDA_SUCCESS;
}
CUresult stream_context(CUstream stream, CUcontext* context) {
  const auto known = fake_driver().contexts.find(stream);
  *context = known != fake_driver().contexts.end() ? known->second : fake_driver().current;
  return CUDA_SUCCESS;
}
CUresult is_capturing(CUstream, CUstreamCaptureStatus* status) {
  *status = fake_driver().capture;
  return fake_driver().capture_result;
}
CUresult exchange(CUstreamCaptureMode* mode) {
  std::swap(*mode, fake_driver().mode);
  return CUDA_SUCCESS;
}
CUresult event_create(CUevent* event, unsigned int) {
  *event = reinterpret_cast<CUevent>(
      static_cast<std::uintptr_t>(0x1000 + ++fake_driver().events_created));
  fake_driver().events[*event] = FakeDriver::Event{fake_driver().current, -1};
  return CUDA_SUCCESS;
}
CUresult event_record(CUevent event, CUstream stream) {
  if (fake_driver().record_result != CUDA_SUCCESS) return fake_driver().record_result;
  CUcontext context = nullptr;
  stream_context(stream, &context);
  if (fake_driver().events.at(event).context != context) return CUDA_ERROR_INVALID_HANDLE;
  ++fake_driver().records;
  fake_driver().events.at(event).time = std::max(fake_driver().queued[stream], fake_driver().now);
  return CUDA_SUCCESS;
}
CUresult event_query(CUevent event) {
  fake_driver().mode_at_query = fake_driver().mode;
  if (const auto now = std::exchange(fake_driver().at_query, nullptr)) now();
  const auto known = fake_driver().events.find(event);
  if (known == fake_driver().events.end()) return CUDA_ERROR_INVALID_HANDLE;
  return known->second.time <= fake_driver().now ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
  const auto& from = fake_driver().events.at(start);
  const auto& to = fake_driver().events.at(end);
  if (from.context != to.context) return CUDA_ERROR_INVALID_HANDLE;
  if (from.time > fake_driver().now || to.time > fake_driver().now) return CUDA_ERROR_NOT_READY;
  *milliseconds = static_cast<float>((to.time - from.time) * 1e3);
  return CUDA_SUCCESS;
}

const FakeDriver::Kernel* find(const std::map<CUfunction, FakeDriver::Kernel>& among,
                               CUfunction handle) {
  const auto known = among.find(handle);
  return known != among.end() ? &known->second : nullptr;
}
CUresult name(const char** text, const FakeDriver::Kernel* kernel) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *text = kernel->symbol.c_str();
  return CUDA_SUCCESS;
}
CUresult parameter(const FakeDriver::Kernel* kernel, std::size_t i, std::size_t* offset,
                   std::size_t* size) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (i >= kernel->parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = kernel->parameters[i].first;
  *size = kernel->parameters[i].second;
  return CUDA_SUCCESS;
}
CUresult attribute(int* value, CUfunction_attribute which, const FakeDriver::Kernel* kernel) {
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *value = which == CU_FUNC_ATTRIBUTE_NUM_REGS                ? kernel->registers
           : which == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES     ? kernel->static_shared
           : which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
           : which == CU_FUNC_ATTRIBUTE_BINARY_VERSION        ? 90
           : which == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
               ? fake_driver().max_dynamic_shared
               : 0;
  return CUDA_SUCCESS;
}
CUfunction disguised(CUkernel kernel) {
  return reinterpret_cast<CUfunction>(kernel);
}

}  // namespace

FakeDriver& FakeDriver::get() {
  return fake_driver();
}

contextune::gpu::Driver FakeDriver::make() {
  the_fake_driver = std::make_unique<FakeDriver>();
  contextune::gpu::Driver driver;
  driver.version = 13000;
  driver.cuGetErrorName = [](CUresult, const char** text) {
    return *text = "CUDA_ERROR_FAKE", CUDA_SUCCESS;
  };
  driver.cuGetErrorString = [](CUresult, const char** text) {
    return *text = "made up", CUDA_SUCCESS;
  };
  driver.cuCtxGetDevice = [](CUdevice* device) { return *device = 0, CUDA_SUCCESS; };
  driver.cuCtxGetCurrent = get_current;
  driver.cuCtxPushCurrent = push;
  driver.cuCtxPopCurrent = pop;
  driver.cuStreamGetCtx = stream_context;
  driver.cuStreamIsCapturing = is_capturing;
  driver.cuThreadExchangeStreamCaptureMode = exchange;
  driver.cuEventCreate = event_create;
  driver.cuEventRecord = event_record;
  driver.cuEventQuery = event_query;
  driver.cuEventElapsedTime = elapsed;
  driver.cuFuncGetName = [](const char** text, CUfunction f) {
    return name(text, find(fake_driver().functions, f));
  };
  driver.cuKernelGetName = [](const char** text, CUkernel k) {
    return name(text, find(fake_driver().kernels, disguised(k)));
  };
  driver.cuFuncGetParamInfo = [](CUfunction f, std::size_t i, std::size_t* offset,
                                 std::size_t* size) {
    return parameter(find(fake_driver().functions, f), i, offset, size);
  };
  driver.cuKernelGetParamInfo = [](CUkernel k, std::size_t i, std::size_t* offset,
                                   std::size_t* size) {
    return parameter(find(fake_driver().kernels, disguised(k)), i, offset, size);
  };
  driver.cuFuncGetAttribute = [](int* value, CUfunction_attribute which, CUfunction f) {
    return attribute(value, which, find(fake_driver().functions, f));
  };
  driver.cuKernelGetAttribute = [](int* value, CUfunction_attribute which, CUkernel k, CUdevice) {
    return attribute(value, which, find(fake_driver().kernels, disguised(k)));
  };
  driver.cuFuncSetAttribute = [](CUfunction, CUfunction_attribute, int value) {
    return value <= 227 << 10 ? (fake_driver().max_dynamic_shared = value, CUDA_SUCCESS)
                              : CUDA_ERROR_INVALID_VALUE;
  };
  driver.cuFuncGetModule = [](CUmodule* module, CUfunction) {
    return *module = reinterpret_cast<CUmodule>(0x20), CUDA_SUCCESS;
  };
  driver.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char* symbol) {
    for (const auto& [handle, kernel] : fake_driver().functions) {
      if (kernel.symbol == symbol) return *function = handle, CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
  };
  driver.cuModuleGetFunctionCount = [](unsigned* count, CUmodule) {
    return *count = static_cast<unsigned>(fake_driver().functions.size()), CUDA_SUCCESS;
  };
  driver.cuModuleEnumerateFunctions = [](CUfunction* out, unsigned, CUmodule) {
    for (const auto& [handle, kernel] : fake_driver().functions) *out++ = handle;
    return CUDA_SUCCESS;
  };
  driver.cuKernelGetLibrary = [](CUlibrary* library, CUkernel) {
    return *library = reinterpret_cast<CUlibrary>(0x30), CUDA_SUCCESS;
  };
  driver.cuLibraryGetKernel = [](CUkernel* out, CUlibrary, const char* symbol) {
    for (const auto& [handle, kernel] : fake_driver().kernels) {
      if (kernel.symbol == symbol) return *out = reinterpret_cast<CUkernel>(handle), CUDA_SUCCESS;
    }
    return CUDA_ERROR_NOT_FOUND;
  };
  driver.cuLibraryGetKernelCount = [](unsigned* count, CUlibrary) {
    return *count = static_cast<unsigned>(fake_driver().kernels.size()), CUDA_SUCCESS;
  };
  driver.cuLibraryEnumerateKernels = [](CUkernel* out, unsigned, CUlibrary) {
    for (const auto& [handle, kernel] : fake_driver().kernels)
      *out++ = reinterpret_cast<CUkernel>(handle);
    return CUDA_SUCCESS;
  };
  driver.cuOccupancyMaxActiveBlocksPerMultiprocessor = [](int* blocks, CUfunction, int threads,
                                                          std::size_t shared) {
    *blocks = threads > 1024 || shared > 200'000 ? 0
              : shared > 100'000                 ? 1
                                                 : fake_driver().blocks_per_sm;
    return CUDA_SUCCESS;
  };
  return driver;
}
