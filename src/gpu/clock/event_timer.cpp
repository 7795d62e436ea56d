#include "gpu/clock/event_timer.hpp"

#include <algorithm>

namespace contextune::gpu {
namespace {

// cuEventElapsedTime answers in milliseconds as a float: at a quarter of a second its steps are 15
// ns, and they grow with the distance.
constexpr double max_anchor_distance = 0.25;

// Streams finish in any order, but behind this many unfinished launches nothing is worth asking.
constexpr int max_unfinished = 64;

}  // namespace

bool EventTimer::open(std::string&) {
  open_.store(true);
  return true;
}

void EventTimer::launch_begin(std::uint64_t tag, StreamHandle stream) noexcept {
  if (!open_.load(std::memory_order_relaxed)) return;
  Pair pair;
  pair.tag = tag;
  pair.start = pool_.record(static_cast<CUstream>(stream));
  if (!pair.start) return;
  try {
    const std::lock_guard lock(mutex_);
    started_.push_back(pair);
  } catch (...) {  // no memory: this launch is not timed
    pool_.give_back(pair.start);
  }
}

void EventTimer::launch_end(std::uint64_t tag, StreamHandle stream) noexcept {
  Pair pair;
  {
    const std::lock_guard lock(mutex_);
    const auto started =
        std::ranges::find_if(started_, [&](const Pair& one) { return one.tag == tag; });
    if (started == started_.end()) return;
    pair = *started;
    started_.erase(started);
  }
  pair.end = pool_.record(static_cast<CUstream>(stream));
  const bool usable = pair.end && pair.end.context == pair.start.context;
  try {
    const std::lock_guard lock(mutex_);
    if (usable) {
      pending_.push_back(pair);
      return;
    }
    ++dropped_;
  } catch (...) {
  }
  pool_.give_back(pair.start);
  pool_.give_back(pair.end);
}

EventTimer::Read EventTimer::read(const Pair& pair, TimedWork& work) {
  const CUresult done = driver_.cuEventQuery(pair.end.event);
  if (done == CUDA_ERROR_NOT_READY) return Read::NotYet;
  float milliseconds = 0;
  if (done != CUDA_SUCCESS ||
      driver_.cuEventElapsedTime(&milliseconds, pair.start.event, pair.end.event) != CUDA_SUCCESS) {
    return Read::Lost;
  }
  const double duration = static_cast<double>(milliseconds) * 1e-3;

  auto anchor = std::ranges::find_if(
      anchors_, [&](const Anchor& one) { return one.event.context == pair.start.context; });
  double start = 0;
  bool moves = anchor == anchors_.end();
  if (moves) {
    anchor = anchors_.insert(anchors_.end(), Anchor{});
  } else {
    if (driver_.cuEventElapsedTime(&milliseconds, anchor->event.event, pair.start.event) !=
        CUDA_SUCCESS) {
      return Read::Lost;
    }
    start = anchor->time + static_cast<double>(milliseconds) * 1e-3;
    moves = start - anchor->time > max_anchor_distance;
  }
  if (moves) {
    pool_.give_back(anchor->event);
    *anchor = Anchor{pair.start, start};
  }
  work.tag = pair.tag;
  work.start = start;
  work.end = start + duration;
  work.kernel = true;
  return Read::Done;
}

void EventTimer::finish(const Pair& pair, bool keeps_start) {
  pool_.give_back(pair.end);
  if (!keeps_start) pool_.give_back(pair.start);
}

void EventTimer::collect(std::vector<TimedWork>& work) {
  const RelaxedCapture relaxed(driver_);
  const std::lock_guard reading(reading_);
  std::vector<Pair> pending;
  {
    const std::lock_guard lock(mutex_);
    pending.swap(pending_);
  }
  std::vector<Pair> unfinished;
  std::uint64_t lost = 0;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const Pair& pair = pending[i];
    if (unfinished.size() == max_unfinished) {
      unfinished.insert(unfinished.end(), pending.begin() + static_cast<std::ptrdiff_t>(i),
                        pending.end());
      break;
    }
    TimedWork timed;
    switch (read(pair, timed)) {
      case Read::NotYet:
        unfinished.push_back(pair);
        continue;
      case Read::Done:
        work.push_back(timed);
        break;
      case Read::Lost:
        ++lost;
        break;
    }
    const bool is_anchor = std::ranges::any_of(
        anchors_, [&](const Anchor& anchor) { return anchor.event.event == pair.start.event; });
    finish(pair, is_anchor);
  }
  const std::lock_guard lock(mutex_);
  dropped_ += lost;
  pending_.insert(pending_.begin(), unfinished.begin(), unfinished.end());
}

std::uint64_t EventTimer::dropped() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

void EventTimer::forget_context(CUcontext context) noexcept {
  const auto theirs = [&](const Pair& pair) { return pair.start.context == context; };
  const std::lock_guard reading(reading_);
  const std::lock_guard lock(mutex_);
  std::erase_if(started_, theirs);
  const auto first = std::remove_if(pending_.begin(), pending_.end(), theirs);
  dropped_ += static_cast<std::uint64_t>(pending_.end() - first);
  pending_.erase(first, pending_.end());
  std::erase_if(anchors_, [&](const Anchor& anchor) { return anchor.event.context == context; });
  pool_.forget_context(context);
}

}  // namespace contextune::gpu
