#include "graph.hpp"

#include <algorithm>
#include <set>

#include "stream_order.hpp"
#include "timeline.hpp"

namespace simcuda {

Graph* make_graph() {
  static std::uint32_t next_id = 1;
  auto* const graph = driver().handles.make<Graph>();
  graph->id = next_id++;
  return graph;
}

void destroy_graph(Graph* graph) {
  Driver& state = driver();
  for (GraphNode* const node : graph->nodes) destroy_node(node);
  state.handles.destroy(graph);
}

void destroy_node(GraphNode* node) {
  if (const auto* const child = std::get_if<ChildOperation>(&node->operation))
    destroy_graph(child->graph);
  driver().handles.destroy(node);
}

GraphNode* add_node(Graph& graph, const std::vector<GraphNode*>& dependencies,
                    const Operation& operation) {
  Driver& state = driver();
  for (const GraphNode* const dependency : dependencies)
    require(state.handles.find<GraphNode>(dependency) != nullptr && dependency->graph == &graph);
  auto* const node = state.handles.make<GraphNode>();
  node->graph = &graph;
  node->id = state.next_graph_node_id++;
  node->dependencies = dependencies;
  node->operation = operation;
  graph.nodes.push_back(node);
  return node;
}

Graph* clone_graph(const Graph& graph) {
  Graph* const copy = make_graph();
  std::map<const GraphNode*, GraphNode*> copies;
  for (const GraphNode* const node : graph.nodes) {
    std::vector<GraphNode*> dependencies;
    for (const GraphNode* const dependency : node->dependencies)
      dependencies.push_back(copies.at(dependency));
    Operation operation = node->operation;
    if (const auto* const child = std::get_if<ChildOperation>(&operation))
      operation = ChildOperation{clone_graph(*child->graph)};
    GraphNode* const twin = add_node(*copy, dependencies, operation);
    twin->cloned_from = node;
    twin->attributes = node->attributes;
    twin->context = node->context;
    copies[node] = twin;
  }
  return copy;
}

namespace {

using Indices = std::vector<std::size_t>;

// Appends the nodes of a graph that starts after `before`; gives back the nodes that it ends with.
Indices append_nodes(std::vector<GraphExec::Node>& to, const Graph& graph, const Indices& before) {
  std::map<const GraphNode*, Indices> ends;
  std::set<std::size_t> last;
  for (const GraphNode* const node : graph.nodes) {
    Indices dependencies;
    for (const GraphNode* const dependency : node->dependencies) {
      const Indices& of_one = ends.at(dependency);
      dependencies.insert(dependencies.end(), of_one.begin(), of_one.end());
    }
    if (node->dependencies.empty()) dependencies = before;
    for (const std::size_t followed : dependencies) last.erase(followed);
    if (const auto* const child = std::get_if<ChildOperation>(&node->operation)) {
      ends[node] = append_nodes(to, *child->graph, dependencies);
    } else {
      ends[node] = {to.size()};
      to.push_back(
          {node, node->id, std::move(dependencies), node->operation, node->attributes, true});
    }
    last.insert(ends[node].begin(), ends[node].end());
  }
  return graph.nodes.empty() ? before : Indices(last.begin(), last.end());
}

}  // namespace

std::vector<GraphExec::Node> flattened(const Graph& graph) {
  std::vector<GraphExec::Node> nodes;
  (void)append_nodes(nodes, graph, {});
  return nodes;
}

GraphExec* instantiate(const Graph& graph, unsigned long long flags) {
  auto* const executable = driver().handles.make<GraphExec>();
  executable->graph_id = graph.id;
  executable->flags = flags;
  executable->context = current_context_or_null();
  executable->nodes = flattened(graph);
  return executable;
}

CUgraphNodeType type_of(const Operation& operation) {
  if (std::holds_alternative<OwnedLaunch>(operation)) return CU_GRAPH_NODE_TYPE_KERNEL;
  if (std::holds_alternative<CopyOperation>(operation)) return CU_GRAPH_NODE_TYPE_MEMCPY;
  if (std::holds_alternative<SetOperation>(operation)) return CU_GRAPH_NODE_TYPE_MEMSET;
  if (std::holds_alternative<HostOperation>(operation)) return CU_GRAPH_NODE_TYPE_HOST;
  if (const auto* const event = std::get_if<EventOperation>(&operation))
    return event->wait ? CU_GRAPH_NODE_TYPE_WAIT_EVENT : CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  if (std::holds_alternative<ChildOperation>(operation)) return CU_GRAPH_NODE_TYPE_GRAPH;
  return CU_GRAPH_NODE_TYPE_EMPTY;
}

namespace {

// Puts each node behind the nodes that it depends on, and what comes next on the stream behind all
// of them.
class NodeOrder {
 public:
  NodeOrder(Stream& stream, GraphExec& graph)
      : stream_(stream), graph_(graph), start_(submit_marker(stream, graph.last_launch)) {}
  NodeOrder(const NodeOrder&) = delete;
  NodeOrder& operator=(const NodeOrder&) = delete;
  ~NodeOrder() {
    if (start_ != nullptr) {
      stream_.tail.clear();
      for (const std::vector<TaskPtr>& tail : tails_)
        stream_.tail.insert(stream_.tail.end(), tail.begin(), tail.end());
      if (stream_.tail.empty()) stream_.tail = {start_};
    }
    // Joint work among the nodes waits even where nothing did when they began.
    graph_.last_launch = submit_marker(stream_);
  }

  void begin(const GraphExec::Node& node) {
    if (start_ == nullptr) return;
    stream_.tail.clear();
    for (const std::size_t dependency : node.dependencies)
      stream_.tail.insert(stream_.tail.end(), tails_[dependency].begin(), tails_[dependency].end());
    if (stream_.tail.empty()) stream_.tail = {start_};
  }
  void end() {
    if (start_ != nullptr) tails_.push_back(stream_.tail);
  }

 private:
  Stream& stream_;
  GraphExec& graph_;
  TaskPtr start_;  // null when all work has its effect at once
  std::vector<std::vector<TaskPtr>> tails_;
};

}  // namespace

void run_graph(Stream& stream, GraphExec& graph, std::uint32_t correlation) {
  NodeOrder order(stream, graph);
  for (const GraphExec::Node& node : graph.nodes) {
    order.begin(node);
    if (node.enabled) run_operation(stream, node.operation, correlation, {node.id, graph.graph_id});
    order.end();
  }
}

GraphExec::Node& node_from(GraphExec& graph, const GraphNode* origin) {
  const auto found =
      std::find_if(graph.nodes.begin(), graph.nodes.end(),
                   [&](const GraphExec::Node& node) { return node.origin == origin; });
  require(found != graph.nodes.end());
  return *found;
}

}  // namespace simcuda
