#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace contextune {

/// A CUstream, opaque here. Never null: callers name the legacy or the per-thread default stream.
using StreamHandle = void*;

/// A piece of GPU work that was measured. Times are seconds on one clock of the timer's own.
struct TimedWork {
  std::uint64_t tag = 0;  ///< as given to launch_begin
  double start = 0;
  double end = 0;
  bool kernel = true;       ///< false: a copy or a memset
  std::uint64_t shape = 0;  ///< of a kernel that a graph launched (gpu::kernel_shape); else 0
};

/// Measures single launches: CUPTI activity records, or one pair of CUDA events a launch. A port.
/// Threads: launch_begin and launch_end from any thread, in pairs on one thread; the rest is
/// serialised by the caller. Nothing here waits for the GPU but `flush(true)`.
class LaunchTimer {
 public:
  virtual ~LaunchTimer() = default;

  /// "cupti" or "events"; goes into every trial's log line.
  [[nodiscard]] virtual const char* name() const = 0;

  /// Whether the kernels of one graph launch are measured each by itself, and carry their shape;
  /// otherwise a graph launch is one piece of work.
  [[nodiscard]] virtual bool tells_graph_kernels_apart() const { return false; }

  /// Starts measuring (CUPTI: about 15 ms the first time). False: it cannot, and `why` says so in
  /// a sentence.
  [[nodiscard]] virtual bool open(std::string& why) = 0;

  /// Stops measuring; what was still under way is delivered by a later collect or lost.
  virtual void close() = 0;

  virtual void launch_begin(std::uint64_t tag, StreamHandle stream) noexcept = 0;
  virtual void launch_end(std::uint64_t tag, StreamHandle stream) noexcept = 0;

  /// Brings finished records nearer. With `wait`, the GPU's work so far is known to be complete
  /// (the caller synchronised) and all of its records are there afterwards.
  virtual void flush(bool wait) = 0;

  /// Appends everything that has arrived since the last call.
  virtual void collect(std::vector<TimedWork>& work) = 0;

  /// Records known to be lost (full buffers); the passes they belong to are not to be believed.
  [[nodiscard]] virtual std::uint64_t dropped() const = 0;
};

/// Measures whole entries of a region with CUDA events: one before its first work and one after its
/// last on every stream that it used. Used while CUPTI is closed, so that nothing slows the
/// launches. Serialised by the caller; never waits for the GPU.
class SpanTimer {
 public:
  struct Span {
    std::uint64_t tag = 0;
    double seconds = 0;     ///< last end minus first start; NaN: the entry gave no span
    double since_last = 0;  ///< this end minus the end of the span before; 0 for the first
  };
  virtual ~SpanTimer() = default;

  /// The first work of the entry is about to go to `stream`.
  virtual void begin(std::uint64_t tag, StreamHandle stream) noexcept = 0;
  /// Work went to `stream` within the entry.
  virtual void touch(StreamHandle stream) noexcept = 0;
  /// All of the entry's work was issued.
  virtual void end() noexcept = 0;
  /// Appends every span whose events have completed; asks, never waits.
  virtual void collect(std::vector<Span>& spans) = 0;
};

/// The state of the GPU's clock while samples were taken.
struct ClockReading {
  double sm_hz = 0;        ///< 0: not known
  bool throttled = false;  ///< by power, heat or an outside limit, not by idling
};

/// Reads the SM clock aside from the program, at most once a millisecond. A port; any thread.
class ClockMonitor {
 public:
  virtual ~ClockMonitor() = default;
  /// Begins and ends watching; while it does not watch it costs nothing.
  virtual void watch(bool on) = 0;
  /// The worst of the readings since the last call: lowest clock, any throttling.
  [[nodiscard]] virtual ClockReading read() = 0;
};

}  // namespace contextune
