#include "session.hpp"

namespace {

struct Captured {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
};

CUstream make_stream() {
  CUstream stream = nullptr;
  SUCCEEDS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  return stream;
}

CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  SUCCEEDS(cuStreamIsCapturing(stream, &status));
  return status;
}

std::size_t node_count(CUgraph graph) {
  std::size_t count = 0;
  SUCCEEDS(cuGraphGetNodes(graph, nullptr, &count));
  return count;
}

}  // namespace

TEST_CASE("A captured launch runs when its graph is launched", "[graph]") {
  Session session;
  const CUstream stream = make_stream();
  const CUdeviceptr x = session.memory(64);
  const CUdeviceptr y = session.memory(64);
  int n = 16;
  float one = 1;
  CUdeviceptr in = x;
  CUdeviceptr out = y;
  SUCCEEDS(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  SUCCEEDS(session.launch(session.function("fill"), 1, 32, {&n, &in, &one}, 0, stream));
  SUCCEEDS(session.launch(session.function("add"), 1, 32, {&n, &in, &out}, 0, stream));
  n = 0;  // arguments were taken at the launch
  Captured captured;
  SUCCEEDS(cuStreamEndCapture(stream, &captured.graph));
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
  CHECK(session.floats(y, 16) == std::vector<float>(16, 0.0F));
  CHECK(node_count(captured.graph) == 2);

  SUCCEEDS(cuGraphInstantiateWithFlags(&captured.executable, captured.graph, 0));
  SUCCEEDS(cuGraphDestroy(captured.graph));
  for (int i = 0; i < 3; ++i) SUCCEEDS(cuGraphLaunch(captured.executable, stream));
  SUCCEEDS(cuStreamSynchronize(stream));
  CHECK(session.floats(y, 16) == std::vector<float>(16, 3.0F));
  SUCCEEDS(cuGraphExecDestroy(captured.executable));
}

TEST_CASE("A second stream joins a capture through events", "[graph]") {
  Session session;
  const CUstream one = make_stream();
  const CUstream two = make_stream();
  CUevent fork_event = nullptr;
  CUevent join_event = nullptr;
  SUCCEEDS(cuEventCreate(&fork_event, CU_EVENT_DISABLE_TIMING));
  SUCCEEDS(cuEventCreate(&join_event, CU_EVENT_DISABLE_TIMING));
  const CUfunction empty = session.function("empty");
  const auto fork_and = [&](bool join) {
    SUCCEEDS(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    SUCCEEDS(session.launch(empty, 1, 32, {}, 0, one));
    SUCCEEDS(cuEventRecord(fork_event, one));
    SUCCEEDS(cuStreamWaitEvent(two, fork_event, 0));
    CHECK(status_of(two) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    SUCCEEDS(session.launch(empty, 1, 32, {}, 0, two));
    SUCCEEDS(cuEventRecord(join_event, two));
    CHECK(cuEventQuery(join_event) == CUDA_ERROR_CAPTURED_EVENT);
    if (join) SUCCEEDS(cuStreamWaitEvent(one, join_event, 0));
    CUgraph graph = nullptr;
    const CUresult result = cuStreamEndCapture(one, &graph);
    if (graph != nullptr) {
      CHECK(node_count(graph) == 2);
      SUCCEEDS(cuGraphDestroy(graph));
    }
    return result;
  };
  CHECK(fork_and(true) == CUDA_SUCCESS);
  CHECK(fork_and(false) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CHECK(status_of(two) == CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_CASE("What a capture cannot hold spoils it", "[graph]") {
  Session session;
  const CUstream stream = make_stream();
  CUgraph graph = nullptr;
  SECTION("synchronising the stream") {
    SUCCEEDS(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  SECTION("allocating, unless the thread is relaxed") {
    SUCCEEDS(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    CUdeviceptr memory = 0;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    SUCCEEDS(cuThreadExchangeStreamCaptureMode(&mode));
    SUCCEEDS(cuMemAlloc_v2(&memory, 16));
    SUCCEEDS(cuThreadExchangeStreamCaptureMode(&mode));
    CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
    CHECK(cuMemAlloc_v2(&memory, 16) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  SECTION("work on the legacy stream beside a blocking one") {
    CUstream blocking = nullptr;
    SUCCEEDS(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    SUCCEEDS(session.launch(session.function("empty"), 1, 32));
    SUCCEEDS(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
    CHECK(session.launch(session.function("empty"), 1, 32) == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    CHECK(cuStreamEndCapture(blocking, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    return;
  }
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
  CHECK(cuStreamEndCapture(stream, &graph) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CHECK(graph == nullptr);
  CHECK(status_of(stream) == CU_STREAM_CAPTURE_STATUS_NONE);
}

TEST_CASE("Kernel nodes can be changed in the graph and in its instance", "[graph]") {
  Session session;
  const CUdeviceptr x = session.memory(64);
  int n = 16;
  CUdeviceptr out = x;
  float value = 1;
  void* arguments[] = {&n, &out, &value};
  CUgraph graph = nullptr;
  SUCCEEDS(cuGraphCreate(&graph, 0));
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.func = session.function("fill");
  parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
  parameters.blockDimX = 32;
  parameters.blockDimY = parameters.blockDimZ = 1;
  parameters.kernelParams = arguments;
  CUgraphNode node = nullptr;
  SUCCEEDS(cuGraphAddKernelNode_v2(&node, graph, nullptr, 0, &parameters));
  CUgraphExec executable = nullptr;
  SUCCEEDS(cuGraphInstantiateWithFlags(&executable, graph, 0));

  value = 2;
  SUCCEEDS(cuGraphExecKernelNodeSetParams_v2(executable, node, &parameters));
  SUCCEEDS(cuGraphLaunch(executable, nullptr));
  CHECK(session.floats(x, 1).front() == 2.0F);

  parameters.blockDimX = 2000;
  CHECK(cuGraphKernelNodeSetParams_v2(node, &parameters) == CUDA_ERROR_INVALID_VALUE);
  parameters.blockDimX = 64;
  value = 3;
  SUCCEEDS(cuGraphKernelNodeSetParams_v2(node, &parameters));
  CUDA_KERNEL_NODE_PARAMS read{};
  SUCCEEDS(cuGraphKernelNodeGetParams_v2(node, &read));
  CHECK(read.blockDimX == 64);
  CUgraphExecUpdateResultInfo info{};
  SUCCEEDS(cuGraphExecUpdate_v2(executable, graph, &info));
  SUCCEEDS(cuGraphLaunch(executable, nullptr));
  CHECK(session.floats(x, 1).front() == 3.0F);

  CUgraphNode second = nullptr;
  SUCCEEDS(cuGraphAddEmptyNode(&second, graph, &node, 1));
  CHECK(cuGraphExecUpdate_v2(executable, graph, &info) == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  CHECK(info.result == CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);

  CUkernelNodeAttrValue attribute{};
  attribute.sharedMemCarveout = 100;
  SUCCEEDS(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                         &attribute));
  attribute.sharedMemCarveout = 200;
  CHECK(cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                      &attribute) == CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                         &attribute));
  CHECK(attribute.sharedMemCarveout == 100);

  CUgraph copy = nullptr;
  SUCCEEDS(cuGraphClone(&copy, graph));
  CHECK(node_count(copy) == 2);
  CUgraphNode twin = nullptr;
  SUCCEEDS(cuGraphNodeFindInClone(&twin, node, copy));
  CHECK(twin != node);
  SUCCEEDS(cuGraphKernelNodeGetAttribute(twin, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                         &attribute));
  CHECK(attribute.sharedMemCarveout == 100);
  CHECK(cuGraphNodeFindInClone(&twin, node, graph) == CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(cuGraphDestroy(copy));
  SUCCEEDS(cuGraphDestroy(graph));
  SUCCEEDS(cuGraphExecDestroy(executable));
}

TEST_CASE("Copies, sets and host functions are captured", "[graph]") {
  Session session;
  const CUstream stream = make_stream();
  const CUdeviceptr x = session.memory(64);
  std::vector<unsigned> host(16, 0);
  static int calls;
  calls = 0;
  SUCCEEDS(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  SUCCEEDS(cuMemsetD32Async(x, 7, 16, stream));
  SUCCEEDS(cuMemcpyDtoHAsync_v2(host.data(), x, 64, stream));
  SUCCEEDS(cuLaunchHostFunc(
      stream, [](void*) { ++calls; }, nullptr));
  CUgraph graph = nullptr;
  SUCCEEDS(cuStreamEndCapture(stream, &graph));
  CHECK(host.front() == 0);
  CUgraphExec executable = nullptr;
  SUCCEEDS(cuGraphInstantiateWithFlags(&executable, graph, 0));
  SUCCEEDS(cuGraphLaunch(executable, stream));
  SUCCEEDS(cuStreamSynchronize(stream));
  CHECK(host == std::vector<unsigned>(16, 7));
  CHECK(calls == 1);
  std::size_t edges = 0;
  SUCCEEDS(cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &edges));
  CHECK(edges == 2);
}
