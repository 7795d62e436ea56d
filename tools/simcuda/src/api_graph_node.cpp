// Nodes of graphs: adding, reading and changing them.
#include <algorithm>

#include "graph_nodes.hpp"

using namespace simcuda;

namespace {

CUresult add(CUgraphNode* to, CUgraph graph, const Edges& dependencies, const Operation& operation,
             CUcontext context = nullptr) {
  require(to != nullptr);
  GraphNode* const node = add_node(driver().handles.get<Graph>(graph), dependencies, operation);
  node->context =
      context != nullptr ? context : reinterpret_cast<CUcontext>(current_context_or_null());
  *to = reinterpret_cast<CUgraphNode>(node);
  return CUDA_SUCCESS;
}

CUresult add(CUgraphNode* to, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
             const Operation& operation, CUcontext context = nullptr) {
  return add(to, graph, edges_at(dependencies, nullptr, count), operation, context);
}

template <class Parameters>
CUresult add_kernel(CUgraphNode* to, CUgraph graph, const CUgraphNode* dependencies,
                    std::size_t count, const Parameters* parameters) {
  require(parameters != nullptr);
  const KernelNodeParameters kernel = parameters_of(*parameters);
  return add(to, graph, dependencies, count, Operation(kernel_operation(kernel, {})),
             kernel.context);
}

template <class Parameters>
void get_kernel(CUgraphNode handle, Parameters* to) {
  require(to != nullptr);
  const Launch& launch = launch_of(driver().handles.get<GraphNode>(handle)).launch;
  *to = {};
  to->func = launch.handle;
  to->gridDimX = launch.grid[0];
  to->gridDimY = launch.grid[1];
  to->gridDimZ = launch.grid[2];
  to->blockDimX = launch.block[0];
  to->blockDimY = launch.block[1];
  to->blockDimZ = launch.block[2];
  to->sharedMemBytes = launch.dynamic_shared_bytes;
  to->kernelParams = const_cast<void**>(launch.arguments.data());
}

template <class Parameters>
CUresult set_kernel(CUgraphNode handle, const Parameters* parameters) {
  require(parameters != nullptr);
  auto& node = driver().handles.get<GraphNode>(handle);
  (void)launch_of(node);
  KernelNodeParameters kernel = parameters_of(*parameters);
  if (kernel.context == nullptr) kernel.context = node.context;
  node.operation = Operation(kernel_operation(kernel, node.attributes));
  return CUDA_SUCCESS;
}

}  // namespace

SIMCUDA_ENTRY(cuGraphAddKernelNode,
              (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
               size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams),
              {
                return add_kernel(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
              })
SIMCUDA_ENTRY(cuGraphAddKernelNode_v2,
              (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
               size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS* nodeParams),
              {
                return add_kernel(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
              })
SIMCUDA_ENTRY(cuGraphAddMemcpyNode,
              (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
               size_t numDependencies, const CUDA_MEMCPY3D* copyParams, CUcontext ctx),
              {
                require(copyParams != nullptr);
                return add(phGraphNode, hGraph, dependencies, numDependencies,
                           copy_operation(*copyParams), ctx);
              })
SIMCUDA_ENTRY(cuGraphAddMemsetNode,
              (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
               size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext ctx),
              {
                require(memsetParams != nullptr);
                return add(phGraphNode, hGraph, dependencies, numDependencies,
                           set_operation(*memsetParams), ctx);
              })
SIMCUDA_ENTRY(cuGraphAddHostNode,
              (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
               size_t numDependencies, const CUDA_HOST_NODE_PARAMS* nodeParams),
              {
                require(nodeParams != nullptr && nodeParams->fn != nullptr);
                return add(phGraphNode, hGraph, dependencies, numDependencies,
                           HostOperation{nodeParams->fn, nodeParams->userData});
              })
SIMCUDA_ENTRY(cuGraphAddEmptyNode,
              (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
               size_t numDependencies),
              { return add(phGraphNode, hGraph, dependencies, numDependencies, EmptyOperation{}); })
SIMCUDA_ENTRY(cuGraphAddEventRecordNode,
              (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
               size_t numDependencies, CUevent event),
              {
                return add(phGraphNode, hGraph, dependencies, numDependencies,
                           EventOperation{&driver().handles.get<Event>(event), false});
              })
SIMCUDA_ENTRY(cuGraphAddEventWaitNode,
              (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
               size_t numDependencies, CUevent event),
              {
                return add(phGraphNode, hGraph, dependencies, numDependencies,
                           EventOperation{&driver().handles.get<Event>(event), true});
              })
SIMCUDA_ENTRY(cuGraphAddNode,
              (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
               size_t numDependencies, CUgraphNodeParams* nodeParams),
              {
                require(nodeParams != nullptr);
                return add(phGraphNode, hGraph, dependencies, numDependencies,
                           operation_of(*nodeParams, {}));
              })
SIMCUDA_ENTRY(cuGraphAddNode_v2,
              (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
               const CUgraphEdgeData* dependencyData, size_t numDependencies,
               CUgraphNodeParams* nodeParams),
              {
                require(nodeParams != nullptr);
                return add(phGraphNode, hGraph,
                           edges_at(dependencies, dependencyData, numDependencies),
                           operation_of(*nodeParams, {}));
              })

SIMCUDA_ENTRY(cuGraphKernelNodeGetParams,
              (CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1* nodeParams), {
                get_kernel(hNode, nodeParams);
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuGraphKernelNodeGetParams_v2,
              (CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS* nodeParams), {
                get_kernel(hNode, nodeParams);
                if (driver().handles.find<Kernel>(nodeParams->func) != nullptr) {
                  nodeParams->kern = reinterpret_cast<CUkernel>(nodeParams->func);
                  nodeParams->func = nullptr;
                }
                nodeParams->ctx = driver().handles.get<GraphNode>(hNode).context;
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuGraphKernelNodeSetParams,
              (CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1* nodeParams),
              { return set_kernel(hNode, nodeParams); })
SIMCUDA_ENTRY(cuGraphKernelNodeSetParams_v2,
              (CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS* nodeParams),
              { return set_kernel(hNode, nodeParams); })
SIMCUDA_ENTRY(cuGraphNodeSetParams, (CUgraphNode hNode, CUgraphNodeParams* nodeParams), {
  require(nodeParams != nullptr);
  auto& node = driver().handles.get<GraphNode>(hNode);
  Operation changed = operation_of(*nodeParams, node.attributes);
  require(simcuda::type_of(changed) == simcuda::type_of(node.operation));
  node.operation = std::move(changed);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuGraphKernelNodeSetAttribute,
              (CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue* value), {
                require(value != nullptr);
                auto& node = driver().handles.get<GraphNode>(hNode);
                (void)launch_of(node);
                const auto before = node.attributes;
                std::erase_if(node.attributes,
                              [&](const CUlaunchAttribute& old) { return old.id == attr; });
                CUlaunchAttribute attribute{};
                attribute.id = attr;
                attribute.value = *value;
                node.attributes.push_back(attribute);
                try {
                  recheck(node);
                } catch (const Failure&) {
                  node.attributes = before;
                  throw;
                }
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuGraphKernelNodeGetAttribute,
              (CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue* value_out), {
                require(value_out != nullptr);
                const auto& node = driver().handles.get<GraphNode>(hNode);
                *value_out = {};
                for (const CUlaunchAttribute& attribute : node.attributes)
                  if (attribute.id == attr) *value_out = attribute.value;
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuGraphKernelNodeCopyAttributes, (CUgraphNode dst, CUgraphNode src), {
  auto& to = driver().handles.get<GraphNode>(dst);
  auto& from = driver().handles.get<GraphNode>(src);
  (void)launch_of(from);
  (void)launch_of(to);
  to.attributes = from.attributes;
  recheck(to);
  return CUDA_SUCCESS;
})
