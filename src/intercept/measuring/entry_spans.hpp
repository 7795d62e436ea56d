#pragma once

#include <cuda.h>

#include <memory>
#include <span>
#include <vector>

#include "core/trials/timer.hpp"
#include "intercept/measuring/entry_hold.hpp"
#include "intercept/measuring/pass_record.hpp"

namespace contextune::intercept {

class Measurement;

/// Times entries as a whole, from the first start to the last end of their work, by one event pair
/// each. Not thread-safe: its search serialises calls.
class EntrySpans {
 public:
  explicit EntrySpans(const Measurement& measurement);

  /// The entry that begins is timed.
  void want(const Measurement& measurement);
  void begin_entry() noexcept;
  /// Work of the entry goes to the stream: once before, and once after it is `issued`. Opens the
  /// entry's span with the first. True: the same stream has no effect in this entry any more.
  bool touch(PassRecord& entry, StreamHandle stream, bool issued) noexcept;
  void end_entry(const PassRecord& entry) noexcept;
  /// It ends, and gives no time.
  void drop_entry() noexcept { hold_.drop_entry(); }
  [[nodiscard]] EntryHold& hold() noexcept { return hold_; }
  /// Those whose work has ended; valid until the next call.
  [[nodiscard]] std::span<const SpanTimer::Span> collect();

  /// The program destroys what a span may depend on.
  void forget_stream(StreamHandle stream) noexcept;
  void forget_context(CUcontext context) noexcept;

 private:
  std::unique_ptr<SpanTimer> timer_;  ///< null: none was wanted yet
  EntryHold hold_;
  std::vector<StreamHandle> touched_;
  std::vector<SpanTimer::Span> ended_;
};

}  // namespace contextune::intercept
