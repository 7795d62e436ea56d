// Nodes that are no kernels: copies, memsets, host functions, events and child graphs.
#include <cstdint>

#include "session.hpp"

namespace {

CUgraph make_graph() {
  CUgraph graph = nullptr;
  SUCCEEDS(cuGraphCreate(&graph, 0));
  return graph;
}

CUDA_MEMSET_NODE_PARAMS words(CUdeviceptr to, unsigned value) {
  CUDA_MEMSET_NODE_PARAMS parameters{};
  parameters.dst = to;
  parameters.value = value;
  parameters.elementSize = 4;
  parameters.width = 4;
  parameters.height = 1;
  return parameters;
}

CUgraphNode add_memset(CUgraph graph, std::vector<CUgraphNode> after,
                       const CUDA_MEMSET_NODE_PARAMS& parameters) {
  CUgraphNode node = nullptr;
  SUCCEEDS(cuGraphAddMemsetNode(&node, graph, after.data(), after.size(), &parameters, nullptr));
  return node;
}

CUDA_MEMCPY3D copy(CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D parameters{};
  parameters.srcMemoryType = parameters.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  parameters.srcDevice = from;
  parameters.dstDevice = to;
  parameters.WidthInBytes = 16;
  parameters.Height = parameters.Depth = 1;
  return parameters;
}

std::uint32_t word_at(CUdeviceptr from) {
  std::uint32_t value = 0;
  SUCCEEDS(cuMemcpyDtoH_v2(&value, from, 4));
  return value;
}

void launch(CUgraphExec executable) {
  SUCCEEDS(cuGraphLaunch(executable, nullptr));
  SUCCEEDS(cuStreamSynchronize(nullptr));
}

}  // namespace

TEST_CASE("Nodes tell what they do and can be changed", "[graph]") {
  Session session;
  const CUdeviceptr x = session.memory(64);
  const CUdeviceptr y = session.memory(64);
  const CUgraph graph = make_graph();
  const CUgraphNode set = add_memset(graph, {}, words(x, 5));
  CUgraphNode copied = nullptr;
  const CUDA_MEMCPY3D to_y = copy(y, x);
  SUCCEEDS(cuGraphAddMemcpyNode(&copied, graph, &set, 1, &to_y, nullptr));

  CUDA_MEMSET_NODE_PARAMS told_set{};
  SUCCEEDS(cuGraphMemsetNodeGetParams(set, &told_set));
  CHECK(told_set.dst == x);
  CHECK(told_set.value == 5);
  CHECK(told_set.width == 4);
  CUDA_MEMCPY3D told_copy{};
  SUCCEEDS(cuGraphMemcpyNodeGetParams(copied, &told_copy));
  CHECK(told_copy.srcDevice == x);
  CHECK(told_copy.dstDevice == y);
  CHECK(told_copy.WidthInBytes == 16);
  CHECK(cuGraphMemsetNodeGetParams(copied, &told_set) == CUDA_ERROR_INVALID_VALUE);

  CUgraphExec executable = nullptr;
  SUCCEEDS(cuGraphInstantiateWithFlags(&executable, graph, 0));
  const CUDA_MEMSET_NODE_PARAMS six = words(x, 6);
  const CUDA_MEMSET_NODE_PARAMS seven = words(x, 7);
  SUCCEEDS(cuGraphMemsetNodeSetParams(set, &six));  // of the graph only
  launch(executable);
  CHECK(word_at(y) == 5);
  SUCCEEDS(cuGraphExecMemsetNodeSetParams(executable, set, &seven, session.context));
  const CUDA_MEMCPY3D to_end = copy(y + 32, x);
  SUCCEEDS(cuGraphExecMemcpyNodeSetParams(executable, copied, &to_end, session.context));
  launch(executable);
  CHECK(word_at(y) == 5);
  CHECK(word_at(y + 32) == 7);
  SUCCEEDS(cuGraphNodeSetEnabled(executable, copied, 0));
  SUCCEEDS(cuMemsetD8_v2(y, 0, 64));
  launch(executable);
  CHECK(word_at(y + 32) == 0);
  unsigned enabled = 1;
  SUCCEEDS(cuGraphNodeGetEnabled(executable, copied, &enabled));
  CHECK(enabled == 0);
  SUCCEEDS(cuGraphExecDestroy(executable));
  SUCCEEDS(cuGraphDestroy(graph));
}

TEST_CASE("A clone's nodes are found by those of the original", "[graph]") {
  Session session;
  const CUdeviceptr x = session.memory(64);
  const CUgraph graph = make_graph();
  const CUgraphNode first = add_memset(graph, {}, words(x, 1));
  const CUgraphNode second = add_memset(graph, {first}, words(x, 2));
  CUgraph clone = nullptr;
  SUCCEEDS(cuGraphClone(&clone, graph));
  CUgraphNode twin = nullptr;
  SUCCEEDS(cuGraphNodeFindInClone(&twin, second, clone));
  CHECK(twin != second);
  CUDA_MEMSET_NODE_PARAMS told{};
  SUCCEEDS(cuGraphMemsetNodeGetParams(twin, &told));
  CHECK(told.value == 2);
  CHECK(cuGraphNodeFindInClone(&twin, twin, clone) == CUDA_ERROR_INVALID_VALUE);
#if CUDA_VERSION >= 13000
  SUCCEEDS(cuGraphRemoveDependencies_v2(graph, &first, &second, nullptr, 1));
  std::size_t roots = 0;
  SUCCEEDS(cuGraphGetRootNodes(graph, nullptr, &roots));
  CHECK(roots == 2);
  SUCCEEDS(cuGraphGetRootNodes(clone, nullptr, &roots));
  CHECK(roots == 1);
#endif
  SUCCEEDS(cuGraphDestroy(clone));
  SUCCEEDS(cuGraphDestroy(graph));
}

TEST_CASE("A child graph runs in its place, in every order", "[graph][order]") {
  for (unsigned seed = 0; seed < 100; ++seed) {
    simcuda_set_order(seed == 0 ? 0 : 1, seed);
    Session session;
    const CUdeviceptr x = session.memory(64);
    const CUdeviceptr y = session.memory(64);
    const CUgraph child = make_graph();
    add_memset(child, {}, words(x, 2));
    add_memset(child, {}, words(x + 16, 3));
    const CUgraph graph = make_graph();
    const CUgraphNode before = add_memset(graph, {}, words(x, 1));
    CUgraphNode inner = nullptr;
    SUCCEEDS(cuGraphAddChildGraphNode(&inner, graph, &before, 1, child));
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    SUCCEEDS(cuGraphNodeGetType(inner, &type));
    CHECK(type == CU_GRAPH_NODE_TYPE_GRAPH);
    CUgraph owned = nullptr;
    SUCCEEDS(cuGraphChildGraphNodeGetGraph(inner, &owned));
    CHECK(owned != child);
    SUCCEEDS(cuGraphDestroy(child));
    for (const CUdeviceptr offset : {0ULL, 16ULL}) {
      CUgraphNode after = nullptr;
      const CUDA_MEMCPY3D parameters = copy(y + offset, x + offset);
      SUCCEEDS(cuGraphAddMemcpyNode(&after, graph, &inner, 1, &parameters, nullptr));
    }
    CUgraphExec executable = nullptr;
    SUCCEEDS(cuGraphInstantiateWithFlags(&executable, graph, 0));
    CUgraphExecUpdateResultInfo result{};
    SUCCEEDS(cuGraphExecUpdate_v2(executable, graph, &result));
    SUCCEEDS(cuGraphDestroy(graph));
    launch(executable);
    CHECK(word_at(y) == 2);
    CHECK(word_at(y + 16) == 3);
    SUCCEEDS(cuGraphExecDestroy(executable));
    simcuda_set_order(0, 0);
  }
}

TEST_CASE("Nodes of host functions and events can be changed", "[graph]") {
  const Session session;
  const CUgraph graph = make_graph();
  int calls = 0;
  CUDA_HOST_NODE_PARAMS host{};
  host.fn = [](void* to) { *static_cast<int*>(to) += 1; };
  host.userData = &calls;
  CUgraphNode called = nullptr;
  SUCCEEDS(cuGraphAddHostNode(&called, graph, nullptr, 0, &host));
  CUDA_HOST_NODE_PARAMS told{};
  SUCCEEDS(cuGraphHostNodeGetParams(called, &told));
  CHECK(told.userData == &calls);
  host.fn = [](void* to) { *static_cast<int*>(to) += 10; };
  SUCCEEDS(cuGraphHostNodeSetParams(called, &host));
  CUevent one = nullptr;
  CUevent two = nullptr;
  SUCCEEDS(cuEventCreate(&one, 0));
  SUCCEEDS(cuEventCreate(&two, 0));
  CUgraphNode recorded = nullptr;
  SUCCEEDS(cuGraphAddEventRecordNode(&recorded, graph, &called, 1, one));
  SUCCEEDS(cuGraphEventRecordNodeSetEvent(recorded, two));
  CUevent event = nullptr;
  SUCCEEDS(cuGraphEventRecordNodeGetEvent(recorded, &event));
  CHECK(event == two);
  CHECK(cuGraphEventWaitNodeGetEvent(recorded, &event) == CUDA_ERROR_INVALID_VALUE);
  CUgraphExec executable = nullptr;
  SUCCEEDS(cuGraphInstantiateWithFlags(&executable, graph, 0));
  launch(executable);
  CHECK(calls == 10);
  SUCCEEDS(cuGraphExecDestroy(executable));
  SUCCEEDS(cuGraphDestroy(graph));
}
