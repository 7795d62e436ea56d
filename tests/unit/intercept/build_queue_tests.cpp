#include <signal.h>

#include "catch.hpp"
#include "intercept/site/build_queue.hpp"

using namespace contextune;
using intercept::BuildQueue;

namespace {

CUresult CUDAAPI no_context(CUcontext* context) {
  *context = nullptr;
  return CUDA_SUCCESS;
}

/// Enough of a driver for builds that fail before they reach it.
const gpu::Driver& driver() {
  static const gpu::Driver one = [] {
    gpu::Driver made;
    made.cuCtxGetCurrent = &no_context;
    made.find_symbol = [](void*, const char*) -> void* { return nullptr; };
    return made;
  }();
  return one;
}

LaunchChange from_file(const std::string& path) {
  LaunchChange change;
  change.module = path;
  change.function.assign("kernel");
  return change;
}

BuildQueue& queue() {
  static auto& one = *new BuildQueue(driver());  // its thread never ends
  return one;
}

}  // namespace

TEST_CASE("A build is made once, elsewhere, and its error is kept", "[build_queue]") {
  const std::uint64_t before = queue().done();
  CHECK(queue().find_or_start(from_file("/no/such/file.cubin"), nullptr) == nullptr);
  REQUIRE(queue().wait_idle(20));
  const BuildQueue::Result* result =
      queue().find_or_start(from_file("/no/such/file.cubin"), nullptr);
  REQUIRE(result != nullptr);
  CHECK(result->function == nullptr);
  CHECK(result->error.find("/no/such/file.cubin") != std::string::npos);
  CHECK(queue().find_or_start(from_file("/no/such/file.cubin"), nullptr) == result);
  CHECK(queue().done() == before + 1);
}

TEST_CASE("The building thread takes no signals of the program", "[build_queue]") {
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  (void)queue().find_or_start(from_file("/no/such/other.cubin"), nullptr);
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  CHECK(sigismember(&before, SIGUSR1) == sigismember(&after, SIGUSR1));
  REQUIRE(queue().wait_idle(20));
}

TEST_CASE("After the end nothing is started any more", "[build_queue]") {
  static auto& ended = *new BuildQueue(driver());  // lives as long as its thread may
  ended.stop();
  const BuildQueue::Result* result = ended.find_or_start(from_file("/no/such/file.cubin"), nullptr);
  REQUIRE(result != nullptr);
  CHECK(result->function == nullptr);
  CHECK_FALSE(result->error.empty());
}
