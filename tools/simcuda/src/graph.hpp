#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "operation.hpp"

namespace simcuda {

struct Graph;

/// What a node comes after, and how.
struct Edge {
  GraphNode* from = nullptr;
  CUgraphEdgeData data{};

  [[nodiscard]] bool programmatic() const {
    return data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  }
  [[nodiscard]] bool has_data() const {
    return data.type != 0 || data.from_port != 0 || data.to_port != 0;
  }
  friend bool operator==(const Edge& one, const Edge& other) {
    return one.from == other.from && one.data.type == other.data.type &&
           one.data.from_port == other.data.from_port && one.data.to_port == other.data.to_port;
  }
};
using Edges = std::vector<Edge>;

struct GraphNode : Object {
  static constexpr Kind kind = Kind::graph_node;
  GraphNode() : Object(kind) {}

  Graph* graph = nullptr;
  std::uint64_t id = 0;
  Edges dependencies;
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

  struct Dependency {
    std::size_t node;  // index into nodes
    bool programmatic;
    friend bool operator==(const Dependency&, const Dependency&) = default;
  };
  struct Node {
    const GraphNode* origin;
    std::uint64_t id;
    std::vector<Dependency> dependencies;
    Operation operation;
    std::vector<CUlaunchAttribute> attributes;
    bool enabled = true;
  };
  std::uint32_t graph_id = 0;
  unsigned long long flags = 0;
  std::vector<Node> nodes;  // those of child graphs too
  TaskPtr last_launch;      // launches of one executable graph follow each other
};

[[nodiscard]] Graph* make_graph();
void destroy_graph(Graph* graph);
void destroy_node(GraphNode* node);
/// @throws Failure{INVALID_VALUE} when a dependency is no node of the graph or of a kind that there
/// cannot be
GraphNode* add_node(Graph& graph, const Edges& dependencies, const Operation& operation);
/// @throws Failure{INVALID_VALUE} for a kind of dependency that these two cannot have
void check_edge(const Edge& edge, const Operation& to);
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
