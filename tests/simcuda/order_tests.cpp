// Deferred effects: right programs are right in every order, wrong ones are wrong in some.
#include <atomic>
#include <thread>

#include "orders.hpp"

namespace {

float produce_and_consume(Session& session, bool edge) {
  const Kernels kernels(session);
  const CUdeviceptr x = session.memory(64);
  const CUdeviceptr y = session.memory(64);
  SUCCEEDS(cuCtxSynchronize());
  const CUstream producer = make_stream();
  const CUstream consumer = make_stream();
  const CUevent made = make_event();
  for (const float value : {1.0F, 2.0F, 3.0F}) kernels.fill(x, value, producer);
  SUCCEEDS(cuEventRecord(made, producer));
  if (edge) SUCCEEDS(cuStreamWaitEvent(consumer, made, 0));
  kernels.add(x, y, consumer);
  SUCCEEDS(cuStreamSynchronize(consumer));
  const float value = session.floats(y, 1)[0];
  SUCCEEDS(cuStreamDestroy_v2(producer));
  SUCCEEDS(cuStreamDestroy_v2(consumer));
  return value;
}

}  // namespace

TEST_CASE("Two streams need the event between them", "[order]") {
  const auto with_edge = [](Session& session) { return produce_and_consume(session, true); };
  const auto without = [](Session& session) { return produce_and_consume(session, false); };
  CHECK(always(3, with_edge));
  CHECK(sometimes(3, without));
}

TEST_CASE("One stream keeps its order whatever the seed", "[order]") {
  const auto program = [](Session& session) {
    const Kernels kernels(session);
    const CUdeviceptr x = session.memory(64);
    const CUdeviceptr y = session.memory(64);
    const CUstream stream = make_stream(CU_STREAM_DEFAULT);
    kernels.fill(x, 1, stream);
    SUCCEEDS(cuMemsetD32Async(y, 0, length, stream));
    for (int i = 0; i < 5; ++i) kernels.add(x, y, stream);
    Pinned result(64);
    SUCCEEDS(cuMemcpyDtoHAsync_v2(result.floats(), y, 64, stream));
    SUCCEEDS(cuMemsetD32Async(y, 0, length, stream));
    SUCCEEDS(cuStreamSynchronize(stream));
    return result.floats()[length - 1];
  };
  CHECK(always(5, program));
}

TEST_CASE("A wait is for the record before it, not for a later one", "[order]") {
  const auto program = [](bool wait_after_second_record) {
    return [wait_after_second_record](Session& session) {
      const Kernels kernels(session);
      const CUdeviceptr x = session.memory(64);
      const CUdeviceptr y = session.memory(64);
      SUCCEEDS(cuCtxSynchronize());
      const CUstream one = make_stream();
      const CUstream two = make_stream();
      const CUevent event = make_event();
      kernels.fill(x, 1, one);
      SUCCEEDS(cuEventRecord(event, one));
      if (!wait_after_second_record) SUCCEEDS(cuStreamWaitEvent(two, event, 0));
      kernels.fill(x, 2, one);
      SUCCEEDS(cuEventRecord(event, one));
      if (wait_after_second_record) SUCCEEDS(cuStreamWaitEvent(two, event, 0));
      kernels.add(x, y, two);
      SUCCEEDS(cuCtxSynchronize());
      return session.floats(y, 1)[0];
    };
  };
  CHECK(always(2, program(true)));
  const unsigned first = orders_with(1, program(false));
  const unsigned second = orders_with(2, program(false));
  CHECK(first > 0);
  CHECK(first + second == seeds);
}

TEST_CASE("The legacy stream and blocking streams wait for each other", "[order]") {
  // first -> second -> first, with nothing but the implicit order between them.
  const auto program = [](CUstream legacy, unsigned flags, bool destroy) {
    return [=](Session& session) {
      const Kernels kernels(session);
      const CUdeviceptr x = session.memory(64);
      const CUdeviceptr y = session.memory(64);
      const CUdeviceptr z = session.memory(64);
      SUCCEEDS(cuCtxSynchronize());
      const CUstream one = make_stream(flags);
      const CUstream two = make_stream(flags);
      kernels.fill(x, 3, one);
      if (destroy) SUCCEEDS(cuStreamDestroy_v2(one));
      kernels.add(x, y, legacy);
      kernels.add(y, z, two);
      SUCCEEDS(cuStreamSynchronize(two));
      return session.floats(z, 1)[0];
    };
  };
  CHECK(always(3, program(nullptr, CU_STREAM_DEFAULT, false)));
  CHECK(always(3, program(CU_STREAM_LEGACY, CU_STREAM_DEFAULT, true)));
  CHECK(sometimes(3, program(nullptr, CU_STREAM_NON_BLOCKING, false)));
  // The stream of a thread is an ordinary blocking stream.
  CHECK(sometimes(3, program(CU_STREAM_PER_THREAD, CU_STREAM_DEFAULT, false)));
}

TEST_CASE("Host functions keep their place in the stream", "[order]") {
  const auto program = [](Session& session) {
    const CUdeviceptr x = session.memory(64);
    SUCCEEDS(cuCtxSynchronize());
    const CUstream stream = make_stream();
    Pinned source(64);
    source.floats()[0] = 1;
    SUCCEEDS(cuMemcpyHtoDAsync_v2(x, source.floats(), 64, stream));
    SUCCEEDS(cuLaunchHostFunc(
        stream, [](void* to) { *static_cast<float*>(to) += 3; }, source.floats()));
    SUCCEEDS(cuMemcpyHtoDAsync_v2(x, source.floats(), 64, stream));
    const CUevent event = make_event();
    SUCCEEDS(cuEventRecord(event, stream));
    SUCCEEDS(cuEventSynchronize(event));
    return session.floats(x, 1)[0];
  };
  CHECK(always(4, program));
}

TEST_CASE("What a query calls done is done", "[order]") {
  const auto program = [](Session& session) {
    const CUdeviceptr x = session.memory(64);
    SUCCEEDS(cuCtxSynchronize());
    const CUstream stream = make_stream();
    const CUevent event = make_event();
    Pinned result(64);
    Kernels(session).fill(x, 6, stream);
    SUCCEEDS(cuMemcpyDtoHAsync_v2(result.floats(), x, 64, stream));
    SUCCEEDS(cuEventRecord(event, stream));
    while (cuEventQuery(event) == CUDA_ERROR_NOT_READY) {
    }
    const float seen = result.floats()[0];
    while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY) {
    }
    return seen;
  };
  CHECK(always(6, program));
}

// The host looks where the device writes, as programs do; a thread sanitizer cannot know it is
// meant.
#ifndef __SANITIZE_THREAD__
TEST_CASE("Work goes on for a program that only watches memory", "[order]") {
  simcuda_set_order(1, 1);
  Session session;
  const CUdeviceptr x = session.memory(64);
  SUCCEEDS(cuCtxSynchronize());
  const CUstream stream = make_stream();
  Pinned result(64);
  auto* const seen = reinterpret_cast<std::atomic<float>*>(result.floats());
  *seen = 0;
  SUCCEEDS(cuMemsetD32Async(x, 0x40000000, length, stream));
  SUCCEEDS(cuMemcpyDtoHAsync_v2(result.floats(), x, 64, stream));
  while (*seen != 2.0F) std::this_thread::yield();
  SUCCEEDS(cuStreamSynchronize(stream));
  simcuda_set_order(0, 0);
}
#endif

TEST_CASE("Memory freed on a stream stays until the work before is done", "[order]") {
  const auto program = [](Session& session) {
    const Kernels kernels(session);
    const CUdeviceptr y = session.memory(64);
    const CUstream stream = make_stream();
    SUCCEEDS(cuCtxSynchronize());
    for (int i = 0; i < 3; ++i) {
      CUdeviceptr x = 0;
      SUCCEEDS(cuMemAllocAsync(&x, 64, stream));
      kernels.fill(x, 1, stream);
      kernels.add(x, y, stream);
      SUCCEEDS(cuMemFreeAsync(x, stream));
      if (cuMemFreeAsync(x, stream) == CUDA_SUCCESS) return -1.0F;
    }
    SUCCEEDS(cuStreamSynchronize(stream));
    return session.floats(y, 1)[0];
  };
  CHECK(always(3, program));
}

TEST_CASE("Freeing memory waits for all that may use it", "[order]") {
  const auto program = [](Session& session) {
    const CUdeviceptr y = session.memory(64);
    const CUstream stream = make_stream();
    CUdeviceptr x = 0;
    SUCCEEDS(cuMemAlloc_v2(&x, 64));
    SUCCEEDS(cuCtxSynchronize());
    Kernels(session).fill(x, 2, stream);
    Kernels(session).add(x, y, stream);
    SUCCEEDS(cuMemFree_v2(x));
    return session.floats(y, 1)[0];
  };
  CHECK(always(2, program));
}

TEST_CASE("Times are the same in every order", "[order]") {
  const auto seconds = [](bool deferred, unsigned seed) {
    simcuda_set_order(deferred ? 1 : 0, seed);
    Session session;
    const CUdeviceptr x = session.memory(64);
    SUCCEEDS(cuCtxSynchronize());
    const double before = simcuda_host_time();
    const CUstream one = make_stream();
    const CUstream two = make_stream(CU_STREAM_DEFAULT);
    for (int i = 0; i < 20; ++i) {
      Kernels(session).fill(x, 1, i % 3 == 0 ? one : two);
      SUCCEEDS(session.launch(session.function("arithmetic"), 66, 256, {}, 0, two));
    }
    SUCCEEDS(cuMemsetD8Async(x, 0, 64, one));
    while (cuStreamQuery(one) == CUDA_ERROR_NOT_READY) {
    }
    SUCCEEDS(cuCtxSynchronize());
    const double after = simcuda_host_time();
    simcuda_set_order(0, 0);
    return after - before;
  };
  const double meant = seconds(false, 0);
  for (unsigned seed = 0; seed < 20; ++seed) CHECK(seconds(true, seed) == Approx(meant));
}

TEST_CASE("Faults keep their meaning when effects are deferred", "[order][fault]") {
  simcuda_set_order(1, 3);
  {
    Session session;
    const CUdeviceptr x = session.memory(64);
    REQUIRE(simcuda_set_fault("wrong_result:fill:after=1,times=1") == 0);
    Kernels(session).fill(x, 1, nullptr);
    CHECK(session.floats(x, 1)[0] == 1.0F);
    Kernels(session).fill(x, 1, nullptr);
    CHECK(session.floats(x, 1)[0] != 1.0F);
    REQUIRE(simcuda_set_fault("sticky:empty") == 0);
    SUCCEEDS(session.launch(session.function("empty"), 1, 32));
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  Session session;
  const CUstream stream = make_stream();
  REQUIRE(simcuda_set_fault("hang:empty") == 0);
  SUCCEEDS(session.launch(session.function("empty"), 1, 32, {}, 0, stream));
  for (int i = 0; i < 1000; ++i) REQUIRE(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  SUCCEEDS(cuStreamSynchronize(nullptr));
  SUCCEEDS(cuStreamDestroy_v2(stream));
  simcuda_set_order(0, 0);
}
