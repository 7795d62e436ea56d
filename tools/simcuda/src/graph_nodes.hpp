#pragma once

#include "graph.hpp"

namespace simcuda {

/// What a program says about a kernel node, in any of the three versions of the structure.
struct KernelNodeParameters {
  CUfunction function = nullptr;  // or a CUkernel
  LaunchArguments arguments;
  CUcontext context = nullptr;
};
[[nodiscard]] KernelNodeParameters parameters_of(const CUDA_KERNEL_NODE_PARAMS_v1& from);
[[nodiscard]] KernelNodeParameters parameters_of(const CUDA_KERNEL_NODE_PARAMS_v2& from);
[[nodiscard]] KernelNodeParameters parameters_of(const CUDA_KERNEL_NODE_PARAMS_v3& from);

/// Checks the parameters with the attributes of the node they are for. @throws Failure
[[nodiscard]] OwnedLaunch kernel_operation(const KernelNodeParameters& parameters,
                                           const std::vector<CUlaunchAttribute>& attributes);
/// The operation of a node, for a call that is only for nodes of one type. @throws
/// Failure{INVALID_VALUE}
template <class Kind>
[[nodiscard]] Kind& operation_at(CUgraphNode handle) {
  auto* const operation = std::get_if<Kind>(&driver().handles.get<GraphNode>(handle).operation);
  require(operation != nullptr);
  return *operation;
}
/// The same for a node of an executable graph.
template <class Kind>
[[nodiscard]] Kind& operation_at(CUgraphExec executable, CUgraphNode handle) {
  auto& node = node_from(driver().handles.get<GraphExec>(executable),
                         &driver().handles.get<GraphNode>(handle));
  auto* const operation = std::get_if<Kind>(&node.operation);
  require(operation != nullptr);
  return *operation;
}
/// Checks again what a node launches, after its attributes changed.
void recheck(GraphNode& node);
[[nodiscard]] OwnedLaunch& launch_of(GraphNode& node);
[[nodiscard]] SetOperation set_operation(const CUDA_MEMSET_NODE_PARAMS& from);
[[nodiscard]] CopyOperation copy_operation(const CUDA_MEMCPY3D& from);
/// An operation from the structure of cuGraphAddNode. @throws Failure{NOT_SUPPORTED}
[[nodiscard]] Operation operation_of(const CUgraphNodeParams& parameters,
                                     const std::vector<CUlaunchAttribute>& attributes);

[[nodiscard]] std::vector<GraphNode*> nodes_at(const CUgraphNode* nodes, std::size_t count);
/// @param data of each edge; null: none has any
[[nodiscard]] Edges edges_at(const CUgraphNode* nodes, const CUgraphEdgeData* data,
                             std::size_t count);
/// Writes up to *count handles and the true number, as all the queries of graphs do.
void give_nodes(const std::vector<GraphNode*>& nodes, CUgraphNode* to, std::size_t* count);

}  // namespace simcuda
