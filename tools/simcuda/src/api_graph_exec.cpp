// Instantiated graphs.
#include <algorithm>

#include "capture.hpp"
#include "graph_nodes.hpp"
#include "observed.hpp"

using namespace simcuda;

namespace {

CUresult make(CUgraphExec* to, CUgraph handle, unsigned long long flags) {
  require(to != nullptr);
  GraphExec* const made = instantiate(driver().handles.get<Graph>(handle), flags);
  driver().host_time += static_cast<double>(made->nodes.size()) *
                        driver().devices.front()->profile.instantiate_node_cost;
  *to = reinterpret_cast<CUgraphExec>(made);
  return CUDA_SUCCESS;
}

template <class Parameters>
CUresult set_kernel(CUgraphExec handle, CUgraphNode node, const Parameters* parameters) {
  require(parameters != nullptr);
  auto& executable = driver().handles.get<GraphExec>(handle);
  const auto& origin = driver().handles.get<GraphNode>(node);
  GraphExec::Node& target = node_from(executable, &origin);
  require(std::holds_alternative<OwnedLaunch>(target.operation));
  KernelNodeParameters kernel = parameters_of(*parameters);
  if (kernel.context == nullptr) kernel.context = origin.context;
  target.operation = Operation(kernel_operation(kernel, target.attributes));
  return CUDA_SUCCESS;
}

// Takes over the parameters of a graph of the same shape.
CUgraphExecUpdateResult update(GraphExec& executable, const Graph& graph,
                               const GraphNode*& error_node) {
  const std::vector<GraphExec::Node> nodes = flattened(graph);
  if (nodes.size() != executable.nodes.size()) return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    error_node = nodes[i].origin;
    if (type_of(nodes[i].operation) != type_of(executable.nodes[i].operation))
      return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (nodes[i].dependencies != executable.nodes[i].dependencies)
      return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  }
  error_node = nullptr;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    executable.nodes[i].operation = nodes[i].operation;
    executable.nodes[i].attributes = nodes[i].attributes;
  }
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

CUresult launch(EntryPoint entry, NullStream null_stream, CUgraphExec handle,
                CUstream stream_handle) noexcept {
  struct {
    CUgraphExec graph;
    CUstream stream;
  } const call{handle, stream_handle};
  return observed(entry, &call, [&](DriverLock&, std::uint32_t correlation) -> CUresult {
    Stream& stream = stream_of(stream_handle, null_stream);
    auto& executable = driver().handles.get<GraphExec>(handle);
    check_implicit_dependency(stream);
    // A graph launched into a capture would be a child graph, which is not simulated.
    require(stream.capture == nullptr, CUDA_ERROR_NOT_SUPPORTED);
    const DeviceProfile& profile = driver().devices.front()->profile;
    driver().host_time += profile.graph_launch_cost +
                          static_cast<double>(executable.nodes.size()) * profile.graph_node_cost;
    run_graph(stream, executable, correlation);
    return CUDA_SUCCESS;
  });
}

}  // namespace

SIMCUDA_ENTRY(cuGraphInstantiate,
              (CUgraphExec * phGraphExec, CUgraph hGraph, CUgraphNode*, char*, size_t),
              { return make(phGraphExec, hGraph, 0); })
SIMCUDA_ENTRY(cuGraphInstantiate_v2,
              (CUgraphExec * phGraphExec, CUgraph hGraph, CUgraphNode*, char*, size_t),
              { return make(phGraphExec, hGraph, 0); })
SIMCUDA_ENTRY(cuGraphInstantiateWithFlags,
              (CUgraphExec * phGraphExec, CUgraph hGraph, unsigned long long flags),
              { return make(phGraphExec, hGraph, flags); })
SIMCUDA_BOTH_STREAMS(cuGraphInstantiateWithParams, _ptsz,
                     (CUgraphExec * phGraphExec, CUgraph hGraph,
                      CUDA_GRAPH_INSTANTIATE_PARAMS* instantiateParams),
                     {
                       require(instantiateParams != nullptr);
                       instantiateParams->hErrNode_out = nullptr;
                       instantiateParams->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
                       return make(phGraphExec, hGraph, instantiateParams->flags);
                     })
SIMCUDA_ENTRY(cuGraphExecGetFlags, (CUgraphExec hGraphExec, cuuint64_t* flags), {
  require(flags != nullptr);
  *flags = driver().handles.get<GraphExec>(hGraphExec).flags;
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuGraphExecDestroy, (CUgraphExec hGraphExec), {
  driver().handles.destroy(&driver().handles.get<GraphExec>(hGraphExec));
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuGraphExecKernelNodeSetParams,
              (CUgraphExec hGraphExec, CUgraphNode hNode,
               const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams),
              { return set_kernel(hGraphExec, hNode, nodeParams); })
SIMCUDA_ENTRY(cuGraphExecKernelNodeSetParams_v2,
              (CUgraphExec hGraphExec, CUgraphNode hNode,
               const CUDA_KERNEL_NODE_PARAMS* nodeParams),
              { return set_kernel(hGraphExec, hNode, nodeParams); })
SIMCUDA_ENTRY(cuGraphExecNodeSetParams,
              (CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams* nodeParams), {
                require(nodeParams != nullptr);
                auto& executable = driver().handles.get<GraphExec>(hGraphExec);
                GraphExec::Node& target =
                    node_from(executable, &driver().handles.get<GraphNode>(hNode));
                Operation changed = operation_of(*nodeParams, target.attributes);
                require(simcuda::type_of(changed) == simcuda::type_of(target.operation));
                target.operation = std::move(changed);
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuGraphExecUpdate,
              (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode* hErrorNode_out,
               CUgraphExecUpdateResult* updateResult_out),
              {
                require(hErrorNode_out != nullptr && updateResult_out != nullptr);
                const GraphNode* error_node = nullptr;
                *updateResult_out = update(driver().handles.get<GraphExec>(hGraphExec),
                                           driver().handles.get<Graph>(hGraph), error_node);
                *hErrorNode_out = reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(error_node));
                return *updateResult_out == CU_GRAPH_EXEC_UPDATE_SUCCESS
                           ? CUDA_SUCCESS
                           : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
              })
SIMCUDA_ENTRY(cuGraphExecUpdate_v2,
              (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo* resultInfo), {
                require(resultInfo != nullptr);
                const GraphNode* error_node = nullptr;
                *resultInfo = {};
                resultInfo->result = update(driver().handles.get<GraphExec>(hGraphExec),
                                            driver().handles.get<Graph>(hGraph), error_node);
                resultInfo->errorNode =
                    reinterpret_cast<CUgraphNode>(const_cast<GraphNode*>(error_node));
                return resultInfo->result == CU_GRAPH_EXEC_UPDATE_SUCCESS
                           ? CUDA_SUCCESS
                           : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
              })

SIMCUDA_BOTH_STREAMS(cuGraphUpload, _ptsz, (CUgraphExec hGraphExec, CUstream hStream), {
  (void)stream_of(hStream, null_stream);
  (void)driver().handles.get<GraphExec>(hGraphExec);
  return CUDA_SUCCESS;
})
CUresult CUDAAPI cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
  return launch({514, "cuGraphLaunch"}, NullStream::legacy, hGraphExec, hStream);
}
CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraphExec hGraphExec, CUstream hStream) {
  return launch({515, "cuGraphLaunch_ptsz"}, NullStream::per_thread, hGraphExec, hStream);
}
