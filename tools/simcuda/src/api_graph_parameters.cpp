// Nodes of graphs that are no kernels: reading and changing what they do.
#include "copy_shape.hpp"
#include "graph_nodes.hpp"

using namespace simcuda;

namespace {

HostOperation host_operation(const CUDA_HOST_NODE_PARAMS* from) {
  require(from != nullptr && from->fn != nullptr);
  return {from->fn, from->userData};
}

CopyOperation copy_at(const CUDA_MEMCPY3D* from) {
  require(from != nullptr);
  return copy_operation(*from);
}

SetOperation set_at(const CUDA_MEMSET_NODE_PARAMS* from) {
  require(from != nullptr);
  return set_operation(*from);
}

// The event of a node that records one or waits for one, as `wait` says.
Event*& event_of(EventOperation& operation, bool wait) {
  require(operation.wait == wait);
  return operation.event;
}

CUresult give_event(CUgraphNode node, bool wait, CUevent* to) {
  require(to != nullptr);
  *to = reinterpret_cast<CUevent>(event_of(operation_at<EventOperation>(node), wait));
  return CUDA_SUCCESS;
}

CUresult set_event(EventOperation& operation, bool wait, CUevent event) {
  event_of(operation, wait) = &driver().handles.get<Event>(event);
  return CUDA_SUCCESS;
}

}  // namespace

SIMCUDA_ENTRY(cuGraphMemcpyNodeGetParams, (CUgraphNode hNode, CUDA_MEMCPY3D* nodeParams), {
  require(nodeParams != nullptr);
  *nodeParams = structure_of(operation_at<CopyOperation>(hNode));
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuGraphMemcpyNodeSetParams, (CUgraphNode hNode, const CUDA_MEMCPY3D* nodeParams), {
  operation_at<CopyOperation>(hNode) = copy_at(nodeParams);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuGraphExecMemcpyNodeSetParams,
              (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMCPY3D* copyParams,
               CUcontext),
              {
                operation_at<CopyOperation>(hGraphExec, hNode) = copy_at(copyParams);
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuGraphMemsetNodeGetParams, (CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS* nodeParams),
              {
                require(nodeParams != nullptr);
                const auto& set = operation_at<SetOperation>(hNode);
                *nodeParams = {set.destination,   set.pitch, set.value,
                               set.element_bytes, set.width, set.height};
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuGraphMemsetNodeSetParams,
              (CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS* nodeParams), {
                operation_at<SetOperation>(hNode) = set_at(nodeParams);
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuGraphExecMemsetNodeSetParams,
              (CUgraphExec hGraphExec, CUgraphNode hNode,
               const CUDA_MEMSET_NODE_PARAMS* memsetParams, CUcontext),
              {
                operation_at<SetOperation>(hGraphExec, hNode) = set_at(memsetParams);
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuGraphHostNodeGetParams, (CUgraphNode hNode, CUDA_HOST_NODE_PARAMS* nodeParams), {
  require(nodeParams != nullptr);
  const auto& host = operation_at<HostOperation>(hNode);
  *nodeParams = {};
  nodeParams->fn = host.function;
  nodeParams->userData = host.data;
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuGraphHostNodeSetParams,
              (CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams), {
                operation_at<HostOperation>(hNode) = host_operation(nodeParams);
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuGraphExecHostNodeSetParams,
              (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS* nodeParams),
              {
                operation_at<HostOperation>(hGraphExec, hNode) = host_operation(nodeParams);
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuGraphEventRecordNodeGetEvent, (CUgraphNode hNode, CUevent* event_out),
              { return give_event(hNode, false, event_out); })
SIMCUDA_ENTRY(cuGraphEventRecordNodeSetEvent, (CUgraphNode hNode, CUevent event),
              { return set_event(operation_at<EventOperation>(hNode), false, event); })
SIMCUDA_ENTRY(cuGraphExecEventRecordNodeSetEvent,
              (CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event),
              { return set_event(operation_at<EventOperation>(hGraphExec, hNode), false, event); })
SIMCUDA_ENTRY(cuGraphEventWaitNodeGetEvent, (CUgraphNode hNode, CUevent* event_out),
              { return give_event(hNode, true, event_out); })
SIMCUDA_ENTRY(cuGraphEventWaitNodeSetEvent, (CUgraphNode hNode, CUevent event),
              { return set_event(operation_at<EventOperation>(hNode), true, event); })
SIMCUDA_ENTRY(cuGraphExecEventWaitNodeSetEvent,
              (CUgraphExec hGraphExec, CUgraphNode hNode, CUevent event),
              { return set_event(operation_at<EventOperation>(hGraphExec, hNode), true, event); })

SIMCUDA_ENTRY(cuGraphAddChildGraphNode,
              (CUgraphNode * phGraphNode, CUgraph hGraph, const CUgraphNode* dependencies,
               size_t numDependencies, CUgraph childGraph),
              {
                require(phGraphNode != nullptr);
                auto& graph = driver().handles.get<Graph>(hGraph);
                const auto& child = driver().handles.get<Graph>(childGraph);
                GraphNode* const node = add_node(
                    graph, edges_at(dependencies, nullptr, numDependencies), EmptyOperation{});
                node->operation = ChildOperation{clone_graph(child)};
                *phGraphNode = reinterpret_cast<CUgraphNode>(node);
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuGraphChildGraphNodeGetGraph, (CUgraphNode hNode, CUgraph* phGraph), {
  require(phGraph != nullptr);
  *phGraph = reinterpret_cast<CUgraph>(operation_at<ChildOperation>(hNode).graph);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuGraphNodeSetEnabled,
              (CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled), {
                GraphExec::Node& node = node_from(driver().handles.get<GraphExec>(hGraphExec),
                                                  &driver().handles.get<GraphNode>(hNode));
                const CUgraphNodeType type = simcuda::type_of(node.operation);
                require(type == CU_GRAPH_NODE_TYPE_KERNEL || type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                        type == CU_GRAPH_NODE_TYPE_MEMSET);
                node.enabled = isEnabled != 0;
                return CUDA_SUCCESS;
              })
SIMCUDA_ENTRY(cuGraphNodeGetEnabled,
              (CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int* isEnabled), {
                require(isEnabled != nullptr);
                *isEnabled = node_from(driver().handles.get<GraphExec>(hGraphExec),
                                       &driver().handles.get<GraphNode>(hNode))
                                     .enabled
                                 ? 1
                                 : 0;
                return CUDA_SUCCESS;
              })
