#include "graph.hpp"

#include <algorithm>
#include <set>

#include "stream_order.hpp"

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

void check_edge(const Edge& edge, const Operation& to) {
  const CUgraphEdgeData& data = edge.data;
  require(data.to_port == 0 && data.type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
  if (edge.programmatic())
    require(data.from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC ||
            data.from_port == CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER);
  else
    require(data.from_port == CU_GRAPH_KERNEL_NODE_PORT_DEFAULT);
  if (edge.programmatic())
    require(std::holds_alternative<OwnedLaunch>(edge.from->operation) &&
            std::holds_alternative<OwnedLaunch>(to));
}

GraphNode* add_node(Graph& graph, const Edges& dependencies, const Operation& operation) {
  Driver& state = driver();
  for (const Edge& dependency : dependencies) {
    require(state.handles.find<GraphNode>(dependency.from) != nullptr &&
            dependency.from->graph == &graph);
    check_edge(dependency, operation);
  }
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
    Edges dependencies = node->dependencies;
    for (Edge& dependency : dependencies) dependency.from = copies.at(dependency.from);
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
using Dependencies = std::vector<GraphExec::Dependency>;

// Appends the nodes of a graph that starts after `before`; gives back the nodes that it ends with.
Indices append_nodes(std::vector<GraphExec::Node>& to, const Graph& graph, const Indices& before) {
  std::map<const GraphNode*, Indices> ends;
  std::set<std::size_t> last;
  for (const GraphNode* const node : graph.nodes) {
    Dependencies dependencies;
    for (const Edge& edge : node->dependencies)
      for (const std::size_t end : ends.at(edge.from))
        dependencies.push_back({end, edge.programmatic()});
    if (node->dependencies.empty())
      for (const std::size_t end : before) dependencies.push_back({end, false});
    for (const GraphExec::Dependency& followed : dependencies) last.erase(followed.node);
    if (const auto* const child = std::get_if<ChildOperation>(&node->operation)) {
      Indices followed;
      for (const GraphExec::Dependency& one : dependencies) followed.push_back(one.node);
      ends[node] = append_nodes(to, *child->graph, followed);
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

bool has_chained_edge(const GraphExec::Node& node) {
  return std::any_of(node.dependencies.begin(), node.dependencies.end(),
                     [](const GraphExec::Dependency& one) { return one.programmatic; });
}

void append_all(std::vector<TaskPtr>& to, const std::vector<TaskPtr>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

// Puts each node behind the nodes that it depends on, and what comes next on the stream behind all
// of them.
class NodeOrder {
 public:
  NodeOrder(Stream& stream, GraphExec& graph)
      : stream_(stream),
        graph_(graph),
        holds_(std::any_of(graph.nodes.begin(), graph.nodes.end(), &has_chained_edge)) {
    // Where nodes may run in a wrong order, all have to be known before one runs.
    if (holds_) driver().pending.hold();
    start_ = submit_marker(stream, graph.last_launch);
  }
  NodeOrder(const NodeOrder&) = delete;
  NodeOrder& operator=(const NodeOrder&) = delete;
  ~NodeOrder() {
    end_chain(stream_);
    if (start_ != nullptr) {
      stream_.tail.clear();
      for (const End& end : ends_) append_all(stream_.tail, end.tail);
      if (stream_.tail.empty()) stream_.tail = {start_};
    }
    // Joint work among the nodes waits even where nothing did when they began.
    graph_.last_launch = submit_marker(stream_);
    if (holds_) driver().pending.release();
  }

  void begin(const GraphExec::Node& node) {
    if (start_ == nullptr) return;
    stream_.tail.clear();
    Chain chain;
    bool can_chain = true;
    for (const GraphExec::Dependency& dependency : node.dependencies) {
      const End& end = ends_[dependency.node];
      append_all(stream_.tail, end.tail);
      if (!dependency.programmatic) {
        append_all(chain.also, end.tail);
        continue;
      }
      can_chain = can_chain && !end.chain.tasks.empty();
      append_all(chain.tasks, end.chain.tasks);
      append_all(chain.after, end.chain.after);
      chain.stale.insert(chain.stale.end(), end.chain.stale.begin(), end.chain.stale.end());
    }
    if (stream_.tail.empty()) stream_.tail = {start_};
    stream_.chain = can_chain ? std::move(chain) : Chain();
  }
  void end() {
    if (start_ != nullptr) ends_.push_back({stream_.tail, std::exchange(stream_.chain, {})});
  }

 private:
  struct End {
    std::vector<TaskPtr> tail;
    Chain chain;
  };
  Stream& stream_;
  GraphExec& graph_;
  bool holds_;
  TaskPtr start_;  // null when all work has its effect at once
  std::vector<End> ends_;
};

}  // namespace

void run_graph(Stream& stream, GraphExec& graph, std::uint32_t correlation) {
  NodeOrder order(stream, graph);
  bool inside = false;
  for (const GraphExec::Node& node : graph.nodes) {
    order.begin(node);
    if (node.enabled) {
      run_operation(stream, node.operation, correlation,
                    {node.id, graph.graph_id, inside, has_chained_edge(node)});
      inside = true;
    }
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
