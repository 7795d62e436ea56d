#pragma once

#include <cstdint>
#include <set>
#include <thread>

#include "graph.hpp"

namespace simcuda {

/// One stream capture in progress.
struct Capture {
  std::uint64_t id = 0;
  Graph* graph = nullptr;
  bool owns_graph = true;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  std::thread::id thread;
  Stream* origin = nullptr;
  std::set<Stream*> streams;
  bool invalidated = false;
};

void begin_capture(Stream& stream, CUstreamCaptureMode mode, Graph* into,
                   const std::vector<GraphNode*>& dependencies);
/// The captured graph. @throws Failure when the capture was invalidated or a stream did not join.
Graph* end_capture(Stream& stream);
/// A stream that goes away spoils its capture.
void abandon_capture(Stream& stream);
/// Adds what was put on a capturing stream. @throws Failure{STREAM_CAPTURE_INVALIDATED}
void capture_operation(Stream& stream, const Operation& operation);
/// Marks an event with the place in the graph, or takes such a place over into another stream.
void capture_event_record(Stream& stream, Event& event);
void capture_event_wait(Stream& stream, const Event& event);
/// @throws Failure{STREAM_CAPTURE_IMPLICIT} for work on the legacy stream during a capture.
void check_implicit_dependency(const Stream& stream);
/// @throws Failure{STREAM_CAPTURE_UNSUPPORTED}, invalidating the capture, when `stream` captures.
void forbid_while_capturing(const Stream& stream);
/// The same for a call that is unsafe while any capture is on that this thread must respect.
void forbid_unsafe_call();
/// Swaps the calling thread's mode.
CUstreamCaptureMode exchange_capture_mode(CUstreamCaptureMode mode);

}  // namespace simcuda
