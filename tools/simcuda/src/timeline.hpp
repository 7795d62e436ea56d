#pragma once

#include "contexts.hpp"

namespace simcuda {

/// When a piece of work runs, in virtual seconds.
struct Span {
  double start = 0;
  double end = 0;
};

/// Puts work of a length at the end of a stream: after what is there, after the legacy stream where
/// the two wait for each other, and, for kernels, when the device has room beside the kernels of
/// other streams. A stream with too many operations in flight holds the host up.
/// @param gap between it and what is before it in the stream
Span schedule_work(Stream& stream, double seconds, double utilisation, double gap);
/// The same with the gap of a stream.
Span schedule_work(Stream& stream, double seconds, double utilisation = 0);
/// Moves the end of what schedule_work was called for last.
void prolong_work(Stream& stream, double end);

/// Moves the host's clock to the end of a stream's work. Blocks for ever when that never ends.
void wait_for_stream(Stream& stream, DriverLock& lock);
/// The same for all streams of a context.
void wait_for_context(Context& context, DriverLock& lock);
/// True when all work before `done` is over by the host's clock; a program that only polls sees the
/// clock move on with each question.
[[nodiscard]] bool has_passed(double done);
/// Never returns: work in front of the caller hangs. Releases the lock.
[[noreturn]] void hang(DriverLock& lock);

}  // namespace simcuda
