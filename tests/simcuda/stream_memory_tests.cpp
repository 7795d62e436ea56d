// Values in memory that streams wait for and write, and variables of a module.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "session.hpp"

namespace {

CUstream make_stream() {
  CUstream stream = nullptr;
  SUCCEEDS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

}  // namespace

TEST_CASE("A stream that waits for a value orders two streams, in every order", "[stream]") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    simcuda_set_order(seed == 0 ? 0 : 1, seed);
    Session session;
    const CUdeviceptr flag = session.memory(8);
    CUdeviceptr x = session.memory(64);
    CUdeviceptr y = session.memory(64);
    SUCCEEDS(cuCtxSynchronize());
    const CUstream producer = make_stream();
    const CUstream consumer = make_stream();
    int n = 16;
    float value = 2;
    // The consumer is first on purpose.
    SUCCEEDS(cuStreamWaitValue32_v2(consumer, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
    SUCCEEDS(session.launch(session.function("add"), 1, 32, {&n, &x, &y}, 0, consumer));
    CHECK(cuStreamQuery(consumer) == CUDA_ERROR_NOT_READY);
    SUCCEEDS(session.launch(session.function("fill"), 1, 32, {&n, &x, &value}, 0, producer));
    SUCCEEDS(cuStreamWriteValue32_v2(producer, flag, 1, 0));
    SUCCEEDS(cuStreamSynchronize(consumer));
    CHECK(session.floats(y, 16) == std::vector<float>(16, 2.0F));
    SUCCEEDS(cuStreamSynchronize(producer));
    simcuda_set_order(0, 0);
  }
}

TEST_CASE("The host lets a stream go on by writing what it waits for", "[stream]") {
  Session session;
  const CUdeviceptr x = session.memory(64);
  SUCCEEDS(cuCtxSynchronize());
  void* flag = nullptr;
  SUCCEEDS(cuMemHostAlloc(&flag, 8, 0));
  const std::atomic_ref<std::uint64_t> value(*static_cast<std::uint64_t*>(flag));
  value = 0;
  const CUstream stream = make_stream();
  SUCCEEDS(cuStreamWaitValue64_v2(stream, reinterpret_cast<CUdeviceptr>(flag), 5,
                                  CU_STREAM_WAIT_VALUE_GEQ));
  SUCCEEDS(cuMemsetD32Async(x, 3, 16, stream));
  // A stream of its own is not held up.
  std::uint32_t seen = 1;
  SUCCEEDS(cuMemcpyDtoH_v2(&seen, x, 4));
  CHECK(seen == 0);
  std::thread host([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    value = 7;
  });
  SUCCEEDS(cuStreamSynchronize(stream));
  host.join();
  SUCCEEDS(cuMemcpyDtoH_v2(&seen, x, 4));
  CHECK(seen == 3);
  SUCCEEDS(cuMemFreeHost(flag));
}

TEST_CASE("A batch of values is in the order of its stream", "[stream]") {
  Session session;
  const CUdeviceptr flags = session.memory(16);
  const CUstream stream = make_stream();
  SUCCEEDS(cuCtxSynchronize());
  CUstreamBatchMemOpParams operations[3]{};
  operations[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operations[0].writeValue.address = flags;
  operations[0].writeValue.value = 6;
  operations[1].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operations[1].waitValue.address = flags;
  operations[1].waitValue.value = 2;
  operations[1].waitValue.flags = CU_STREAM_WAIT_VALUE_AND;
  operations[2].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  operations[2].writeValue.address = flags + 8;
  operations[2].writeValue.value64 = 9;
  SUCCEEDS(cuStreamBatchMemOp_v2(stream, 3, operations, 0));
  SUCCEEDS(cuStreamSynchronize(stream));
  std::uint64_t seen[2]{};
  SUCCEEDS(cuMemcpyDtoH_v2(seen, flags, 16));
  CHECK(seen[0] == 6);
  CHECK(seen[1] == 9);
  CHECK(cuStreamWriteValue32_v2(stream, flags + 2, 1, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("Kernels reach the variables of their own module", "[module]") {
  Session session;
  CUmodule other = nullptr;
  SUCCEEDS(cuModuleLoadData(&other, test_image()));
  CUdeviceptr counter = 0;
  CUdeviceptr other_counter = 0;
  std::size_t bytes = 0;
  SUCCEEDS(cuModuleGetGlobal_v2(&counter, &bytes, session.module, "counter"));
  SUCCEEDS(cuModuleGetGlobal_v2(&other_counter, nullptr, other, "counter"));
  CHECK(bytes == 16);
  int start = 40;
  int two = 2;
  SUCCEEDS(cuMemcpyHtoD_v2(counter, &start, 4));
  SUCCEEDS(session.launch(session.function("count"), 1, 1, {&two}));
  int seen = 0;
  SUCCEEDS(cuMemcpyDtoH_v2(&seen, counter, 4));
  CHECK(seen == 42);
  SUCCEEDS(cuMemcpyDtoH_v2(&seen, other_counter, 4));
  CHECK(seen == 0);
  // The driver knows the variable as memory of the device.
  CUdeviceptr begin = 0;
  SUCCEEDS(cuMemGetAddressRange_v2(&begin, &bytes, counter + 4));
  CHECK(begin == counter);
  CHECK(bytes == 16);
  CHECK(cuMemcpyHtoD_v2(counter, seen == 0 ? "0123456789abcdefghij" : "", 20) ==
        CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(cuModuleUnload(other));
}

TEST_CASE("A kernel of a library reaches the library's variable", "[module]") {
  Session session;
  CUlibrary library = nullptr;
  SUCCEEDS(cuLibraryLoadData(&library, test_image(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  CUkernel kernel = nullptr;
  SUCCEEDS(cuLibraryGetKernel(&kernel, library, "count"));
  int two = 2;
  SUCCEEDS(session.launch(reinterpret_cast<CUfunction>(kernel), 1, 1, {&two}));
  CUdeviceptr counter = 0;
  SUCCEEDS(cuLibraryGetGlobal(&counter, nullptr, library, "counter"));
  int seen = 0;
  SUCCEEDS(cuMemcpyDtoH_v2(&seen, counter, 4));
  CHECK(seen == 2);
  SUCCEEDS(cuLibraryUnload(library));
}
