#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"

using contextune::Config;
using contextune::ConfigSpace;
using contextune::DeviceSpan;
using contextune::RegionOptions;

namespace {

constexpr std::size_t n = 1000;

DeviceSpan span_of(CUdeviceptr pointer) {
  return {reinterpret_cast<void*>(pointer), n * sizeof(float)};
}

auto adding(const char* name, CUdeviceptr y) {
  return contextune::Tunable(
      name, ConfigSpace().parameter("block", {256, 64, 128}), [y](const Config& config) {
        return Program::on().add(y, static_cast<int>(n), 1.0F, 4,
                                 static_cast<unsigned>(config.get_int("block")));
      });
}

}  // namespace

TEST_CASE("Device memory is restored before each further run of the body", "[restore]") {
  const CUdeviceptr y = Program::on().floats(n);
  const CUdeviceptr z = Program::on().floats(n);
  Program::on().add(y, static_cast<int>(n), 5.0F, 1, 64);
  auto add_y = adding("buffers.y", y);
  auto add_z = adding("buffers.z", z);
  int runs = 0;
  bool clean = true;
  CONTEXTUAL_AUTOTUNE("buffers", {.restore = {span_of(y), span_of(z)}}) {
    clean = clean && Program::read(y, n) == std::vector<float>(n, 5.0F) &&
            Program::read(z, n) == std::vector<float>(n, 0.0F);
    ++runs;
    add_y();
    add_z();
    add_z();
  }
  CHECK(runs > 24);
  CHECK(clean);
  CHECK(Program::read(y, n) == std::vector<float>(n, 6.0F));
  CHECK(Program::read(z, n) == std::vector<float>(n, 2.0F));
}

TEST_CASE("A callable restores before each further run of the body", "[restore]") {
  const CUdeviceptr y = Program::on().floats(n);
  auto add = adding("callable.y", y);
  int runs = 0;
  int restores = 0;
  CONTEXTUAL_AUTOTUNE("callable", {.restore = [&] {
                        ++restores;
                        cuMemsetD8(y, 0, n * sizeof(float));
                      }}) {
    ++runs;
    add();
  }
  CHECK(runs > 24);
  CHECK(restores == runs - 1);
  CHECK(Program::read(y, n) == std::vector<float>(n, 1.0F));
}

TEST_CASE("Work on a stream of the program's own is complete before memory is restored",
          "[restore]") {
  const CUdeviceptr y = Program::on().floats(n);
  CUstream stream = nullptr;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  contextune::Tunable add(
      "stream.y", ConfigSpace().parameter("block", {256, 64, 128}), [&](const Config& config) {
        return Program::on().add(y, static_cast<int>(n), 1.0F, 4,
                                 static_cast<unsigned>(config.get_int("block")), stream);
      });
  CONTEXTUAL_AUTOTUNE("stream", {.restore = {span_of(y)}}) {
    add();
  }
  CHECK(Program::read(y, n) == std::vector<float>(n, 1.0F));
}

TEST_CASE("Work that waits for what the host does later is not waited for: the body runs once",
          "[restore]") {
  const CUdeviceptr y = Program::on().floats(n);
  auto add = adding("held.y", y);
  CUstream stream = nullptr;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  void* word = nullptr;
  CUdeviceptr address = 0;
  REQUIRE(cuMemAllocHost(&word, sizeof(unsigned)) == CUDA_SUCCESS);
  REQUIRE(cuMemHostGetDevicePointer(&address, word, 0) == CUDA_SUCCESS);
  std::atomic_ref signal(*static_cast<unsigned*>(word));
  signal.store(0);
  REQUIRE(cuStreamWaitValue32(stream, address, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
  std::promise<void> ran;
  bool in_time = false;
  std::thread rest([&, done = ran.get_future()]() mutable {
    in_time = done.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
    signal.store(1);
  });
  int runs = 0;
  CONTEXTUAL_AUTOTUNE("held", {.restore = {span_of(y)}}) {
    if (++runs == 1) ran.set_value();
    add();
  }
  rest.join();
  CHECK(in_time);
  CHECK(runs == 1);
  CHECK(Program::read(y, n) == std::vector<float>(n, 1.0F));
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  cuStreamDestroy(stream);
  cuMemFreeHost(word);
}

TEST_CASE("Leaving the body early restores memory", "[restore]") {
  const CUdeviceptr y = Program::on().floats(n);
  auto add = adding("left.y", y);
  const auto enter = [&] {
    int runs = 0;
    CONTEXTUAL_AUTOTUNE("left", {.restore = {span_of(y)}}) {
      add();
      if (++runs == 3) throw std::runtime_error("mine");
    }
  };
  CHECK_THROWS_WITH(enter(), "mine");
  CHECK(Program::read(y, n) == std::vector<float>(n, 0.0F));
}

TEST_CASE("What the restore callable throws ends the search and reaches the caller", "[restore]") {
  const CUdeviceptr y = Program::on().floats(n);
  auto add = adding("throwing.y", y);
  int runs = 0;
  const auto enter = [&] {
    CONTEXTUAL_AUTOTUNE("throwing", {.restore = [] { throw std::runtime_error("cannot"); }}) {
      ++runs;
      add();
    }
  };
  CHECK_THROWS_WITH(enter(), "cannot");
  CHECK(runs == 1);
  CHECK(Program::read(y, n) == std::vector<float>(n, 1.0F));

  CONTEXTUAL_AUTOTUNE("throwing", {}) {
    ++runs;
  }
  CHECK(runs == 2);
}

TEST_CASE("Memory that is not the device's leaves the region untuned, and says so", "[restore]") {
  const CUdeviceptr y = Program::on().floats(n);
  auto add = adding("host.y", y);
  std::vector<float> host(n);
  int runs = 0;
  CONTEXTUAL_AUTOTUNE("host", {.restore = {{host.data(), n * sizeof(float)}}}) {
    ++runs;
    add();
  }
  CHECK(runs == 1);
  CHECK(Program::read(y, n) == std::vector<float>(n, 1.0F));
  CHECK(log_lines({"event=fault", "is not device memory"}).size() == 1);
}

TEST_CASE("Memory that ends before what is to be restored leaves the body to run once",
          "[restore]") {
  const CUdeviceptr y = Program::on().floats(n);
  auto add = adding("past.y", y);
  int runs = 0;
  CONTEXTUAL_AUTOTUNE("past",
                      {.restore = {{reinterpret_cast<void*>(y), (std::size_t{1} << 30U) + n}}}) {
    ++runs;
    add();
  }
  CHECK(runs == 1);
  CHECK(Program::read(y, n) == std::vector<float>(n, 1.0F));
  CHECK(log_lines({"event=fault", "past the end of what is allocated there"}).size() == 1);
}

TEST_CASE("A copy that does not fit leaves the body to run once", "[restore]") {
  const CUdeviceptr y = Program::on().floats(n);
  auto add = adding("large.y", y);
  int runs = 0;
  CONTEXTUAL_AUTOTUNE("large", {.restore = {{reinterpret_cast<void*>(y), std::size_t{1} << 50U}}}) {
    ++runs;
    add();
  }
  CHECK(runs == 1);
  CHECK(log_lines({"event=fault", "region 'large'"}).size() == 1);
}

TEST_CASE("A region that is first entered in a capture copies nothing, and the graph is whole",
          "[restore]") {
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(64);
  const auto mode = GENERATE(CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                             CU_STREAM_CAPTURE_MODE_RELAXED);
  const std::string name = "captured_" + std::to_string(mode);
  CUstream stream = nullptr;
  REQUIRE(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  REQUIRE(cuStreamBeginCapture(stream, mode) == CUDA_SUCCESS);
  CONTEXTUAL_AUTOTUNE(name.c_str(), {.restore = {{reinterpret_cast<void*>(y), 256}}}) {
    CHECK(program.add(y, 64, 1.0F, 1, 128, stream) == CUDA_SUCCESS);
  }
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  REQUIRE(cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS);
  REQUIRE(cuGraphInstantiate(&exec, graph, 0) == CUDA_SUCCESS);
  for (int i = 0; i < 2; ++i) REQUIRE(cuGraphLaunch(exec, stream) == CUDA_SUCCESS);
  REQUIRE(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  CHECK(Program::read(y, 64) == std::vector<float>(64, 2.0F));
}
