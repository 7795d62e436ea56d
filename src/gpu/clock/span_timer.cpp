#include "gpu/clock/span_timer.hpp"

#include <algorithm>
#include <limits>

namespace contextune::gpu {
namespace {

// An entry whose end never comes (a stream that waits for the host) must not pile up entries.
constexpr std::size_t max_pending = 1024;

}  // namespace

void EventSpanTimer::begin(std::uint64_t tag, StreamHandle stream) noexcept {
  try {
    if (inside_) recycle(entry_);
    inside_ = true;
    entry_ = Entry{};
    entry_.tag = tag;
    add(stream, false);
  } catch (...) {  // no memory: no span
    entry_.valid = false;
  }
}

void EventSpanTimer::touch(StreamHandle stream) noexcept {
  if (!inside_) return;
  try {
    add(stream, true);
  } catch (...) {
    entry_.valid = false;
  }
}

void EventSpanTimer::add(StreamHandle handle, bool work_is_issued) {
  const UsedStream used(driver_, handle);
  auto stream = std::ranges::find(entry_.streams, used, &Stream::used);
  if (stream == entry_.streams.end()) {
    const CUcontext context =
        used.context != nullptr ? used.context : context_of(driver_, used.get());
    const bool known = std::ranges::any_of(
        entry_.starts, [&](const PooledEvent& start) { return start.context == context; });
    if (!known) {
      const PooledEvent start = pool_.record(used.get());
      if (!start) {
        entry_.valid = false;
        return;
      }
      entry_.starts.push_back(start);
    }
    stream = entry_.streams.insert(entry_.streams.end(), Stream{used, {}, false});
  }
  stream->recorded = false;
  // end() may be called on another thread, from which this stream cannot be reached.
  if (work_is_issued && used.is_per_thread()) record_end(*stream);
}

void EventSpanTimer::record_end(Stream& stream) {
  if (stream.recorded) return;
  const CurrentContext current(driver_, stream.used.context);
  if (stream.end) {
    stream.recorded = pool_.record_again(stream.end, stream.used.get());
  } else {
    stream.end = pool_.record(stream.used.get());
    stream.recorded = static_cast<bool>(stream.end);
  }
  if (!stream.recorded) entry_.valid = false;
}

void EventSpanTimer::end() noexcept {
  if (!inside_) return;
  inside_ = false;
  try {
    for (Stream& stream : entry_.streams) {
      if (stream.used.is_reached()) {
        record_end(stream);
      } else if (!stream.recorded) {
        entry_.valid = false;
      }
    }
    if (!entry_.valid || pending_.size() == max_pending) {
      lose(entry_);
      recycle(entry_);
      gap_ = true;
      return;
    }
    entry_.after_gap = gap_;
    gap_ = false;
    for (const Stream& stream : entry_.streams) entry_.ends.push_back(stream.end);
    entry_.streams.clear();
    pending_.push_back(std::move(entry_));
    entry_ = Entry{};
  } catch (...) {  // no memory: no span
    gap_ = true;
  }
}

void EventSpanTimer::lose(const Entry& entry) noexcept {
  try {
    lost_.push_back(entry.tag);
  } catch (...) {  // no memory: it is found missing later
  }
}

EventSpanTimer::Read EventSpanTimer::read(const Entry& entry, Span& span) {
  for (const PooledEvent& end : entry.ends) {
    const CUresult done = driver_.cuEventQuery(end.event);
    if (done == CUDA_ERROR_NOT_READY) return Read::NotYet;
    if (done != CUDA_SUCCESS) return Read::Lost;
  }
  // The longest time from any of `froms` to any of the entry's ends of the same context.
  const auto longest = [&](const std::vector<PooledEvent>& froms, bool nearest, double& seconds) {
    bool found = false;
    for (const PooledEvent& end : entry.ends) {
      double value = 0;
      bool has = false;
      for (const PooledEvent& from : froms) {
        float milliseconds = 0;
        if (from.context != end.context) continue;
        if (driver_.cuEventElapsedTime(&milliseconds, from.event, end.event) != CUDA_SUCCESS) {
          return false;
        }
        const double distance = static_cast<double>(milliseconds) * 1e-3;
        // Among several ends before this one, the last counts: the nearest.
        value = !has ? distance : nearest ? std::min(value, distance) : std::max(value, distance);
        has = true;
      }
      if (!has) continue;
      seconds = found ? std::max(seconds, value) : value;
      found = true;
    }
    return found;
  };
  span.tag = entry.tag;
  if (!longest(entry.starts, false, span.seconds)) return Read::Lost;
  if (entry.after_gap || !longest(last_ends_, true, span.since_last)) span.since_last = 0;
  return Read::Done;
}

void EventSpanTimer::recycle(Entry& entry) {
  for (const PooledEvent& event : entry.starts) pool_.give_back(event);
  for (const PooledEvent& event : entry.ends) pool_.give_back(event);
  for (const Stream& stream : entry.streams) pool_.give_back(stream.end);
  entry = Entry{};
}

void EventSpanTimer::collect(std::vector<Span>& spans) {
  constexpr double no_span = std::numeric_limits<double>::quiet_NaN();
  const RelaxedCapture relaxed(driver_);
  std::size_t done = 0;
  for (; done < pending_.size(); ++done) {
    Entry& entry = pending_[done];
    Span span;
    const Read result = read(entry, span);
    if (result == Read::NotYet) break;
    if (result == Read::Done) {
      spans.push_back(span);
      for (const PooledEvent& event : last_ends_) pool_.give_back(event);
      last_ends_ = std::move(entry.ends);
      entry.ends.clear();
    }
    if (result == Read::Lost) lose(entry);
    if (result == Read::Lost && done + 1 < pending_.size()) pending_[done + 1].after_gap = true;
    if (result == Read::Lost && done + 1 == pending_.size()) gap_ = true;
    recycle(entry);
  }
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(done));
  for (const std::uint64_t tag : lost_) spans.push_back({tag, no_span, 0});
  lost_.clear();
}

void EventSpanTimer::forget_stream(StreamHandle handle) noexcept {
  if (!inside_) return;
  for (Stream& stream : entry_.streams) {
    if (stream.used.handle == handle) record_end(stream);
  }
  // Another stream may get the same handle: what was recorded stays, under no name.
  for (Stream& stream : entry_.streams) {
    if (stream.used.handle != handle) continue;
    try {
      entry_.ends.push_back(stream.end);
    } catch (...) {
      entry_.valid = false;
    }
  }
  std::erase_if(entry_.streams, [&](const Stream& stream) { return stream.used.handle == handle; });
}

void EventSpanTimer::forget_context(CUcontext context) noexcept {
  const auto theirs = [&](const PooledEvent& event) { return event.context == context; };
  const auto uses = [&](const Entry& entry) {
    return std::ranges::any_of(entry.starts, theirs) || std::ranges::any_of(entry.ends, theirs);
  };
  if (inside_ && uses(entry_)) {
    entry_ = Entry{};
    inside_ = false;
  }
  std::erase_if(pending_, uses);
  std::erase_if(last_ends_, theirs);
  pool_.forget_context(context);
}

}  // namespace contextune::gpu
