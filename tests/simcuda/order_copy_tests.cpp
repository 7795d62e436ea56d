// When copies read and write, where effects are deferred.
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "orders.hpp"

TEST_CASE("Pinned memory is read when the copy runs and pageable memory at the call", "[order]") {
  const auto program = [](bool pinned) {
    return [pinned](Session& session) {
      const CUdeviceptr x = session.memory(64);
      SUCCEEDS(cuCtxSynchronize());
      const CUstream stream = make_stream();
      Pinned memory(64);
      std::array<float, length> pageable{};
      float* const source = pinned ? memory.floats() : pageable.data();
      source[0] = 1;
      SUCCEEDS(cuMemcpyHtoDAsync_v2(x, source, 64, stream));
      source[0] = 2;
      SUCCEEDS(cuStreamSynchronize(stream));
      return session.floats(x, 1)[0];
    };
  };
  CHECK(always(1, program(false)));
  CHECK(sometimes(1, program(true)));
  CHECK(sometimes(2, program(true)));
}

TEST_CASE("A copy to pinned memory lands late and one to pageable memory before the call ends",
          "[order]") {
  const auto program = [](bool pinned) {
    return [pinned](Session& session) {
      const CUdeviceptr x = session.memory(64);
      const CUstream stream = make_stream();
      SUCCEEDS(cuCtxSynchronize());
      Pinned memory(64);
      std::array<float, length> pageable{};
      float* const to = pinned ? memory.floats() : pageable.data();
      to[0] = -1;
      Kernels(session).fill(x, 7, stream);
      SUCCEEDS(cuMemcpyDtoHAsync_v2(to, x, 64, stream));
      const float seen = to[0];
      SUCCEEDS(cuStreamSynchronize(stream));
      CHECK(to[0] == 7);
      return seen;
    };
  };
  CHECK(sometimes(7, program(true)));
  CHECK(always(7, program(false)));
}

TEST_CASE("A copy inside the device is not over when its call returns", "[order]") {
  const auto program = [](unsigned flags) {
    return [flags](Session& session) {
      const Kernels kernels(session);
      const CUdeviceptr x = session.memory(64);
      const CUdeviceptr y = session.memory(64);
      const CUdeviceptr z = session.memory(64);
      kernels.fill(x, 5, nullptr);
      SUCCEEDS(cuCtxSynchronize());
      const CUstream other = make_stream(flags);
      SUCCEEDS(cuMemcpyDtoD_v2(y, x, 64));
      kernels.add(y, z, other);
      SUCCEEDS(cuStreamSynchronize(other));
      return session.floats(z, 1)[0];
    };
  };
  CHECK(always(5, program(CU_STREAM_DEFAULT)));
  CHECK(sometimes(5, program(CU_STREAM_NON_BLOCKING)));
}

TEST_CASE("The environment sets the order too", "[order]") {
  // The exit status of a program that sees its copy land late, or early, under a seed.
  const auto run = [](const char* seed) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("SIMCUDA_ORDER", seed, 1);
      execl("/proc/self/exe", "order_tests", "[.landing]", static_cast<char*>(nullptr));
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  };
  bool late = false;
  for (const char* seed : {"0", "1", "2", "3", "4", "5", "6", "7"}) {
    const int status = run(seed);
    late = late || (WIFEXITED(status) && WEXITSTATUS(status) != 0);
  }
  CHECK(late);
  const int unset = run("");
  CHECK(WIFEXITED(unset));
  CHECK(WEXITSTATUS(unset) == 0);
  const int refused = run("soon");
  CHECK(WIFSIGNALED(refused));
}

TEST_CASE("A copy has landed when its call returns", "[.landing]") {
  Session session;
  const CUdeviceptr x = session.memory(64);
  Pinned result(64);
  result.floats()[0] = 1;
  SUCCEEDS(cuMemcpyDtoHAsync_v2(result.floats(), x, 64, nullptr));
  CHECK(result.floats()[0] == 0);
}
