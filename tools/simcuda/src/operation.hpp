#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "launch.hpp"

namespace simcuda {

/// A copy of up to three dimensions between two places of ordinary memory.
struct CopyOperation {
  std::uintptr_t destination = 0, source = 0;
  std::size_t width_bytes = 0, height = 1, depth = 1;
  std::size_t destination_pitch = 0, destination_slice = 0;  // bytes
  std::size_t source_pitch = 0, source_slice = 0;

  [[nodiscard]] std::size_t bytes() const { return width_bytes * height * depth; }
};

struct SetOperation {
  std::uintptr_t destination = 0;
  std::uint32_t value = 0;
  unsigned element_bytes = 1;
  std::size_t width = 0, height = 1;  // elements, rows
  std::size_t pitch = 0;              // bytes
};

struct HostOperation {
  CUhostFn function = nullptr;
  void* data = nullptr;
};

/// Records an event, or waits for one.
struct EventOperation {
  Event* event = nullptr;
  bool wait = false;
};

struct EmptyOperation {};

struct Graph;

/// A graph inside a graph, owned by its node. Instantiation puts its nodes in its place.
struct ChildOperation {
  Graph* graph = nullptr;
};

/// Anything that can be put on a stream or into a graph.
using Operation = std::variant<EmptyOperation, OwnedLaunch, CopyOperation, SetOperation,
                               HostOperation, EventOperation, ChildOperation>;

/// Puts an operation on a stream, or into the graph that the stream is being captured into.
void enqueue(Stream& stream, const Operation& operation);
/// The same for a launch, without copying its arguments when nothing is captured.
void enqueue_launch(Stream& stream, const Launch& launch, std::uint32_t correlation);
/// Runs an operation on a stream that is not being captured.
void run_operation(Stream& stream, const Operation& operation, std::uint32_t correlation,
                   GraphOrigin origin = {});

/// HtoD, DtoH, DtoD or HtoH, as faults name it.
const char* direction_of(const CopyOperation& copy);
void run_copy(Stream& stream, const CopyOperation& copy, std::uint32_t correlation,
              GraphOrigin origin = {});
void run_set(Stream& stream, const SetOperation& set, std::uint32_t correlation,
             GraphOrigin origin = {});
void run_host_function(Stream& stream, const HostOperation& call);
void record_event(Stream& stream, Event& event);
void wait_for_event(Stream& stream, const Event& event);

}  // namespace simcuda
