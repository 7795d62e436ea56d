#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "operation.hpp"

namespace simcuda {

struct Graph;

struct GraphNode : Object {
  static constexpr Kind kind = Kind::graph_node;
  GraphNode() : Object(kind) {}

  Graph* graph = nullptr;
  std::uint64_t id = 0;
  std::vector<GraphNode*> dependencies;
  Operation operation;
  std::vector<CUlaunchAttribute> attributes;  // of a kernel node
  CUcontext context = nullptr;                // of a kernel node
  const GraphNode* cloned_from = nullptr;     // a node that may be gone
};

struct Graph : Object {
  static constexpr Kind kind = Kind::graph;
  Graph() : Object(kind) {}

  std::uint32_t id = 0;
  std::vector<GraphNode*> nodes;  // in the order in which they were added: no edge goes backwards
};

/// An instantiated graph: its nodes as they were then, each with the node that it came from.
struct GraphExec : Object {
  static constexpr Kind kind = Kind::graph_exec;
  GraphExec() : Object(kind) {}

  struct Node {
    const GraphNode* origin;
    std::uint64_t id;
    std::vector<std::size_t> dependencies;  // indices into nodes
    Operation operation;
    std::vector<CUlaunchAttribute> attributes;
    bool enabled = true;
  };
  std::uint32_t graph_id = 0;
  unsigned long long flags = 0;
  Context* context = nullptr;
  std::vector<Node> nodes;  // those of child graphs too
  TaskPtr last_launch;      // launches of one executable graph follow each other
};

[[nodiscard]] Graph* make_graph();
void destroy_graph(Graph* graph);
void destroy_node(GraphNode* node);
/// @throws Failure{INVALID_VALUE} when a dependency is no node of the graph
GraphNode* add_node(Graph& graph, const std::vector<GraphNode*>& dependencies,
                    const Operation& operation);
/// The nodes of a graph and of its child graphs, as an executable graph has them.
[[nodiscard]] std::vector<GraphExec::Node> flattened(const Graph& graph);
[[nodiscard]] GraphExec* instantiate(const Graph& graph, unsigned long long flags);
[[nodiscard]] CUgraphNodeType type_of(const Operation& operation);
/// Runs all nodes, in an order that keeps every dependency, as one stretch of a stream. Their times
/// lie one after another; deferred effects know no order but that of the dependencies.
/// @param correlation of the launching call; all of the work carries it
void run_graph(Stream& stream, GraphExec& graph, std::uint32_t correlation);
/// Copies a whole graph.
[[nodiscard]] Graph* clone_graph(const Graph& graph);
/// The node of an instantiated graph that came from `origin`. @throws Failure{INVALID_VALUE}
[[nodiscard]] GraphExec::Node& node_from(GraphExec& graph, const GraphNode* origin);

}  // namespace simcuda
