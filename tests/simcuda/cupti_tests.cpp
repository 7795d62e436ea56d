#include <cupti.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

#include "session.hpp"

namespace {

#if CUPTI_API_VERSION >= 130000
using KernelRecord = CUpti_ActivityKernel10;
using CopyRecord = CUpti_ActivityMemcpy6;
#else
using KernelRecord = CUpti_ActivityKernel9;
using CopyRecord = CUpti_ActivityMemcpy5;
#endif

struct Records {
  std::mutex mutex;
  std::vector<KernelRecord> kernels;
  std::vector<CopyRecord> copies;
  std::vector<CUpti_ActivityMemset4> sets;
  std::vector<CUpti_ActivityExternalCorrelation> correlations;
  std::vector<CUpti_ActivityAPI> calls;
  std::atomic<std::size_t> buffer_bytes{4096};  // CUPTI's own thread asks, too
};
Records records;

void request_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* limit) {
  *size = records.buffer_bytes;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
  *limit = 0;
}

void take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t, std::size_t valid) {
  const std::lock_guard lock(records.mutex);
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    const void* const raw = record;
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
      records.kernels.push_back(*static_cast<const KernelRecord*>(raw));
    if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
      records.copies.push_back(*static_cast<const CopyRecord*>(raw));
    if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
      records.sets.push_back(*static_cast<const CUpti_ActivityMemset4*>(raw));
    if (record->kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)
      records.correlations.push_back(*static_cast<const CUpti_ActivityExternalCorrelation*>(raw));
    if (record->kind == CUPTI_ACTIVITY_KIND_DRIVER)
      records.calls.push_back(*static_cast<const CUpti_ActivityAPI*>(raw));
  }
  std::free(buffer);
}

#define CUPTI_SUCCEEDS(CALL) CHECK((CALL) == CUPTI_SUCCESS)

// Activity collection from here to the end of the test.
struct Profiling {
  Profiling() {
    records.kernels.clear();
    records.copies.clear();
    records.sets.clear();
    records.correlations.clear();
    records.calls.clear();
    CUPTI_SUCCEEDS(cuptiActivityRegisterCallbacks(request_buffer, take_buffer));
    for (const CUpti_ActivityKind kind :
         {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
          CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION})
      CUPTI_SUCCEEDS(cuptiActivityEnable(kind));
  }
  ~Profiling() { cuptiFinalize(); }
};

}  // namespace

TEST_CASE("Activity records hold the exact time and shape of a kernel", "[cupti]") {
  Session session;
  const Profiling profiling;
  const CUfunction arithmetic = session.function("arithmetic");
  SUCCEEDS(cuLaunchKernel(arithmetic, 3, 2, 1, 64, 2, 1, 1024, nullptr, nullptr, nullptr));
  const double expected = session.last_time();
  // Not complete yet by the host's clock.
  CUPTI_SUCCEEDS(cuptiActivityFlushAll(0));
  CHECK(records.kernels.empty());
  SUCCEEDS(cuCtxSynchronize());
  std::uint64_t now = 0;
  CUPTI_SUCCEEDS(cuptiGetTimestamp(&now));
  CUPTI_SUCCEEDS(cuptiActivityFlushAll(0));
  REQUIRE(records.kernels.size() == 1);
  const KernelRecord& kernel = records.kernels.front();
  CHECK(std::string(kernel.name) == "arithmetic");
  CHECK(static_cast<double>(kernel.end - kernel.start) * 1e-9 == Approx(expected).margin(2e-9));
  CHECK(kernel.end <= now);
  CHECK(kernel.gridX == 3);
  CHECK(kernel.gridY == 2);
  CHECK(kernel.blockX == 64);
  CHECK(kernel.blockY == 2);
  CHECK(kernel.dynamicSharedMemory == 1024);
  CHECK(kernel.registersPerThread == 32);
  std::uint32_t context_id = 0;
  CUPTI_SUCCEEDS(cuptiGetContextId(session.context, &context_id));
  CHECK(kernel.contextId == context_id);
}

TEST_CASE("A pushed id is tied to the launches made meanwhile", "[cupti]") {
  Session session;
  const Profiling profiling;
  const CUfunction empty = session.function("empty");
  constexpr auto custom = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
  SUCCEEDS(session.launch(empty, 1, 32));
  for (const std::uint64_t id : {41U, 42U}) {
    CUPTI_SUCCEEDS(cuptiActivityPushExternalCorrelationId(custom, id));
    SUCCEEDS(session.launch(empty, 1, 32));
    std::uint64_t popped = 0;
    CUPTI_SUCCEEDS(cuptiActivityPopExternalCorrelationId(custom, &popped));
    CHECK(popped == id);
  }
  CHECK(cuptiActivityPopExternalCorrelationId(custom, nullptr) == CUPTI_ERROR_QUEUE_EMPTY);
  SUCCEEDS(cuCtxSynchronize());
  CUPTI_SUCCEEDS(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  REQUIRE(records.kernels.size() == 3);
  REQUIRE(records.correlations.size() == 2);
  CHECK(records.correlations[0].externalId == 41);
  CHECK(records.correlations[0].correlationId == records.kernels[1].correlationId);
  CHECK(records.correlations[1].correlationId == records.kernels[2].correlationId);
}

TEST_CASE("Copies and sets are recorded and can be left out", "[cupti]") {
  Session session;
  const Profiling profiling;
  const CUdeviceptr x = session.memory(4096);
  std::vector<float> host(1024);
  SUCCEEDS(cuMemcpyDtoH_v2(host.data(), x, 4096));
  CUPTI_SUCCEEDS(cuptiActivityDisable(CUPTI_ACTIVITY_KIND_MEMCPY));
  SUCCEEDS(cuMemcpyDtoH_v2(host.data(), x, 4096));
  SUCCEEDS(cuCtxSynchronize());
  CUPTI_SUCCEEDS(cuptiActivityFlushAll(0));
  REQUIRE(records.copies.size() == 1);
  CHECK(records.copies.front().bytes == 4096);
  CHECK(records.copies.front().copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH);
  REQUIRE(records.sets.size() == 1);
  CHECK(records.sets.front().bytes == 4096);
  CHECK(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_NVLINK) == CUPTI_ERROR_INVALID_KIND);
}

TEST_CASE("Launches cost the host more while CUPTI listens, and no more afterwards", "[cupti]") {
  Session session;
  const CUfunction empty = session.function("empty");
  const auto cost = [&] {
    const double before = simcuda_host_time();
    for (int i = 0; i < 100; ++i) (void)session.launch(empty, 1, 32);
    return (simcuda_host_time() - before) / 100;
  };
  const double without = cost();
  {
    const Profiling profiling;
    CHECK(cost() > without + 2e-6);
  }
  CHECK(cost() == Approx(without));
}

TEST_CASE("Full buffers are handed on by CUPTI itself", "[cupti]") {
  Session session;
  records.buffer_bytes = 64 << 10;
  const Profiling profiling;
  const CUfunction empty = session.function("empty");
  const auto arrived = [] {
    const std::lock_guard lock(records.mutex);
    return records.kernels.size();
  };
  const auto await = [&](std::size_t wanted) {
    for (int i = 0; i < 30000 && arrived() < wanted; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  for (std::size_t done = 0; done < 20000; done += 1000) {
    for (int i = 0; i < 1000; ++i) SUCCEEDS(session.launch(empty, 1, 32));
    // On a busy machine the thread of CUPTI may be late. It holds no more than two buffers back.
    await(done > 1000 ? done - 1000 : 0);
  }
  SUCCEEDS(cuCtxSynchronize());
  CUPTI_SUCCEEDS(cuptiActivityFlushAll(0));
  await(20000);
  std::size_t dropped = 1;
  CUPTI_SUCCEEDS(cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped));
  CHECK(dropped == 0);
  CHECK(arrived() == 20000);
  records.buffer_bytes = 4096;
}

TEST_CASE("A client without buffers loses records and is told", "[cupti]") {
  Session session;
  const Profiling profiling;
  CUPTI_SUCCEEDS(cuptiActivityRegisterCallbacks(
      [](std::uint8_t** buffer, std::size_t* size, std::size_t* limit) {
        *buffer = nullptr;
        *size = *limit = 0;
      },
      take_buffer));
  SUCCEEDS(session.launch(session.function("empty"), 1, 32));
  CUPTI_SUCCEEDS(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  const auto dropped = [] {
    std::size_t count = 0;
    CUPTI_SUCCEEDS(cuptiActivityGetNumDroppedRecords(nullptr, 0, &count));
    return count;
  };
  CHECK(dropped() == 1);
  SUCCEEDS(session.launch(session.function("empty"), 1, 32));
  CUPTI_SUCCEEDS(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  CUPTI_SUCCEEDS(cuptiFinalize());
  CHECK(dropped() == 0);  // the next client lost nothing
}

TEST_CASE("One subscriber sees the launches, a second one is refused", "[cupti]") {
  Session session;
  struct Seen {
    int entered = 0;
    int left = 0;
    unsigned block = 0;
  } seen;
  const CUpti_CallbackFunc callback = [](void* data, CUpti_CallbackDomain, CUpti_CallbackId,
                                         const void* raw) {
    auto& to = *static_cast<Seen*>(data);
    const auto& info = *static_cast<const CUpti_CallbackData*>(raw);
    ++(info.callbackSite == CUPTI_API_ENTER ? to.entered : to.left);
    to.block = static_cast<const cuLaunchKernel_params*>(info.functionParams)->blockDimX;
  };
  CUpti_SubscriberHandle subscriber = nullptr;
  CUPTI_SUCCEEDS(cuptiSubscribe(&subscriber, callback, &seen));
  CUpti_SubscriberHandle other = nullptr;
  CHECK(cuptiSubscribe(&other, callback, &seen) == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  SUCCEEDS(session.launch(session.function("empty"), 1, 32));
  CHECK(seen.entered == 0);
  CUPTI_SUCCEEDS(cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API,
                                     CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
  SUCCEEDS(session.launch(session.function("empty"), 1, 96));
  CHECK(seen.entered == 1);
  CHECK(seen.left == 1);
  CHECK(seen.block == 96);
  CUPTI_SUCCEEDS(cuptiUnsubscribe(subscriber));
  SUCCEEDS(session.launch(session.function("empty"), 1, 32));
  CHECK(seen.entered == 1);
}

TEST_CASE("Driver calls are recorded for the entry points that were chosen", "[cupti]") {
  Session session;
  const Profiling profiling;
  CUPTI_SUCCEEDS(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER));
  for (CUpti_CallbackId call = 1; call < CUPTI_DRIVER_TRACE_CBID_SIZE; ++call) {
    CUPTI_SUCCEEDS(
        cuptiActivityEnableDriverApi(call, call == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel));
  }
  const CUfunction empty = session.function("empty");
  SUCCEEDS(session.launch(empty, 1, 32));
  SUCCEEDS(cuLaunchCooperativeKernel(empty, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr));
  SUCCEEDS(cuCtxSynchronize());
  CUPTI_SUCCEEDS(cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED));
  REQUIRE(records.calls.size() == 1);
  CHECK(records.calls.front().cbid == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  REQUIRE(records.kernels.size() == 2);
  CHECK(records.calls.front().correlationId == records.kernels.front().correlationId);
}

TEST_CASE("CUPTI names its version and results", "[cupti]") {
  std::uint32_t version = 0;
  CUPTI_SUCCEEDS(cuptiGetVersion(&version));
  CHECK(version == CUPTI_API_VERSION);
  const char* text = nullptr;
  CUPTI_SUCCEEDS(cuptiGetResultString(CUPTI_ERROR_INVALID_KIND, &text));
  CHECK(std::string(text) == "CUPTI_ERROR_INVALID_KIND");
}
