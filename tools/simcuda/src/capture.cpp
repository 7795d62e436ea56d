#include "capture.hpp"

#include <algorithm>

namespace simcuda {

namespace {

thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

std::set<Capture*>& captures() {
  static auto* const all = new std::set<Capture*>;
  return *all;
}

Capture& valid_capture(const Stream& stream) {
  require(!stream.capture->invalidated, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  return *stream.capture;
}

void join(Stream& stream, Capture& capture, const std::vector<GraphNode*>& tail) {
  stream.capture = &capture;
  stream.capture_tail = tail;
  capture.streams.insert(&stream);
}

void leave(Capture& capture) {
  for (Stream* const stream : capture.streams) {
    stream->capture = nullptr;
    stream->capture_tail.clear();
  }
  captures().erase(&capture);
}

}  // namespace

void begin_capture(Stream& stream, CUstreamCaptureMode mode, Graph* into,
                   const std::vector<GraphNode*>& dependencies) {
  require(mode <= CU_STREAM_CAPTURE_MODE_RELAXED);
  // The legacy stream cannot be captured.
  require(stream.context->legacy != &stream, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  require(stream.capture == nullptr, CUDA_ERROR_ILLEGAL_STATE);
  auto* const capture = new Capture;
  capture->id = driver().next_capture_id++;
  capture->graph = into != nullptr ? into : make_graph();
  capture->owns_graph = into == nullptr;
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = &stream;
  captures().insert(capture);
  join(stream, *capture, dependencies);
}

Graph* end_capture(Stream& stream) {
  require(stream.capture != nullptr, CUDA_ERROR_ILLEGAL_STATE);
  require(stream.capture->origin == &stream, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  require(stream.capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
              stream.capture->thread == std::this_thread::get_id(),
          CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  const std::unique_ptr<Capture> capture(stream.capture);
  // Every forked stream must have been joined: its last node is an ancestor of the origin's tail.
  std::set<const GraphNode*> reached;
  std::vector<const GraphNode*> open(stream.capture_tail.begin(), stream.capture_tail.end());
  while (!open.empty()) {
    const GraphNode* const node = open.back();
    open.pop_back();
    if (!reached.insert(node).second) continue;
    for (const Edge& edge : node->dependencies) open.push_back(edge.from);
  }
  bool joined = true;
  for (const Stream* const other : capture->streams)
    for (const GraphNode* const node : other->capture_tail)
      joined = joined && reached.count(node) != 0;
  leave(*capture);
  if (capture->invalidated || !joined) {
    if (capture->owns_graph) destroy_graph(capture->graph);
    throw Failure{joined ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                         : CUDA_ERROR_STREAM_CAPTURE_UNJOINED};
  }
  return capture->graph;
}

void abandon_capture(Stream& stream) {
  if (stream.capture == nullptr) return;
  Capture* const capture = stream.capture;
  capture->invalidated = true;
  capture->streams.erase(&stream);
  stream.capture = nullptr;
  if (capture->origin != &stream) return;
  leave(*capture);
  if (capture->owns_graph) destroy_graph(capture->graph);
  delete capture;
}

void capture_operation(Stream& stream, const Operation& operation) {
  Capture& capture = valid_capture(stream);
  Edges edges;
  for (GraphNode* const node : stream.capture_tail) edges.push_back({node});
  // A programmatic launch directly behind another launch.
  const auto* const owned = std::get_if<OwnedLaunch>(&operation);
  if (owned != nullptr && owned->launch.programmatic && edges.size() == 1 &&
      type_of(edges.front().from->operation) == CU_GRAPH_NODE_TYPE_KERNEL)
    edges.front().data = {
        CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
  GraphNode* const node = add_node(*capture.graph, edges, operation);
  node->context = reinterpret_cast<CUcontext>(stream.context);
  stream.capture_tail = {node};
}

void capture_event_record(Stream& stream, Event& event) {
  const Capture& capture = valid_capture(stream);
  event.recorded = true;
  event.capture = stream.capture;
  event.capture_id = capture.id;
  event.captured = stream.capture_tail;
}

void capture_event_wait(Stream& stream, const Event& event) {
  if (event.capture == nullptr) {
    // An event from outside has no place in the graph.
    stream.capture->invalidated = true;
    throw Failure{CUDA_ERROR_STREAM_CAPTURE_ISOLATION};
  }
  require(captures().count(event.capture) != 0 && event.capture->id == event.capture_id,
          CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  if (stream.capture == nullptr) {
    join(stream, *event.capture, event.captured);
    return;
  }
  require(stream.capture == event.capture, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  for (GraphNode* const node : event.captured)
    if (std::find(stream.capture_tail.begin(), stream.capture_tail.end(), node) ==
        stream.capture_tail.end())
      stream.capture_tail.push_back(node);
}

void check_implicit_dependency(const Stream& stream) {
  const Context& context = *stream.context;
  if (captures().empty() || context.legacy != &stream) return;
  for (const Stream* const other : context.streams) {
    if (other->capture == nullptr || !other->blocking) continue;
    other->capture->invalidated = true;
    throw Failure{CUDA_ERROR_STREAM_CAPTURE_IMPLICIT};
  }
}

void forbid_while_capturing(const Stream& stream) {
  if (stream.capture == nullptr) return;
  stream.capture->invalidated = true;
  throw Failure{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED};
}

void forbid_unsafe_call() {
  if (captures().empty() || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return;
  for (Capture* const capture : captures()) {
    const bool mine = capture->thread == std::this_thread::get_id();
    const bool counts = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL
                            ? mine || thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL
                            : mine && capture->mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    if (!counts) continue;
    capture->invalidated = true;
    throw Failure{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED};
  }
}

CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode) {
  return std::exchange(thread_mode, mode);
}

}  // namespace simcuda
