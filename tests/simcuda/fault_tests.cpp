#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "session.hpp"

namespace {

void set_fault(const char* text) {
  REQUIRE(simcuda_set_fault(text) == 0);
}

}  // namespace

TEST_CASE("A launch can be made to fail for one kernel and one block size", "[fault]") {
  Session session;
  set_fault("launch_fail:empty:block=256");
  const CUfunction empty = session.function("empty");
  SUCCEEDS(session.launch(empty, 1, 128));
  CHECK(session.launch(empty, 1, 256) == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  SUCCEEDS(session.launch(session.function("arithmetic"), 1, 256));
  // The context is as good as before.
  SUCCEEDS(cuCtxSynchronize());
}

TEST_CASE("Faults count launches and choose their error", "[fault]") {
  Session session;
  set_fault("launch_fail:*:after=2,times=1,error=1");
  const CUfunction empty = session.function("empty");
  SUCCEEDS(session.launch(empty, 1, 32));
  SUCCEEDS(session.launch(empty, 1, 32));
  CHECK(session.launch(empty, 1, 32) == CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(session.launch(empty, 1, 32));
}

TEST_CASE("A wrong result differs in one bit", "[fault]") {
  Session session;
  set_fault("wrong_result:fill:times=1");
  const CUdeviceptr x = session.memory(16);
  int n = 4;
  CUdeviceptr out = x;
  float value = 1.0F;
  SUCCEEDS(session.launch(session.function("fill"), 1, 32, {&n, &out, &value}));
  const auto spoiled = session.floats(x, 4);
  CHECK(spoiled[0] != 1.0F);
  CHECK(spoiled[0] == Approx(1.0F));
  CHECK(spoiled[1] == 1.0F);
  SUCCEEDS(session.launch(session.function("fill"), 1, 32, {&n, &out, &value}));
  CHECK(session.floats(x, 4) == std::vector<float>(4, 1.0F));
}

TEST_CASE("A sticky error stays until the context is gone", "[fault]") {
  {
    Session session;
    set_fault("sticky:empty");
    SUCCEEDS(session.launch(session.function("empty"), 1, 32));
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    CUdeviceptr memory = 0;
    CHECK(cuMemAlloc_v2(&memory, 4) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  Session session;
  SUCCEEDS(session.launch(session.function("empty"), 1, 32));
  SUCCEEDS(cuCtxSynchronize());
}

TEST_CASE("A kernel that hangs never finishes", "[fault]") {
  Session session;
  CUevent event = nullptr;
  SUCCEEDS(cuEventCreate(&event, 0));
  CUstream stream = nullptr;
  SUCCEEDS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  set_fault("hang:empty");
  SUCCEEDS(session.launch(session.function("empty"), 1, 32, {}, 0, stream));
  SUCCEEDS(cuEventRecord(event, stream));
  for (int i = 0; i < 10000; ++i) REQUIRE(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
  // Other streams go on; waiting for this one blocks.
  SUCCEEDS(session.launch(session.function("arithmetic"), 1, 32));
  SUCCEEDS(cuStreamSynchronize(nullptr));
  const pid_t child = fork();
  if (child == 0) {
    cuStreamSynchronize(stream);
    _exit(0);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  int status = 0;
  CHECK(waitpid(child, &status, WNOHANG) == 0);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  SUCCEEDS(cuStreamDestroy_v2(stream));
}

TEST_CASE("Names with colons can be faulted", "[fault]") {
  CHECK(simcuda_set_fault("launch_fail:space::kernel<int>:block=64") == 0);
  CHECK(simcuda_set_fault("launch_fail:space::kernel<int>") == 0);
  CHECK(simcuda_set_fault("") == 0);
}

TEST_CASE("A fault that is not understood is refused", "[fault]") {
  CHECK(simcuda_set_fault("explode:empty") == -1);
  CHECK(simcuda_set_fault("launch_fail") == -1);
  CHECK(simcuda_set_fault("launch_fail:empty:block=many") == -1);
  CHECK(simcuda_set_fault("launch_fail:empty:colour=3") == -1);
}

TEST_CASE("A machine without a device says so", "[fault]") {
  const pid_t child = fork();
  if (child == 0) {
    setenv("SIMCUDA_FAULT", "no_device", 1);
    execl("/proc/self/exe", "fault_tests", "[.no_device]", static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("cuInit fails without a device", "[.no_device]") {
  REQUIRE(cuInit(0) == CUDA_ERROR_NO_DEVICE);
}
