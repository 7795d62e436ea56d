#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "core/trials/timer.hpp"
#include "gpu/clock/event_pool.hpp"

namespace contextune::gpu {

/// Times launches with a pair of CUDA events each: for programs that use CUPTI themselves, and
/// where there is none. Reads some 5 us more than the kernel takes, unless the stream is busy
/// anyway: 7.4 us for a kernel of 2.5 us on an H200. So it compares configs less sharply than
/// CUPTI. A launch during stream capture is not timed. Threads: as core/timer.hpp says; a context
/// may be forgotten at any time.
class EventTimer final : public LaunchTimer {
 public:
  explicit EventTimer(const Driver& driver) : driver_(driver), pool_(driver) {}

  [[nodiscard]] const char* name() const override { return "events"; }
  [[nodiscard]] bool open(std::string& why) override;
  void close() override { open_.store(false); }
  void launch_begin(std::uint64_t tag, StreamHandle stream) noexcept override;
  void launch_end(std::uint64_t tag, StreamHandle stream) noexcept override;

  /// Does nothing: an event that has completed needs no help.
  void flush(bool wait) override { (void)wait; }
  void collect(std::vector<TimedWork>& work) override;
  [[nodiscard]] std::uint64_t dropped() const override;

  /// The context is being destroyed: what is under way there is lost.
  void forget_context(CUcontext context) noexcept;

 private:
  struct Pair {
    std::uint64_t tag = 0;
    PooledEvent start;
    PooledEvent end;
  };
  /// A context's event whose time on our clock is known; the context's other events are read
  /// against it.
  struct Anchor {
    PooledEvent event;
    double time = 0;
  };
  enum class Read { Done, NotYet, Lost };
  [[nodiscard]] Read read(const Pair& pair, TimedWork& work);
  void finish(const Pair& pair, bool keeps_start);

  const Driver& driver_;
  EventPool pool_;
  std::atomic<bool> open_{false};
  std::mutex reading_;  // of anchors_, and of what was taken from pending_; goes before mutex_
  mutable std::mutex mutex_;
  std::vector<Pair> started_;    // launch_begin was called, launch_end was not
  std::vector<Pair> pending_;    // in order of launch_end
  std::vector<Anchor> anchors_;  // of reading_
  std::uint64_t dropped_ = 0;
};

}  // namespace contextune::gpu
