#pragma once

#include <vector>

#include "core/trials/timer.hpp"
#include "gpu/clock/event_pool.hpp"
#include "gpu/clock/used_stream.hpp"

namespace contextune::gpu {

/// Times entries of a region with CUDA events, on every stream and in every context that an entry
/// used. Seen on an H200: ten kernels of 2.5 us behind a busy stream read 36.1 us with a spread of
/// 0.4 us, an idle stream adds 4 us.
///
/// An entry in several contexts lasts as long as in the one where it lasts longest; a context's
/// time counts from its first touch. Entries that meet a stream capture give no span, and are
/// delivered as such. Threads: serialised by the caller.
class EventSpanTimer final : public SpanTimer {
 public:
  explicit EventSpanTimer(const Driver& driver) : driver_(driver), pool_(driver) {}

  void begin(std::uint64_t tag, StreamHandle stream) noexcept override;
  void touch(StreamHandle stream) noexcept override;
  void end() noexcept override;
  void collect(std::vector<Span>& spans) override;

  /// The program destroys the stream, which touched work waits on: it is recorded now.
  void forget_stream(StreamHandle stream) noexcept;

  /// The context is being destroyed: entries under way are lost.
  void forget_context(CUcontext context) noexcept;

 private:
  /// A stream within an entry.
  struct Stream {
    UsedStream used;
    PooledEvent end;
    bool recorded = false;  ///< `end` stands behind all work that was issued so far
  };
  struct Entry {
    std::uint64_t tag = 0;
    bool valid = true;
    bool after_gap = false;           ///< the entry before gave no span
    std::vector<PooledEvent> starts;  ///< one a context
    std::vector<Stream> streams;
    std::vector<PooledEvent> ends;
  };
  enum class Read { Done, NotYet, Lost };

  void add(StreamHandle stream, bool work_is_issued);
  void record_end(Stream& stream);
  [[nodiscard]] Read read(const Entry& entry, Span& span);
  void recycle(Entry& entry);
  void lose(const Entry& entry) noexcept;

  const Driver& driver_;
  EventPool pool_;
  bool inside_ = false;
  bool gap_ = false;
  Entry entry_;
  std::vector<Entry> pending_;
  std::vector<PooledEvent> last_ends_;  ///< of the last span that was read
  std::vector<std::uint64_t> lost_;     ///< tags of entries that can give no span
};

}  // namespace contextune::gpu
