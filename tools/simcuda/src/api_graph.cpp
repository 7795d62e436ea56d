// Making graphs and asking about them.
#include <algorithm>

#include "graph_nodes.hpp"

using namespace simcuda;

namespace {

Graph& graph_at(CUgraph handle) {
  return driver().handles.get<Graph>(handle);
}
GraphNode& node_at(CUgraphNode handle) {
  return driver().handles.get<GraphNode>(handle);
}

CUresult give_edges(const Graph& graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data,
                    std::size_t* count) {
  require(count != nullptr);
  std::size_t edges = 0;
  for (GraphNode* const node : graph.nodes)
    for (const Edge& edge : node->dependencies) {
      if (from != nullptr && to != nullptr && edges < *count) {
        require(data != nullptr || !edge.has_data(), CUDA_ERROR_LOSSY_QUERY);
        from[edges] = reinterpret_cast<CUgraphNode>(edge.from);
        to[edges] = reinterpret_cast<CUgraphNode>(node);
        if (data != nullptr) data[edges] = edge.data;
      }
      ++edges;
    }
  *count = edges;
  return CUDA_SUCCESS;
}

// The other node of each edge of one node.
CUresult give_ends(const Edges& edges, CUgraphNode* to, CUgraphEdgeData* data, std::size_t* count) {
  require(count != nullptr);
  std::vector<GraphNode*> nodes;
  for (const Edge& edge : edges) {
    if (to != nullptr && nodes.size() < *count) {
      require(data != nullptr || !edge.has_data(), CUDA_ERROR_LOSSY_QUERY);
      if (data != nullptr) data[nodes.size()] = edge.data;
    }
    nodes.push_back(edge.from);
  }
  give_nodes(nodes, to, count);
  return CUDA_SUCCESS;
}

CUresult give_dependencies(CUgraphNode handle, CUgraphNode* to, CUgraphEdgeData* data,
                           std::size_t* count) {
  return give_ends(node_at(handle).dependencies, to, data, count);
}

CUresult give_dependents(CUgraphNode handle, CUgraphNode* to, CUgraphEdgeData* data,
                         std::size_t* count) {
  const GraphNode& node = node_at(handle);
  Edges dependents;
  for (GraphNode* const other : node.graph->nodes)
    for (const Edge& edge : other->dependencies)
      if (edge.from == &node) dependents.push_back({other, edge.data});
  return give_ends(dependents, to, data, count);
}

CUresult add_edges(Graph& graph, const CUgraphNode* from, const CUgraphNode* to,
                   const CUgraphEdgeData* data, std::size_t count) {
  const Edges sources = edges_at(from, data, count);
  const auto targets = nodes_at(to, count);
  for (std::size_t i = 0; i < count; ++i) {
    require(sources[i].from->graph == &graph && targets[i]->graph == &graph);
    check_edge(sources[i], targets[i]->operation);
    const auto source = std::find(graph.nodes.begin(), graph.nodes.end(), sources[i].from);
    const auto target = std::find(graph.nodes.begin(), graph.nodes.end(), targets[i]);
    // Nodes are kept in an order that runs; one move makes room for the new edge.
    if (target < source) {
      for (const GraphNode* const dependent : graph.nodes)
        for (const Edge& edge : dependent->dependencies)
          require(edge.from != targets[i], CUDA_ERROR_NOT_SUPPORTED);
      std::rotate(target, target + 1, source + 1);
    }
    targets[i]->dependencies.push_back(sources[i]);
  }
  return CUDA_SUCCESS;
}

CUresult remove_edges(const Graph& graph, const CUgraphNode* from, const CUgraphNode* to,
                      const CUgraphEdgeData* data, std::size_t count) {
  const Edges sources = edges_at(from, data, count);
  const auto targets = nodes_at(to, count);
  for (std::size_t i = 0; i < count; ++i) {
    require(sources[i].from->graph == &graph && targets[i]->graph == &graph);
    require(std::erase(targets[i]->dependencies, sources[i]) > 0);
  }
  return CUDA_SUCCESS;
}

}  // namespace

SIMCUDA_ENTRY(cuGraphCreate, (CUgraph * phGraph, unsigned int flags), {
  require(phGraph != nullptr && flags == 0);
  *phGraph = reinterpret_cast<CUgraph>(make_graph());
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuGraphDestroy, (CUgraph hGraph), {
  destroy_graph(&graph_at(hGraph));
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuGraphClone, (CUgraph * phGraphClone, CUgraph originalGraph), {
  require(phGraphClone != nullptr);
  *phGraphClone = reinterpret_cast<CUgraph>(clone_graph(graph_at(originalGraph)));
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuGraphGetNodes, (CUgraph hGraph, CUgraphNode* nodes, size_t* numNodes), {
  give_nodes(graph_at(hGraph).nodes, nodes, numNodes);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuGraphGetRootNodes, (CUgraph hGraph, CUgraphNode* rootNodes, size_t* numRootNodes), {
  std::vector<GraphNode*> roots;
  for (GraphNode* const node : graph_at(hGraph).nodes)
    if (node->dependencies.empty()) roots.push_back(node);
  give_nodes(roots, rootNodes, numRootNodes);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuGraphGetEdges,
              (CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, size_t* numEdges),
              { return give_edges(graph_at(hGraph), from, to, nullptr, numEdges); })
SIMCUDA_ENTRY(cuGraphNodeGetType, (CUgraphNode hNode, CUgraphNodeType* type), {
  require(type != nullptr);
  *type = simcuda::type_of(node_at(hNode).operation);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuGraphNodeGetDependencies,
              (CUgraphNode hNode, CUgraphNode* dependencies, size_t* numDependencies),
              { return give_dependencies(hNode, dependencies, nullptr, numDependencies); })
SIMCUDA_ENTRY(cuGraphNodeGetDependentNodes,
              (CUgraphNode hNode, CUgraphNode* dependentNodes, size_t* numDependentNodes),
              { return give_dependents(hNode, dependentNodes, nullptr, numDependentNodes); })
SIMCUDA_ENTRY(cuGraphAddDependencies,
              (CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
               size_t numDependencies),
              { return add_edges(graph_at(hGraph), from, to, nullptr, numDependencies); })
SIMCUDA_ENTRY(cuGraphRemoveDependencies,
              (CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
               size_t numDependencies),
              { return remove_edges(graph_at(hGraph), from, to, nullptr, numDependencies); })

#if CUDA_VERSION >= 13000
SIMCUDA_ENTRY(cuGraphGetEdges_v2,
              (CUgraph hGraph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* edgeData,
               size_t* numEdges),
              { return give_edges(graph_at(hGraph), from, to, edgeData, numEdges); })
SIMCUDA_ENTRY(cuGraphNodeGetDependencies_v2,
              (CUgraphNode hNode, CUgraphNode* dependencies, CUgraphEdgeData* edgeData,
               size_t* numDependencies),
              { return give_dependencies(hNode, dependencies, edgeData, numDependencies); })
SIMCUDA_ENTRY(cuGraphNodeGetDependentNodes_v2,
              (CUgraphNode hNode, CUgraphNode* dependentNodes, CUgraphEdgeData* edgeData,
               size_t* numDependentNodes),
              { return give_dependents(hNode, dependentNodes, edgeData, numDependentNodes); })
SIMCUDA_ENTRY(cuGraphAddDependencies_v2,
              (CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
               const CUgraphEdgeData* edgeData, size_t numDependencies),
              { return add_edges(graph_at(hGraph), from, to, edgeData, numDependencies); })
SIMCUDA_ENTRY(cuGraphRemoveDependencies_v2,
              (CUgraph hGraph, const CUgraphNode* from, const CUgraphNode* to,
               const CUgraphEdgeData* edgeData, size_t numDependencies),
              { return remove_edges(graph_at(hGraph), from, to, edgeData, numDependencies); })
#endif

SIMCUDA_ENTRY(cuGraphDestroyNode, (CUgraphNode hNode), {
  GraphNode& node = node_at(hNode);
  std::erase(node.graph->nodes, &node);
  for (GraphNode* const other : node.graph->nodes)
    std::erase_if(other->dependencies, [&](const Edge& edge) { return edge.from == &node; });
  destroy_node(&node);
  return CUDA_SUCCESS;
})
SIMCUDA_ENTRY(cuGraphNodeFindInClone,
              (CUgraphNode * phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph), {
                require(phNode != nullptr);
                const GraphNode& original = node_at(hOriginalNode);
                for (GraphNode* const node : graph_at(hClonedGraph).nodes) {
                  if (node->cloned_from != &original) continue;
                  *phNode = reinterpret_cast<CUgraphNode>(node);
                  return CUDA_SUCCESS;
                }
                return CUDA_ERROR_INVALID_VALUE;
              })
