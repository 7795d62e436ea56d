#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "session.hpp"

namespace {

CUstream make_stream(unsigned flags) {
  CUstream stream = nullptr;
  SUCCEEDS(cuStreamCreate(&stream, flags));
  return stream;
}

CUevent make_event(unsigned flags = 0) {
  CUevent event = nullptr;
  SUCCEEDS(cuEventCreate(&event, flags));
  return event;
}

double seconds_between(CUevent start, CUevent end) {
  float milliseconds = 0;
  SUCCEEDS(cuEventSynchronize(end));
  SUCCEEDS(cuEventElapsedTime(&milliseconds, start, end));
  return milliseconds * 1e-3;
}

}  // namespace

TEST_CASE("Events read about 5 us more than the kernel between them", "[stream]") {
  Session session;
  const CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  const CUevent start = make_event();
  const CUevent end = make_event();
  const CUfunction arithmetic = session.function("arithmetic");
  for (const unsigned grid : {132U, 528U}) {
    SUCCEEDS(cuEventRecord(start, stream));
    SUCCEEDS(session.launch(arithmetic, grid, 128, {}, 0, stream));
    SUCCEEDS(cuEventRecord(end, stream));
    const double overhead = seconds_between(start, end) - session.last_time();
    CHECK(overhead > 4e-6);
    CHECK(overhead < 7e-6);
  }
}

TEST_CASE("Small kernels on two streams overlap and large ones take turns", "[stream]") {
  Session session;
  const CUfunction arithmetic = session.function("arithmetic");
  const auto both = [&](unsigned grid) {
    const CUstream one = make_stream(CU_STREAM_NON_BLOCKING);
    const CUstream two = make_stream(CU_STREAM_NON_BLOCKING);
    SUCCEEDS(cuCtxSynchronize());
    const double before = simcuda_host_time();
    SUCCEEDS(session.launch(arithmetic, grid, 1024, {}, 0, one));
    const double alone = session.last_time();
    SUCCEEDS(session.launch(arithmetic, grid, 1024, {}, 0, two));
    SUCCEEDS(cuCtxSynchronize());
    return (simcuda_host_time() - before) / alone;
  };
  CHECK(both(66) < 1.3);  // a quarter of the device each
  CHECK(both(2 * 132) > 1.9);
}

TEST_CASE("The legacy stream waits for blocking streams and they for it", "[stream]") {
  Session session;
  const CUfunction arithmetic = session.function("arithmetic");
  const auto time_with = [&](CUstream first, CUstream second) {
    SUCCEEDS(cuCtxSynchronize());
    const double before = simcuda_host_time();
    SUCCEEDS(session.launch(arithmetic, 33, 256, {}, 0, first));
    const double alone = session.last_time();
    SUCCEEDS(session.launch(arithmetic, 33, 256, {}, 0, second));
    SUCCEEDS(cuCtxSynchronize());
    return (simcuda_host_time() - before) / alone;
  };
  const CUstream blocking = make_stream(CU_STREAM_DEFAULT);
  const CUstream free_stream = make_stream(CU_STREAM_NON_BLOCKING);
  CHECK(time_with(blocking, nullptr) > 1.9);
  CHECK(time_with(nullptr, blocking) > 1.9);
  CHECK(time_with(free_stream, nullptr) < 1.3);
  CHECK(time_with(CU_STREAM_PER_THREAD, CU_STREAM_LEGACY) > 1.9);
  CHECK(time_with(CU_STREAM_PER_THREAD, free_stream) < 1.3);
}

TEST_CASE("Waiting for an event orders two streams", "[stream]") {
  Session session;
  const CUstream one = make_stream(CU_STREAM_NON_BLOCKING);
  const CUstream two = make_stream(CU_STREAM_NON_BLOCKING);
  const CUevent done = make_event(CU_EVENT_DISABLE_TIMING);
  const CUfunction arithmetic = session.function("arithmetic");
  SUCCEEDS(cuCtxSynchronize());
  const double before = simcuda_host_time();
  SUCCEEDS(session.launch(arithmetic, 33, 256, {}, 0, one));
  const double alone = session.last_time();
  SUCCEEDS(cuEventRecord(done, one));
  SUCCEEDS(cuStreamWaitEvent(two, done, 0));
  SUCCEEDS(session.launch(arithmetic, 33, 256, {}, 0, two));
  SUCCEEDS(cuStreamSynchronize(two));
  CHECK(simcuda_host_time() - before > 1.9 * alone);
  float milliseconds = 0;
  CHECK(cuEventElapsedTime(&milliseconds, done, done) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("Whoever waits for a context waits for the work of streams that were destroyed",
          "[stream]") {
  Session session;
  const CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  const CUevent end = make_event();
  const double before = simcuda_host_time();
  SUCCEEDS(session.launch(session.function("arithmetic"), 1U << 16, 1024, {}, 0, stream));
  const double alone = session.last_time();
  SUCCEEDS(cuEventRecord(end, stream));
  SUCCEEDS(cuStreamDestroy(stream));
  CHECK(cuEventQuery(end) == CUDA_ERROR_NOT_READY);
  SUCCEEDS(cuCtxSynchronize());
  CHECK(simcuda_host_time() - before >= alone);
  SUCCEEDS(cuEventQuery(end));
}

TEST_CASE("A query says not ready until the work is over, however it is asked", "[stream]") {
  Session session;
  const CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  const CUevent event = make_event();
  CHECK(cuEventQuery(event) == CUDA_SUCCESS);  // never recorded
  for (int i = 0; i < 100; ++i)
    SUCCEEDS(session.launch(session.function("arithmetic"), 132, 32, {}, 0, stream));
  SUCCEEDS(cuEventRecord(event, stream));
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  int questions = 0;
  while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) ++questions;
  CHECK(questions > 0);
  CHECK(questions < 1000);
  CHECK(cuStreamQuery(stream) == CUDA_SUCCESS);
}

TEST_CASE("The host is held up when a stream has too much in flight", "[stream]") {
  Session session;
  const CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  const CUfunction arithmetic = session.function("arithmetic");
  SUCCEEDS(session.launch(arithmetic, 132, 32, {}, 0, stream));
  const double each = session.last_time();
  const double before = simcuda_host_time();
  for (int i = 0; i < 3000; ++i) SUCCEEDS(session.launch(arithmetic, 132, 32, {}, 0, stream));
  CHECK(simcuda_host_time() - before > 1900 * each);
}

TEST_CASE("Host functions run once, in order, before the stream is idle", "[stream]") {
  Session session;
  const CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
  static std::atomic<int> calls;
  calls = 0;
  const CUhostFn slow = [](void* expected) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (calls == *static_cast<int*>(expected)) ++calls;
  };
  int first = 0;
  int second = 1;
  SUCCEEDS(cuLaunchHostFunc(stream, slow, &first));
  SUCCEEDS(cuLaunchHostFunc(stream, slow, &second));
  SUCCEEDS(cuStreamSynchronize(stream));
  CHECK(calls == 2);
}

TEST_CASE("A stream tells its number, context, priority and attributes", "[stream]") {
  Session session;
  CUstream stream = nullptr;
  SUCCEEDS(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -2));
  unsigned long long id = 0;
  unsigned long long of_other = 0;
  SUCCEEDS(cuStreamGetId(stream, &id));
  SUCCEEDS(cuStreamGetId(make_stream(CU_STREAM_DEFAULT), &of_other));
  CHECK(id != of_other);
  SUCCEEDS(cuStreamGetId(nullptr, &id));
  SUCCEEDS(cuStreamGetId(CU_STREAM_LEGACY, &of_other));
  CHECK(id == of_other);
  CUcontext context = nullptr;
  SUCCEEDS(cuStreamGetCtx(stream, &context));
  CHECK(context == session.context);
  int priority = 0;
  SUCCEEDS(cuStreamGetPriority(stream, &priority));
  CHECK(priority == -2);
  unsigned flags = 0;
  SUCCEEDS(cuStreamGetFlags(stream, &flags));
  CHECK(flags == CU_STREAM_NON_BLOCKING);

  CUstreamAttrValue value{};
  SUCCEEDS(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
  CHECK(value.priority == -2);
  SUCCEEDS(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &value));
  CHECK(value.memSyncDomainMap.remote == 1);
  value = {};
  value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
  SUCCEEDS(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
  const CUstream copy = make_stream(CU_STREAM_DEFAULT);
  SUCCEEDS(cuStreamCopyAttributes(copy, stream));
  SUCCEEDS(cuStreamGetAttribute(copy, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
  CHECK(value.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
  CHECK(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Threads may use the driver at the same time", "[stream]") {
  Session session;
  const CUfunction add = session.function("add");
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  std::vector<CUdeviceptr> memory;
  for (int i = 0; i < 4; ++i) memory.push_back(session.memory(4096));
  const CUdeviceptr ones = session.memory(4096);
  const std::vector<float> values(1024, 1.0F);
  SUCCEEDS(cuMemcpyHtoD_v2(ones, values.data(), 4096));
  for (int thread = 0; thread < 4; ++thread)
    threads.emplace_back([&, thread] {
      if (cuCtxSetCurrent(session.context) != CUDA_SUCCESS) ++failures;
      int n = 1024;
      CUdeviceptr in = ones;
      CUdeviceptr out = memory[static_cast<std::size_t>(thread)];
      void* arguments[] = {&n, &in, &out};
      for (int i = 0; i < 50; ++i)
        if (cuLaunchKernel(add, 4, 1, 1, 64, 1, 1, 0, CU_STREAM_PER_THREAD, arguments, nullptr) !=
            CUDA_SUCCESS)
          ++failures;
      if (cuStreamSynchronize(CU_STREAM_PER_THREAD) != CUDA_SUCCESS) ++failures;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  for (const CUdeviceptr out : memory)
    CHECK(session.floats(out, 1024) == std::vector<float>(1024, 50.0F));
}
