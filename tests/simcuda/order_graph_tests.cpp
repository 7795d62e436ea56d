// Graphs whose effects are deferred: only their edges order them.
#include "orders.hpp"

namespace {

CUgraphNode add_kernel(const Session& session, CUgraph graph, const char* name,
                       std::vector<CUgraphNode> after, std::vector<void*> arguments) {
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.func = session.function(name);
  parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
  parameters.blockDimX = 32;
  parameters.blockDimY = parameters.blockDimZ = 1;
  parameters.kernelParams = arguments.data();
  CUgraphNode node = nullptr;
  SUCCEEDS(cuGraphAddKernelNode_v2(&node, graph, after.data(), after.size(), &parameters));
  return node;
}

// x = 1, then y += x and x = 2 as branches, then z += y; launched `launches` times.
std::vector<float> run_diamond(unsigned seed, bool ordered, int launches) {
  simcuda_set_order(1, seed);
  Session session;
  CUdeviceptr x = session.memory(64);
  CUdeviceptr y = session.memory(64);
  CUdeviceptr z = session.memory(64);
  int n = length;
  float one = 1;
  float two = 2;
  CUgraph graph = nullptr;
  SUCCEEDS(cuGraphCreate(&graph, 0));
  const CUgraphNode first = add_kernel(session, graph, "fill", {}, {&n, &x, &one});
  const CUgraphNode left = add_kernel(session, graph, "add", {first}, {&n, &x, &y});
  std::vector<CUgraphNode> before_right{first};
  if (ordered) before_right.push_back(left);
  const CUgraphNode right = add_kernel(session, graph, "fill", before_right, {&n, &x, &two});
  add_kernel(session, graph, "add", {left, right}, {&n, &y, &z});
  CUgraphExec executable = nullptr;
  SUCCEEDS(cuGraphInstantiateWithFlags(&executable, graph, 0));
  SUCCEEDS(cuGraphDestroy(graph));
  SUCCEEDS(cuCtxSynchronize());
  // Launches of one executable graph follow each other on any streams.
  std::vector<CUstream> streams(2);
  for (CUstream& stream : streams) SUCCEEDS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (int i = 0; i < launches; ++i)
    SUCCEEDS(cuGraphLaunch(executable, streams[static_cast<std::size_t>(i) % 2]));
  SUCCEEDS(cuGraphExecDestroy(executable));
  SUCCEEDS(cuCtxSynchronize());
  const std::vector<float> values{session.floats(x, 1)[0], session.floats(z, 1)[0]};
  for (const CUstream stream : streams) SUCCEEDS(cuStreamDestroy_v2(stream));
  simcuda_set_order(0, 0);
  return values;
}

}  // namespace

TEST_CASE("A graph with all its edges is right in every order", "[order][graph]") {
  for (unsigned seed = 0; seed < seeds; ++seed)
    REQUIRE(run_diamond(seed, true, 2) == std::vector<float>{2, 3});
}

TEST_CASE("Branches of a graph without an edge run in either order", "[order][graph]") {
  unsigned early = 0;
  unsigned late = 0;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    const std::vector<float> values = run_diamond(seed, false, 1);
    CHECK(values[0] == 2);
    (values[1] == 1 ? early : late) += 1;
  }
  CHECK(early > 0);
  CHECK(late > 0);
}

TEST_CASE("A captured fork is two branches and its join is an edge", "[order][graph]") {
  unsigned wrong_without_edge = 0;
  for (unsigned seed = 0; seed < seeds; ++seed) {
    simcuda_set_order(1, seed);
    Session session;
    CUdeviceptr x = session.memory(64);
    CUdeviceptr y = session.memory(64);
    CUdeviceptr z = session.memory(64);
    SUCCEEDS(cuCtxSynchronize());
    CUstream one = nullptr;
    CUstream two = nullptr;
    CUevent event = nullptr;
    SUCCEEDS(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
    SUCCEEDS(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
    SUCCEEDS(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    int n = length;
    float value = 4;
    const CUfunction fill = session.function("fill");
    const CUfunction add = session.function("add");
    SUCCEEDS(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_RELAXED));
    SUCCEEDS(cuEventRecord(event, one));
    SUCCEEDS(cuStreamWaitEvent(two, event, 0));
    SUCCEEDS(session.launch(fill, 1, 32, {&n, &x, &value}, 0, two));
    SUCCEEDS(session.launch(add, 1, 32, {&n, &x, &y}, 0, one));  // no edge: too early at times
    SUCCEEDS(cuEventRecord(event, two));
    SUCCEEDS(cuStreamWaitEvent(one, event, 0));
    SUCCEEDS(session.launch(add, 1, 32, {&n, &x, &z}, 0, one));
    CUgraph graph = nullptr;
    SUCCEEDS(cuStreamEndCapture(one, &graph));
    CUgraphExec executable = nullptr;
    SUCCEEDS(cuGraphInstantiateWithFlags(&executable, graph, 0));
    SUCCEEDS(cuGraphLaunch(executable, one));
    SUCCEEDS(cuStreamSynchronize(one));
    CHECK(session.floats(z, 1)[0] == 4);
    if (session.floats(y, 1)[0] != 4) ++wrong_without_edge;
    SUCCEEDS(cuGraphExecDestroy(executable));
    SUCCEEDS(cuGraphDestroy(graph));
    simcuda_set_order(0, 0);
  }
  CHECK(wrong_without_edge > 0);
  CHECK(wrong_without_edge < seeds);
}

TEST_CASE("A node of an executable graph may be changed behind a launch that has not run",
          "[order][graph]") {
  CHECK(always(3, [](Session& session) {
    const CUdeviceptr x = session.memory(64);
    const CUdeviceptr y = session.memory(64);
    int n = length;
    float value = 1;
    CUdeviceptr from = x;
    CUdeviceptr to = y;
    CUgraph graph = nullptr;
    SUCCEEDS(cuGraphCreate(&graph, 0));
    const CUgraphNode fill = add_kernel(session, graph, "fill", {}, {&n, &from, &value});
    add_kernel(session, graph, "add", {fill}, {&n, &from, &to});
    CUgraphExec executable = nullptr;
    SUCCEEDS(cuGraphInstantiateWithFlags(&executable, graph, 0));
    SUCCEEDS(cuCtxSynchronize());
    const CUstream stream = make_stream();
    SUCCEEDS(cuGraphLaunch(executable, stream));
    value = 2;
    void* arguments[] = {&n, &from, &value};
    CUDA_KERNEL_NODE_PARAMS parameters{};
    SUCCEEDS(cuGraphKernelNodeGetParams_v2(fill, &parameters));
    parameters.kernelParams = arguments;
    SUCCEEDS(cuGraphExecKernelNodeSetParams_v2(executable, fill, &parameters));
    SUCCEEDS(cuGraphLaunch(executable, stream));
    value = 7;  // taken at the call
    SUCCEEDS(cuStreamSynchronize(stream));
    const float sum = session.floats(y, length).back();
    SUCCEEDS(cuGraphExecDestroy(executable));
    SUCCEEDS(cuGraphDestroy(graph));
    return sum;
  }));
}
