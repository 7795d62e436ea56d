#include "graph_nodes.hpp"

#include <algorithm>

#include "contexts.hpp"
#include "copy_shape.hpp"

namespace simcuda {

namespace {

template <class Parameters>
LaunchArguments arguments_of(const Parameters& from) {
  return {{from.gridDimX, from.gridDimY, from.gridDimZ},
          {from.blockDimX, from.blockDimY, from.blockDimZ},
          from.sharedMemBytes,
          from.kernelParams,
          from.extra};
}

template <class Parameters>
KernelNodeParameters with_kernel(const Parameters& from) {
  // Where no function is given, a kernel is.
  CUfunction function = from.func;
  if (function == nullptr) function = reinterpret_cast<CUfunction>(from.kern);
  return {function, arguments_of(from), from.ctx};
}

}  // namespace

KernelNodeParameters parameters_of(const CUDA_KERNEL_NODE_PARAMS_v1& from) {
  return {from.func, arguments_of(from), nullptr};
}
KernelNodeParameters parameters_of(const CUDA_KERNEL_NODE_PARAMS_v2& from) {
  return with_kernel(from);
}
KernelNodeParameters parameters_of(const CUDA_KERNEL_NODE_PARAMS_v3& from) {
  return with_kernel(from);
}

OwnedLaunch kernel_operation(const KernelNodeParameters& parameters,
                             const std::vector<CUlaunchAttribute>& attributes) {
  Context& context = parameters.context == nullptr
                         ? current_context()
                         : driver().handles.get<Context>(parameters.context);
  return OwnedLaunch(check_launch(context, parameters.function, parameters.arguments,
                                  attributes.data(), static_cast<unsigned>(attributes.size())));
}

OwnedLaunch& launch_of(GraphNode& node) {
  auto* const launch = std::get_if<OwnedLaunch>(&node.operation);
  require(launch != nullptr);
  return *launch;
}

void recheck(GraphNode& node) {
  Launch& launch = launch_of(node).launch;
  const LaunchArguments arguments{launch.grid, launch.block, launch.dynamic_shared_bytes,
                                  launch.arguments.data(), nullptr};
  node.operation =
      Operation(kernel_operation({launch.handle, arguments, node.context}, node.attributes));
}

SetOperation set_operation(const CUDA_MEMSET_NODE_PARAMS& from) {
  require(from.elementSize == 1 || from.elementSize == 2 || from.elementSize == 4);
  require(from.dst != 0 && from.dst % from.elementSize == 0);
  SetOperation set;
  set.destination = from.dst;
  set.value = from.value;
  set.element_bytes = from.elementSize;
  set.width = from.width;
  set.height = std::max<std::size_t>(from.height, 1);
  set.pitch = from.pitch;
  return set;
}

CopyOperation copy_operation(const CUDA_MEMCPY3D& from) {
  // Nodes may leave out the dimensions that they do not need.
  CUDA_MEMCPY3D whole = from;
  whole.Height = std::max<std::size_t>(whole.Height, 1);
  whole.Depth = std::max<std::size_t>(whole.Depth, 1);
  return copy_of(whole);
}

Operation operation_of(const CUgraphNodeParams& parameters,
                       const std::vector<CUlaunchAttribute>& attributes) {
  const Handles& handles = driver().handles;
  switch (parameters.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return Operation(kernel_operation(parameters_of(parameters.kernel), attributes));
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return copy_operation(parameters.memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET: {
      const CUDA_MEMSET_NODE_PARAMS_v2& set = parameters.memset;
      return set_operation({set.dst, set.pitch, set.value, set.elementSize, set.width, set.height});
    }
    case CU_GRAPH_NODE_TYPE_HOST:
      require(parameters.host.fn != nullptr);
      return HostOperation{parameters.host.fn, parameters.host.userData};
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return EmptyOperation{};
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return EventOperation{&handles.get<Event>(parameters.eventWait.event), true};
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return EventOperation{&handles.get<Event>(parameters.eventRecord.event), false};
    default:
      throw Failure{CUDA_ERROR_NOT_SUPPORTED};
  }
}

std::vector<GraphNode*> nodes_at(const CUgraphNode* nodes, std::size_t count) {
  require(count == 0 || nodes != nullptr);
  std::vector<GraphNode*> found;
  for (std::size_t i = 0; i < count; ++i)
    found.push_back(&driver().handles.get<GraphNode>(nodes[i]));
  return found;
}

Edges edges_at(const CUgraphNode* nodes, const CUgraphEdgeData* data, std::size_t count) {
  Edges edges;
  for (GraphNode* const node : nodes_at(nodes, count)) edges.push_back({node});
  for (std::size_t i = 0; data != nullptr && i < count; ++i) edges[i].data = data[i];
  return edges;
}

void give_nodes(const std::vector<GraphNode*>& nodes, CUgraphNode* to, std::size_t* count) {
  require(count != nullptr);
  if (to != nullptr)
    for (std::size_t i = 0; i < *count; ++i)
      to[i] = i < nodes.size() ? reinterpret_cast<CUgraphNode>(nodes[i]) : nullptr;
  *count = nodes.size();
}

}  // namespace simcuda
