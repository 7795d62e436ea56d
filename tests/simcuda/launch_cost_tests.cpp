// What launches cost the host and leave idle between kernels: one by one, chained, and in graphs.
#include <simcuda/cubin.hpp>

#include "orders.hpp"

namespace {

/// A chain of short kernels that add one piece of memory to another.
class ShortKernels {
 public:
  static constexpr int count = 64;

  ShortKernels() {
    const std::string image = simcuda::build_cubin({{"add", true}});
    SUCCEEDS(cuModuleLoadData(&module_, image.data()));
    SUCCEEDS(cuModuleGetFunction(&add_, module_, "add"));
    launch(false);
    SUCCEEDS(cuStreamSynchronize(stream));
    each = session.last_time();
  }

  void launch(bool chained) {
    int n = 1 << 16;
    void* arguments[] = {&n, &x, &y};
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = chained ? 1 : 0;
    CUlaunchConfig config{};
    config.gridDimX = 256;
    config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 256;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    SUCCEEDS(cuLaunchKernelEx(&config, add_, arguments, nullptr));
  }
  void launch_all(bool chained) {
    for (int i = 0; i < count; ++i) launch(chained);
  }
  CUgraphExec captured(bool chained) {
    CUgraph graph = nullptr;
    CUgraphExec executable = nullptr;
    SUCCEEDS(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    launch_all(chained);
    SUCCEEDS(cuStreamEndCapture(stream, &graph));
    SUCCEEDS(cuGraphInstantiateWithFlags(&executable, graph, 0));
    SUCCEEDS(cuGraphDestroy(graph));
    return executable;
  }
  /// Seconds of the host until a number of launches, and what is behind them, are over.
  double in_stream(bool chained) {
    return host_seconds([&] {
      launch_all(chained);
      SUCCEEDS(cuStreamSynchronize(stream));
    });
  }
  double in_graph(bool chained) {
    const CUgraphExec executable = captured(chained);
    const double seconds = host_seconds([&] {
      SUCCEEDS(cuGraphLaunch(executable, stream));
      SUCCEEDS(cuStreamSynchronize(stream));
    });
    SUCCEEDS(cuGraphExecDestroy(executable));
    return seconds;
  }
  static double host_seconds(const std::function<void()>& work) {
    const double before = simcuda_host_time();
    work();
    return simcuda_host_time() - before;
  }

  Session session;
  double each = 0;
  CUstream stream = make_stream();

 private:
  CUmodule module_ = nullptr;
  CUfunction add_ = nullptr;
  CUdeviceptr x = session.memory(4 << 16), y = session.memory(4 << 16);
};

}  // namespace

TEST_CASE("Short kernels are bound by the host in a stream, and by the GPU in a graph", "[cost]") {
  ShortKernels kernels;
  INFO("us a kernel: " << kernels.each * 1e6);
  const double submitting = ShortKernels::host_seconds([&] { kernels.launch_all(false); });
  SUCCEEDS(cuStreamSynchronize(kernels.stream));
  const double stream = kernels.in_stream(false);
  CHECK(stream < 1.1 * submitting);
  const double graph = kernels.in_graph(false);
  CHECK(graph > ShortKernels::count * kernels.each);
  INFO("us: " << stream * 1e6 << " " << graph * 1e6);
  CHECK(stream / graph > 1.6);
  CHECK(stream / graph < 2.0);
}

TEST_CASE("Chains are faster, in a stream and in a graph", "[cost]") {
  ShortKernels kernels;
  const double stream = kernels.in_stream(false);
  CHECK(stream / kernels.in_stream(true) == Approx(1.2).epsilon(0.05));
  const double graph = kernels.in_graph(true);
  CHECK(stream / graph > 2.3);
  CHECK(stream / graph < 2.9);
}

TEST_CASE("A graph costs the host little a launch, and much to be made", "[cost]") {
  ShortKernels kernels;
  CUgraphExec executable = nullptr;
  const double making = ShortKernels::host_seconds([&] { executable = kernels.captured(false); });
  CHECK(making > ShortKernels::count * 8.5e-6);
  const double launching =
      ShortKernels::host_seconds([&] { SUCCEEDS(cuGraphLaunch(executable, kernels.stream)); });
  CHECK(launching > 1.4e-6);
  CHECK(launching < 1.4e-6 + ShortKernels::count * 0.1e-6);
  SUCCEEDS(cuGraphExecDestroy(executable));
}
