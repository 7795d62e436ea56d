#include "operation.hpp"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <thread>

#include "capture.hpp"
#include "host_calls.hpp"
#include "timeline.hpp"

namespace simcuda {

namespace {

// Host functions run on one thread of the driver, in the order in which they were enqueued.
class HostFunctionThread {
 public:
  static HostFunctionThread& instance() {
    static auto* const thread = new HostFunctionThread;
    return *thread;
  }

  void enqueue(const HostOperation& call, std::shared_ptr<HostCalls> calls) {
    {
      const std::lock_guard lock(calls->mutex);
      ++calls->enqueued_count;
    }
    const std::lock_guard lock(mutex_);
    queue_.push_back({call, std::move(calls)});
    if (!started_) {
      started_ = true;
      std::thread([this] { work(); }).detach();
    }
    added_.notify_one();
  }

 private:
  struct Entry {
    HostOperation call;
    std::shared_ptr<HostCalls> calls;
  };

  [[noreturn]] void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      added_.wait(lock, [this] { return !queue_.empty(); });
      const Entry entry = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      entry.call.function(entry.call.data);
      {
        const std::lock_guard finished(entry.calls->mutex);
        ++entry.calls->finished_count;
        entry.calls->finished.notify_all();
      }
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<Entry> queue_;
  bool started_ = false;
};

// CUPTI's numbers of memory kinds.
std::uint32_t memory_kind(const Memory::Block* block) {
  if (block == nullptr) return 1;  // pageable
  if (block->kind == Memory::Kind::device) return 3;
  return block->kind == Memory::Kind::managed ? 5 : 2;  // managed, pinned
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

void copy_rows(const CopyOperation& copy) {
  for (std::size_t z = 0; z < copy.depth; ++z)
    for (std::size_t y = 0; y < copy.height; ++y)
      std::memmove(reinterpret_cast<void*>(copy.destination + z * copy.destination_slice +
                                           y * copy.destination_pitch),
                   reinterpret_cast<const void*>(copy.source + z * copy.source_slice +
                                                 y * copy.source_pitch),
                   copy.width_bytes);
}

}  // namespace

void run_copy(Stream& stream, const CopyOperation& copy, std::uint32_t correlation,
              GraphOrigin origin) {
  if (stream.hung) return;
  Driver& state = driver();
  const std::size_t bytes = copy.width_bytes * copy.height * copy.depth;
  copy_rows(copy);
  Device& device = state.device(stream.context->device);
  const Memory::Block* const to_block = state.memory.find(copy.destination);
  const Memory::Block* const from_block = state.memory.find(copy.source);
  const std::uint32_t from = memory_kind(from_block);
  const std::uint32_t to = memory_kind(to_block);
  const bool peers = on_device(from) && on_device(to) && from_block->device != to_block->device;
  double bandwidth = device.profile.host_copy_bandwidth;
  if (peers)
    bandwidth = device.profile.peer_copy_bandwidth;
  else if (on_device(from) && on_device(to))
    bandwidth = device.profile.dram_bandwidth / 2;
  const double seconds = (device.profile.copy_latency + static_cast<double>(bytes) / bandwidth) *
                         device.noise.factor();
  if (on_device(to))
    state.device(to_block->device)
        .cost.take_in(reinterpret_cast<const void*>(copy.destination), bytes);
  const double submitted = state.host_time;
  const Span span = schedule_work(stream, seconds);
  if (state.listener.load(std::memory_order_acquire) == nullptr) return;
  simcuda_activity activity = activity_on(stream, span, submitted, correlation, origin);
  activity.kind = SIMCUDA_COPY;
  activity.bytes = bytes;
  activity.source_kind = from;
  activity.destination_kind = to;
  activity.copy_kind =
      on_device(from) ? (on_device(to) ? (peers ? 10U : 8U) : 2U) : (on_device(to) ? 1U : 9U);
  state.report(activity);
}

void run_set(Stream& stream, const SetOperation& set, std::uint32_t correlation,
             GraphOrigin origin) {
  if (stream.hung) return;
  Driver& state = driver();
  Device& device = state.device(stream.context->device);
  for (std::size_t y = 0; y < set.height; ++y) {
    auto* const row = reinterpret_cast<unsigned char*>(set.destination + y * set.pitch);
    if (set.element_bytes == 1) {
      std::memset(row, static_cast<int>(set.value & 0xFFU), set.width);
      continue;
    }
    for (std::size_t x = 0; x < set.width; ++x)
      std::memcpy(row + x * set.element_bytes, &set.value, set.element_bytes);
  }
  const std::size_t bytes = set.width * set.element_bytes * set.height;
  const double seconds =
      (device.profile.copy_latency + static_cast<double>(bytes) / device.profile.l2_far_bandwidth) *
      device.noise.factor();
  device.cost.take_in(reinterpret_cast<const void*>(set.destination), bytes);
  const double submitted = state.host_time;
  const Span span = schedule_work(stream, seconds);
  if (state.listener.load(std::memory_order_acquire) == nullptr) return;
  simcuda_activity activity = activity_on(stream, span, submitted, correlation, origin);
  activity.kind = SIMCUDA_SET;
  activity.bytes = bytes;
  activity.value = set.value;
  activity.destination_kind = memory_kind(state.memory.find(set.destination));
  state.report(activity);
}

void run_host_function(Stream& stream, const HostOperation& call) {
  if (stream.hung) return;
  constexpr double host_function_time = 5e-6;
  schedule_work(stream, host_function_time);
  HostFunctionThread::instance().enqueue(call, stream.host_calls);
}

void record_event(Stream& stream, Event& event) {
  const DeviceProfile& profile = driver().device(stream.context->device).profile;
  event.recorded = true;
  event.capture = nullptr;
  event.captured.clear();
  event.hung = stream.hung;
  event.host_calls = stream.host_calls;
  event.host_calls_before = stream.host_calls->enqueued();
  if (stream.hung) return;
  const bool timed = (event.flags & CU_EVENT_DISABLE_TIMING) == 0;
  const double margin = timed ? profile.event_margin : 0.0;
  const Span span = schedule_work(stream, 2 * margin);
  // The clock that stamps events ticks every 32 ns.
  constexpr double tick = 32e-9;
  event.timestamp = std::floor((span.start + margin) / tick) * tick;
  event.done = span.end;
}

void wait_for_event(Stream& stream, const Event& event) {
  if (event.recorded && event.hung) stream.hung = true;
  if (!event.recorded) return;
  stream.ready = std::max(stream.ready, event.done);
}

void run_operation(Stream& stream, const Operation& operation, std::uint32_t correlation,
                   GraphOrigin origin) {
  struct Runner {
    Stream& stream;
    std::uint32_t correlation;
    GraphOrigin origin;
    void operator()(const EmptyOperation&) const {}
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
