#include "timeline.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "host_calls.hpp"

namespace simcuda {

namespace {

// The earliest time from `start` on at which the kernels of other streams leave `utilisation` free.
double when_there_is_room(const Stream& stream, double start, double seconds, double utilisation) {
  const Context& context = *stream.context;
  if (context.streams.size() < 2) return start;
  constexpr double full = 1.0 + 1e-9;
  for (int round = 0; round < 64; ++round) {
    double used = 0;
    double first_end = std::numeric_limits<double>::infinity();
    for (const Stream* const other : context.streams) {
      if (other == &stream) continue;
      const std::size_t count = std::min(other->recent_count, other->recent.size());
      for (std::size_t i = 0; i < count; ++i) {
        const Stream::Interval& kernel = other->recent[i];
        if (kernel.end <= start || kernel.start >= start + seconds) continue;
        used += kernel.utilisation;
        first_end = std::min(first_end, kernel.end);
      }
    }
    if (used + utilisation <= full || used == 0) return start;
    start = first_end;
  }
  return start;
}

}  // namespace

Span schedule_work(Stream& stream, double seconds, double utilisation) {
  const DeviceProfile& profile = driver().device(stream.context->device).profile;
  return schedule_work(stream, seconds, utilisation, profile.stream_gap);
}

Span schedule_work(Stream& stream, double seconds, double utilisation, double gap) {
  Driver& state = driver();
  Context& context = *stream.context;
  const DeviceProfile& profile = state.device(context.device).profile;
  const std::size_t slot = stream.queued++ % stream.queue.size();
  if (stream.queued > stream.queue.size())
    state.host_time = std::max(state.host_time, stream.queue[slot]);

  double start = std::max(state.host_time + profile.submit_latency, stream.ready + gap);
  if (stream.blocking) {
    if (context.legacy == &stream) {
      for (const Stream* const other : context.streams)
        if (other->blocking) start = std::max(start, other->ready + profile.stream_gap);
    } else if (context.legacy != nullptr) {
      start = std::max(start, context.legacy->ready + profile.stream_gap);
    }
  }
  if (utilisation > 0) start = when_there_is_room(stream, start, seconds, utilisation);
  const Span span{start, start + seconds};
  if (utilisation > 0)
    stream.recent[stream.recent_count++ % stream.recent.size()] = {span.start, span.end,
                                                                   utilisation};
  stream.ready = span.end;
  stream.queue[slot] = span.end;
  return span;
}

void prolong_work(Stream& stream, double end) {
  stream.ready = end;
  stream.queue[(stream.queued - 1) % stream.queue.size()] = end;
  if (stream.recent_count > 0)
    stream.recent[(stream.recent_count - 1) % stream.recent.size()].end = end;
}

void hang(DriverLock& lock) {
  lock.unlock();
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void wait_for_stream(Stream& stream, DriverLock& lock) {
  if (stream.hung) hang(lock);
  const auto calls = stream.host_calls;
  const std::uint64_t enqueued = calls->enqueued();
  const Stream* const waited_for = &stream;
  stream.chain = {};
  driver().pending.finish(std::vector<TaskPtr>(stream.tail), lock);
  // Only now is the end known of what other processes had a part in.
  if (const Stream* const still = driver().handles.find<Stream>(waited_for); still != nullptr)
    driver().host_time = std::max(driver().host_time, still->ready);
  if (calls->idle_since(enqueued)) return;
  lock.unlock();
  calls->wait_for(enqueued);
  lock.lock();
}

void wait_for_context(Context& context, DriverLock& lock) {
  std::vector<std::pair<std::shared_ptr<HostCalls>, std::uint64_t>> calls;
  for (Stream* const stream : context.streams) {
    if (stream->hung) hang(lock);
    const std::uint64_t enqueued = stream->host_calls->enqueued();
    if (!stream->host_calls->idle_since(enqueued)) calls.emplace_back(stream->host_calls, enqueued);
    stream->chain = {};
  }
  driver().pending.finish_all(&context, lock);
  if (driver().handles.find<Context>(&context) != nullptr) {
    double& host_time = driver().host_time;
    host_time = std::max(host_time, context.destroyed_ready);
    for (const Stream* const stream : context.streams)
      host_time = std::max(host_time, stream->ready);
  }
  if (calls.empty()) return;
  lock.unlock();
  for (const auto& [of_stream, enqueued] : calls) of_stream->wait_for(enqueued);
  lock.lock();
}

bool has_passed(double done) {
  Driver& state = driver();
  if (done <= state.host_time) return true;
  // 1 us, 2 us, ... up to 1 ms: whoever sleeps between questions gets there too.
  const unsigned doublings = std::min(state.previous_queries, 10U);
  state.queries = state.previous_queries + 1;
  state.host_time += 1e-6 * static_cast<double>(1U << doublings);
  return false;
}

}  // namespace simcuda
