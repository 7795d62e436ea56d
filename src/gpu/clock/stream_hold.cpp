#include "gpu/clock/stream_hold.hpp"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "host/own_thread.hpp"

namespace contextune::gpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds thread_stays{1};  // without a hold

// Each takes some 2 us, and the cache hardly notices.
constexpr int num_memsets = 4;
constexpr std::size_t memset_bytes = 65536;

}  // namespace

struct StreamHold::State {
  std::mutex mutex;
  std::condition_variable begun;
  std::uint32_t* reached = nullptr;  ///< pinned: streams that wait for at most this number go on
  std::uint32_t number = 0;          ///< of the last hold
  bool is_held = false;
  bool is_watched = false;  ///< the thread lives
  bool is_idle = false;     ///< it waits for a hold, not for a time limit
  Clock::time_point limit;

  /// Under the mutex.
  void let_go() noexcept {
    is_held = false;
    std::atomic_ref(*reached).store(number, std::memory_order_release);
  }

  void watch() {
    std::unique_lock lock(mutex);
    for (;;) {
      if (is_held) {
        if (Clock::now() >= limit) {
          let_go();
        } else {
          begun.wait_until(lock, limit);
        }
        continue;
      }
      is_idle = true;
      const bool has_begun = begun.wait_for(lock, thread_stays, [this] { return is_held; });
      is_idle = false;
      if (has_begun) continue;
      is_watched = false;
      return;
    }
  }
};

StreamHold::StreamHold(const Driver& driver)
    : driver_(driver), events_(driver), state_(std::make_shared<State>()) {}

// No call of the driver under the mutex: it may wait for what is held, until the thread lets go.
bool StreamHold::begin(double most_seconds) noexcept {
  State& state = *state_;
  for (const PooledEvent& end : ends_) events_.give_back(end);
  ends_.clear();
  is_joined_ = false;
  std::uint32_t* reached = state.reached;  // written by this side alone
  if (reached == nullptr) {
    const RelaxedCapture relaxed(driver_);
    void* memory = nullptr;
    context_ = context_of(driver_, nullptr);
    if (driver_.cuMemHostAlloc(&memory, sizeof(std::uint32_t),
                               CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP) !=
        CUDA_SUCCESS) {
      return false;
    }
    reached = new (memory) std::uint32_t(state.number);
    if (driver_.cuMemAlloc(&filled_, memset_bytes) != CUDA_SUCCESS) filled_ = 0;
  }
  const std::lock_guard lock(state.mutex);
  assert(!state.is_held);
  held_.clear();
  state.reached = reached;
  if (!state.is_watched) {
    try {
      host::start_own_thread("contextune-pace", [shared = state_] { shared->watch(); });
    } catch (const std::exception&) {
      return false;
    }
    state.is_watched = true;
  }
  ++state.number;
  state.is_held = true;
  state.limit = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                   std::chrono::duration<double>(most_seconds));
  if (state.is_idle) state.begun.notify_one();
  return true;
}

StreamHold::Refusal StreamHold::add(StreamHandle handle) noexcept {
  const State& state = *state_;
  const UsedStream used(driver_, handle);
  if (std::ranges::find(held_, used) != held_.end()) return Refusal::None;
  const CUstream stream = used.get();
  if (!events_.may_record(stream)) return Refusal::Capture;
  // Beyond its limit there is nothing to wait for.
  if (state.reached == nullptr || driver_.cuStreamWaitValue32 == nullptr ||
      driver_.cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(state.reached),
                                  state.number, CU_STREAM_WAIT_VALUE_GEQ) != CUDA_SUCCESS) {
    return Refusal::Driver;
  }
  try {
    held_.push_back(used);
  } catch (const std::exception&) {  // no memory: the memsets would come once more
    return Refusal::Driver;
  }
  // Another device may not reach that memory.
  const bool may_fill = filled_ != 0 && context_of(driver_, stream) == context_;
  for (int i = 0; i < num_memsets && may_fill; ++i)
    (void)driver_.cuMemsetD8Async(filled_, 0, memset_bytes, stream);
  if (is_joined_) follow(used);
  return Refusal::None;
}

void StreamHold::join() noexcept {
  for (const UsedStream& stream : held_) note_end(stream);
  if (ends_.size() > 1)
    for (const UsedStream& stream : held_) follow(stream);
  is_joined_ = true;  // streams to come follow as well
}

void StreamHold::note_end(const UsedStream& stream) noexcept {
  if (!stream.is_reached()) return;
  const CurrentContext current(driver_, stream.context);
  const PooledEvent end = events_.record(stream.get());
  if (!end) return;
  try {
    ends_.push_back(end);
  } catch (const std::exception&) {  // no memory
    events_.give_back(end);
  }
}

void StreamHold::follow(const UsedStream& stream) noexcept {
  if (ends_.empty() || !stream.is_reached()) return;
  const CurrentContext current(driver_, stream.context);
  if (!events_.may_record(stream.get())) return;
  for (const PooledEvent& end : ends_) (void)driver_.cuStreamWaitEvent(stream.get(), end.event, 0);
}

bool StreamHold::release() noexcept {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (!state.is_held) return false;
  state.let_go();
  return true;
}

void StreamHold::forget_stream(StreamHandle handle) noexcept {
  const auto is_it = [&](const UsedStream& stream) { return stream.handle == handle; };
  const auto found = std::ranges::find_if(held_, is_it);
  if (found == held_.end()) return;
  if (!is_joined_) note_end(*found);
  std::erase_if(held_, is_it);
}

void StreamHold::forget_context(CUcontext context) noexcept {
  std::erase_if(ends_, [&](const PooledEvent& end) { return end.context == context; });
  events_.forget_context(context);
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  if (state.reached == nullptr || context != context_) return;
  if (state.is_held) state.let_go();
  state.reached = nullptr;  // the context frees both
  filled_ = 0;
}

}  // namespace contextune::gpu
