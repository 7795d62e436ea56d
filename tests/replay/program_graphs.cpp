// The graphs of a planned program.
#include "check.hpp"
#include "program.hpp"

CUgraphExec Program::make_graph(const GraphPlan& plan) {
  CUgraph graph = nullptr;
  check(cuGraphCreate(&graph, 0), "cuGraphCreate");
  CUgraphNode last = nullptr;
  for (const Action& action : plan.nodes) {
    last = add_node(graph, action, last == nullptr ? nullptr : &last);
  }
  if (plan.calls_host) {
    CUDA_HOST_NODE_PARAMS host{};
    host.fn = [](void*) {};
    check(cuGraphAddHostNode(&last, graph, &last, 1, &host), "cuGraphAddHostNode");
  }
  CUgraphExec exec = nullptr;
  check(cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiateWithFlags");
  check(cuGraphDestroy(graph), "cuGraphDestroy");
  return exec;
}

CUgraphNode Program::add_node(CUgraph graph, const Action& action, CUgraphNode* after) {
  const std::size_t before = after == nullptr ? 0 : 1;
  CUgraphNode node = nullptr;
  CUcontext context = nullptr;
  check(cuCtxGetCurrent(&context), "cuCtxGetCurrent");
  if (action.kind == Action::Kind::Set) {
    CUDA_MEMSET_NODE_PARAMS set{};
    set.dst = memory_.buffer(action.to);
    set.value = action.value;
    set.elementSize = 4;
    set.width = action.words;
    set.height = 1;
    check(cuGraphAddMemsetNode(&node, graph, after, before, &set, context), "cuGraphAddMemsetNode");
    return node;
  }
  if (action.kind == Action::Kind::DeviceToDevice) {
    CUDA_MEMCPY3D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = memory_.buffer(action.from);
    copy.dstDevice = memory_.buffer(action.to);
    copy.WidthInBytes = std::size_t{action.words} * 4;
    copy.Height = copy.Depth = 1;
    check(cuGraphAddMemcpyNode(&node, graph, after, before, &copy, context),
          "cuGraphAddMemcpyNode");
    return node;
  }
  KernelCall call(function(action));
  fill_call(call, action);
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = function(action);
  params.gridDimX = action.grid;
  params.gridDimY = params.gridDimZ = 1;
  params.blockDimX = action.block;
  params.blockDimY = params.blockDimZ = 1;
  params.kernelParams = call.pointers();
  check(cuGraphAddKernelNode_v2(&node, graph, after, before, &params), "cuGraphAddKernelNode");
  return node;
}
