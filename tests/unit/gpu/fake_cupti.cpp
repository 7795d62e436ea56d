#include "fake_cupti.hpp"

#include <cstring>
#include <memory>

#include <pthread.h>
#include <utility>

#include "gpu/clock/activity_kinds.hpp"

using contextune::gpu::CuptiLibrary;

namespace {

std::unique_ptr<FakeCupti> the_fake;
FakeCupti& fake() {
  return *the_fake;
}

constexpr std::size_t record_bytes = 256;

template <class Work>
void write_work(const FakeCupti::Record& record, std::uint8_t* at) {
  auto* work = reinterpret_cast<Work*>(at);
  work->start = record.start;
  work->end = record.end;
  work->correlationId = record.correlation;
}

std::size_t write(const FakeCupti::Record& record, std::uint8_t* at) {
  std::memset(at, 0, record_bytes);
  if (record.kind == CUPTI_ACTIVITY_KIND_DRIVER || record.kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
    auto* call = reinterpret_cast<CUpti_ActivityAPI*>(at);
    call->correlationId = record.correlation;
    call->threadId = record.thread;
    call->cbid = record.call;
    call->start = record.start;
    call->end = record.end;
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
    write_work<contextune::gpu::CopyRecord>(record, at);
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMCPY2) {
    write_work<contextune::gpu::PeerCopyRecord>(record, at);
  } else if (record.kind == CUPTI_ACTIVITY_KIND_MEMSET) {
    write_work<contextune::gpu::MemsetRecord>(record, at);
  } else {
    write_work<contextune::gpu::KernelRecord>(record, at);
  }
  reinterpret_cast<CUpti_Activity*>(at)->kind = record.kind;
  return record_bytes;
}

CUptiResult flush(std::uint32_t flag) {
  ++(flag != 0 ? fake().forced_flushes : fake().flushes);
  if (fake().hold_back && flag == 0) return CUPTI_SUCCESS;
  auto records = std::move(fake().records);
  fake().records.clear();
  std::size_t done = 0;
  while (done < records.size()) {
    std::uint8_t* buffer = nullptr;
    std::size_t size = 0;
    std::size_t most = 0;
    fake().request(&buffer, &size, &most);
    if (buffer == nullptr) {
      fake().dropped += records.size() - done;
      break;
    }
    std::size_t used = 0;
    while (done < records.size() && used + record_bytes <= size) {
      used += write(records[done++], buffer + used);
    }
    fake().complete(nullptr, 0, buffer, size, used);
  }
  return CUPTI_SUCCESS;
}

CUptiResult next(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  auto* at = *record == nullptr ? buffer : reinterpret_cast<std::uint8_t*>(*record) + record_bytes;
  if (at >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(at);
  return CUPTI_SUCCESS;
}

}  // namespace

FakeCupti& FakeCupti::get() {
  return fake();
}

void FakeCupti::enter_runtime() {
  runtime_start = ++clock;
}

void FakeCupti::leave_runtime() {
  if (enabled.count(CUPTI_ACTIVITY_KIND_RUNTIME) != 0 &&
      silent_runtime.count(CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000) == 0) {
    records.push_back({CUPTI_ACTIVITY_KIND_RUNTIME, correlation,
                       static_cast<std::uint32_t>(pthread_self()), runtime_start, ++clock,
                       CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000});
  }
  runtime_start = 0;
}

void FakeCupti::launch(int kernels, std::uint64_t nanoseconds) {
  ++correlation;
  const std::uint64_t start = ++clock;
  if (runtime_start == 0 && enabled.count(CUPTI_ACTIVITY_KIND_DRIVER) != 0 &&
      silent.count(launch_call) == 0) {
    records.push_back({CUPTI_ACTIVITY_KIND_DRIVER, correlation,
                       static_cast<std::uint32_t>(pthread_self()), start, ++clock, launch_call});
  }
  if (enabled.count(work) == 0) return;
  for (int i = 0; i < kernels; ++i) {
    records.push_back({work, correlation, 0, gpu_clock, gpu_clock + nanoseconds, 0});
    gpu_clock += nanoseconds;
  }
}

CuptiLibrary FakeCupti::make() {
  the_fake = std::make_unique<FakeCupti>();
  CuptiLibrary cupti;
  cupti.path = "fake";
  cupti.cuptiActivityRegisterCallbacks = [](CUpti_BuffersCallbackRequestFunc request,
                                            CUpti_BuffersCallbackCompleteFunc complete) {
    if (fake().register_result != CUPTI_SUCCESS) return fake().register_result;
    fake().request = request;
    fake().complete = complete;
    fake().registered = true;
    return CUPTI_SUCCESS;
  };
  cupti.cuptiActivityEnable = [](CUpti_ActivityKind kind) {
    if (fake().enable_result != CUPTI_SUCCESS) return fake().enable_result;
    fake().enabled.insert(kind);
    if (kind == CUPTI_ACTIVITY_KIND_DRIVER) fake().silent.clear();
    if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) fake().silent_runtime.clear();
    return CUPTI_SUCCESS;
  };
  cupti.cuptiActivityDisable = [](CUpti_ActivityKind kind) {
    return fake().enabled.erase(kind) == 1 ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
  };
  cupti.cuptiActivityEnableDriverApi = [](CUpti_CallbackId call, std::uint8_t enable) {
    if (enable != 0) {
      fake().silent.erase(call);
    } else {
      fake().silent.insert(call);
    }
    return CUPTI_SUCCESS;
  };
  cupti.cuptiActivityEnableRuntimeApi = [](CUpti_CallbackId call, std::uint8_t enable) {
    if (enable == 0) fake().silent_runtime.insert(call);
    return CUPTI_SUCCESS;
  };
  cupti.cuptiActivityFlushAll = flush;
  cupti.cuptiActivityGetNextRecord = next;
  cupti.cuptiActivityGetNumDroppedRecords = [](CUcontext, std::uint32_t, std::size_t* dropped) {
    *dropped = std::exchange(fake().dropped, 0);
    return CUPTI_SUCCESS;
  };
  cupti.cuptiGetTimestamp = [](std::uint64_t* time) {
    return *time = ++fake().clock, CUPTI_SUCCESS;
  };
  cupti.cuptiGetResultString = [](CUptiResult, const char** text) {
    return *text = "CUPTI_ERROR_FAKE", CUPTI_SUCCESS;
  };
  cupti.cuptiFinalize = [] {
    ++fake().finalized;
    fake().enabled.clear();
    fake().registered = false;
    fake().correlation = 0;
    return CUPTI_SUCCESS;
  };
  return cupti;
}
