#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/trials/timer.hpp"
#include "gpu/clock/event_pool.hpp"
#include "gpu/clock/used_stream.hpp"
#include "gpu/driver/driver.hpp"

namespace contextune::gpu {

/// Has the GPU wait with what is submitted to some streams until all of it is there. It then does
/// it at its own pace, however slowly the host submits. A stream waits for a number in pinned host
/// memory (`cuStreamWaitValue32`), and each hold has a number of its own. A few small memsets come
/// first, as a GPU that was idle begins its first kernel some microseconds late, and not always the
/// same.
///
/// A hold ends by itself at its time limit, so that a program goes on which waits for that work. A
/// thread of ours sees to it, which ends when nothing was held for a second. Threads: calls are
/// serialised by the caller.
class StreamHold {
 public:
  explicit StreamHold(const Driver& driver);
  ~StreamHold() { (void)release(); }
  StreamHold(const StreamHold&) = delete;
  StreamHold& operator=(const StreamHold&) = delete;

  /// A hold begins, of no stream yet. False: there is no memory or no thread for it.
  [[nodiscard]] bool begin(double most_seconds) noexcept;
  /// Why nothing waits that is submitted to a stream.
  enum class Refusal {
    None,
    Capture,  ///< it would ruin one that is under way
    Driver
  };
  /// What is submitted to the stream from now on waits; once for each stream of a hold.
  [[nodiscard]] Refusal add(StreamHandle stream) noexcept;
  /// What is submitted from now on, to whichever stream of the hold, comes behind all that was
  /// submitted before. Streams of other threads keep only their own order.
  void join() noexcept;
  /// It ends, if there is one. False: its time limit was over before.
  bool release() noexcept;

  /// The stream is destroyed, and another one may get its handle.
  void forget_stream(StreamHandle stream) noexcept;
  /// The context is destroyed, with the memory that it may have given.
  void forget_context(CUcontext context) noexcept;

 private:
  /// Shared with the thread, which may outlive this.
  struct State;

  /// What was submitted to the stream so far has an end that others can wait for.
  void note_end(const UsedStream& stream) noexcept;
  /// The stream waits for all such ends.
  void follow(const UsedStream& stream) noexcept;

  const Driver& driver_;
  EventPool events_;
  CUcontext context_ = nullptr;    ///< that gave the memory
  CUdeviceptr filled_ = 0;         ///< by the memsets; 0: there is no memory for them
  std::vector<UsedStream> held_;   ///< that wait
  std::vector<PooledEvent> ends_;  ///< of what was submitted before join()
  bool is_joined_ = false;
  const std::shared_ptr<State> state_;
};

}  // namespace contextune::gpu
