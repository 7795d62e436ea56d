#include "operation.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "capture.hpp"
#include "copy_effect.hpp"
#include "host_calls.hpp"
#include "host_functions.hpp"
#include "stream_order.hpp"
#include "stream_time.hpp"
#include "timeline.hpp"

namespace simcuda {

namespace {

// CUPTI's numbers of memory kinds.
std::uint32_t memory_kind(const Memory::Block* block) {
  if (block == nullptr) return 1;  // pageable
  if (block->on_host()) return 2;  // pinned
  return block->kind == Memory::Kind::managed ? 5 : 3;
}

bool on_device(std::uint32_t kind) {
  return kind == 3 || kind == 5;
}

simcuda_activity activity_on(const Stream& stream, const Span& span, double submitted,
                             std::uint32_t correlation, GraphOrigin origin) {
  simcuda_activity activity{};
  activity.start = span.start;
  activity.end = span.end;
  activity.submitted = submitted;
  activity.device = static_cast<std::uint32_t>(stream.context->device);
  activity.context = stream.context->id;
  activity.stream = stream.id;
  activity.correlation = correlation;
  activity.graph_node = origin.node;
  activity.graph = origin.graph;
  return activity;
}

double gap_before(GraphOrigin origin, const DeviceProfile& profile) {
  return origin.inside ? profile.graph_gap : profile.stream_gap;
}

// Gives a copy its effect. The driver takes pageable memory over at the call; pinned memory, and
// all memory in a graph, is read when the copy runs.
void perform_copy(Stream& stream, const CopyOperation& copy, bool stage, bool wrong) {
  std::shared_ptr<std::vector<std::byte>> keep;
  const bool take_over = stage && !driver().pending.immediate();
  const CopyOperation operation = take_over ? staged(copy, keep) : copy;
  perform(stream, [operation, keep, wrong] {
    copy_rows(operation);
    if (wrong && operation.width_bytes > 0) flip_bit(operation.destination);
  });
}

// The fault that hits a copy or memset, after those that make it fail. @throws Failure
bool spoiled_by_fault(std::string_view direction, std::size_t bytes) {
  const Fault* const fault = driver().faults.hit_copy(direction, bytes);
  if (fault == nullptr) return false;
  if (fault->kind == Fault::Kind::copy_fail) throw Failure{fault->error};
  return true;
}

}  // namespace

const char* direction_of(const CopyOperation& copy) {
  const bool to_device = on_device(memory_kind(driver().memory.find(copy.destination)));
  if (on_device(memory_kind(driver().memory.find(copy.source)))) return to_device ? "DtoD" : "DtoH";
  return to_device ? "HtoD" : "HtoH";
}

void run_copy(Stream& stream, const CopyOperation& copy, std::uint32_t correlation,
              GraphOrigin origin) {
  if (stream.hung) return;
  Driver& state = driver();
  const std::size_t bytes = copy.bytes();
  Device& device = state.device(stream.context->device);
  const Memory::Block* const to_block = state.memory.find(copy.destination);
  const Memory::Block* const from_block = state.memory.find(copy.source);
  const std::uint32_t from = memory_kind(from_block);
  const std::uint32_t to = memory_kind(to_block);
  const bool wrong = spoiled_by_fault(direction_of(copy), bytes);
  perform_copy(stream, copy, from_block == nullptr && origin.node == 0, wrong);
  const bool peers = on_device(from) && on_device(to) && from_block->device != to_block->device;
  double bandwidth = device.profile.host_copy_bandwidth;
  if (peers)
    bandwidth = device.profile.peer_copy_bandwidth;
  else if (on_device(from) && on_device(to))
    bandwidth = device.profile.dram_bandwidth / 2;
  const double seconds = (device.profile.copy_latency + static_cast<double>(bytes) / bandwidth) *
                         device.noise.factor();
  // A copy also reads through the cache.
  if (on_device(from))
    state.device(from_block->device)
        .cost.take_in(reinterpret_cast<const void*>(copy.source), bytes);
  if (on_device(to))
    state.device(to_block->device)
        .cost.take_in(reinterpret_cast<const void*>(copy.destination), bytes);
  const double submitted = state.host_time;
  const double gap = gap_before(origin, device.profile);
  reckon_time(stream, [=, &state, &stream] {
    const Span span = schedule_work(stream, seconds, 0, gap);
    if (state.listener.load(std::memory_order_acquire) == nullptr) return;
    simcuda_activity activity = activity_on(stream, span, submitted, correlation, origin);
    activity.kind = SIMCUDA_COPY;
    activity.bytes = bytes;
    activity.source_kind = from;
    activity.destination_kind = to;
    activity.copy_kind =
        on_device(from) ? (on_device(to) ? (peers ? 10U : 8U) : 2U) : (on_device(to) ? 1U : 9U);
    state.report(activity);
  });
}

void run_set(Stream& stream, const SetOperation& set, std::uint32_t correlation,
             GraphOrigin origin) {
  if (stream.hung) return;
  Driver& state = driver();
  Device& device = state.device(stream.context->device);
  const std::size_t bytes = set.width * set.element_bytes * set.height;
  const bool wrong = spoiled_by_fault("set", bytes);
  perform(stream, [set, wrong] {
    set_rows(set);
    if (wrong && set.width > 0) flip_bit(set.destination);
  });
  const double seconds =
      (device.profile.copy_latency + static_cast<double>(bytes) / device.profile.l2_far_bandwidth) *
      device.noise.factor();
  device.cost.take_in(reinterpret_cast<const void*>(set.destination), bytes);
  const double submitted = state.host_time;
  const std::uint32_t kind = memory_kind(state.memory.find(set.destination));
  const double gap = gap_before(origin, device.profile);
  reckon_time(stream, [=, &state, &stream, value = set.value] {
    const Span span = schedule_work(stream, seconds, 0, gap);
    if (state.listener.load(std::memory_order_acquire) == nullptr) return;
    simcuda_activity activity = activity_on(stream, span, submitted, correlation, origin);
    activity.kind = SIMCUDA_SET;
    activity.bytes = bytes;
    activity.value = value;
    activity.destination_kind = kind;
    state.report(activity);
  });
}

void run_host_function(Stream& stream, const HostOperation& call) {
  if (stream.hung) return;
  constexpr double host_function_time = 5e-6;
  reckon_time(stream, [&stream] { schedule_work(stream, host_function_time); });
  if (!driver().pending.immediate()) {
    const auto task = std::make_shared<Task>();
    task->host_function = call.function;
    task->host_data = call.data;
    submit(stream, task);
    return;
  }
  end_chain(stream);
  const auto calls = stream.host_calls;
  {
    const std::lock_guard lock(calls->mutex);
    ++calls->enqueued_count;
  }
  HostFunctionThread::instance().enqueue(call.function, call.data, [calls] {
    const std::lock_guard lock(calls->mutex);
    ++calls->finished_count;
    calls->finished.notify_all();
  });
}

void record_event(Stream& stream, Event& event) {
  const DeviceProfile& profile = driver().device(stream.context->device).profile;
  event.recorded = true;
  event.capture = nullptr;
  event.captured.clear();
  event.hung = stream.hung;
  event.task = nullptr;
  event.host_calls = stream.host_calls;
  event.host_calls_before = stream.host_calls->enqueued();
  if (stream.hung) return;
  event.task = submit_marker(stream);
  const bool timed = (event.flags & CU_EVENT_DISABLE_TIMING) == 0;
  const double margin = timed ? profile.event_margin : 0.0;
  const auto stamp = std::make_shared<Stamp>();
  event.stamp = stamp;
  reckon_time(stream, [&stream, stamp, margin] {
    const Span span = schedule_work(stream, 2 * margin);
    // The clock that stamps events ticks every 32 ns.
    constexpr double tick = 32e-9;
    *stamp = {true, std::floor((span.start + margin) / tick) * tick, span.end};
  });
}

void wait_for_event(Stream& stream, const Event& event) {
  if (event.recorded && event.hung) stream.hung = true;
  if (!event.recorded || event.hung) return;
  if (event.task != nullptr && !event.task->done) submit_marker(stream, event.task);
  const auto stamp = event.stamp;
  reckon_time(
      stream, [&stream, stamp] { stream.ready = std::max(stream.ready, stamp->done); }, stamp);
}

void run_operation(Stream& stream, const Operation& operation, std::uint32_t correlation,
                   GraphOrigin origin) {
  struct Runner {
    Stream& stream;
    std::uint32_t correlation;
    GraphOrigin origin;
    void operator()(const EmptyOperation&) const {}
    void operator()(const ChildOperation&) const {}
    void operator()(const OwnedLaunch& owned) const {
      run_launch(stream, owned.launch, correlation, origin);
    }
    void operator()(const CopyOperation& copy) const {
      run_copy(stream, copy, correlation, origin);
    }
    void operator()(const SetOperation& set) const { run_set(stream, set, correlation, origin); }
    void operator()(const HostOperation& call) const { run_host_function(stream, call); }
    void operator()(const EventOperation& event) const {
      if (driver().handles.find<Event>(event.event) == nullptr) return;  // destroyed since
      if (event.wait)
        wait_for_event(stream, *event.event);
      else
        record_event(stream, *event.event);
    }
  };
  std::visit(Runner{stream, correlation, origin}, operation);
}

void enqueue(Stream& stream, const Operation& operation) {
  check_implicit_dependency(stream);
  if (stream.capture != nullptr)
    capture_operation(stream, operation);
  else
    run_operation(stream, operation, driver().next_correlation++);
}

void enqueue_launch(Stream& stream, const Launch& launch, std::uint32_t correlation) {
  check_implicit_dependency(stream);
  if (stream.capture != nullptr)
    capture_operation(stream, OwnedLaunch(launch));
  else
    run_launch(stream, launch, correlation);
}

}  // namespace simcuda
