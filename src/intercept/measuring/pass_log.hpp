#pragma once

#include <cassert>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/trials/timer.hpp"
#include "intercept/measuring/entry_spans.hpp"
#include "intercept/measuring/pass_record.hpp"

namespace contextune::intercept {

class Measurement;

/// Where one search takes its time of the whole region from.
enum class RegionClock {
  Entry,  ///< an entry of a region: first start to last end, or a span of events
  /// The same, where all sites are chosen by the region's time: single launches are not timed, and
  /// CUPTI is not opened for it.
  EntryOnly,
  /// The same, where entries are rows of calls of one tunable: what a call takes is its share of
  /// the entry. So it has the time in which the GPU waits for the host, as in a loop.
  Row,
  Work  ///< a window of one site's launches: the mean of their own times (`process`)
};

/// A pass about which nothing more will come.
struct EndedPass {
  PassId pass{};
  std::optional<PassResult> result;  ///< absent: only its span has ended, which was a probe's
  double seconds = 0;                ///< of that span; NaN: lost
  PassRecord::Trials survived;       ///< configs that the GPU is through with
  /// As PassRecord has it, where `result` has the time of the region.
  std::optional<log::TableRow> row{};
};

/// The passes of one search, until all is known about them: the entry under way, and those whose
/// times are still to come. Not thread-safe: its search serialises calls.
class PassLog {
 public:
  PassLog(Measurement& measurement, std::uint16_t search, RegionClock clock);
  /// Entries are rows of calls of that site.
  void time_rows_of(SiteIndex site) noexcept { row_site_ = site; }

  /// An entry begins that is watched.
  PassRecord& open(PassId pass, Measure measure, std::span<const std::uint32_t> configs);
  /// The entry under way; null: it is not watched, or there is none.
  [[nodiscard]] PassRecord* entry() const noexcept { return entry_.get(); }
  /// It ends: all its work was issued. Null: there is none.
  [[nodiscard]] std::unique_ptr<PassRecord> close();
  void drop_entry() noexcept {
    spans_.drop_entry();
    entry_.reset();
  }

  /// The entry under way is timed as a whole.
  void time_entry() { spans_.want(measurement_); }
  [[nodiscard]] EntryHold& hold() noexcept { return spans_.hold(); }
  /// As EntrySpans says, of the entry under way.
  bool touch(StreamHandle stream, bool issued) noexcept {
    assert(entry_ != nullptr);
    return spans_.touch(*entry_, stream, issued);
  }
  void forget_stream(StreamHandle stream) noexcept { spans_.forget_stream(stream); }
  void forget_context(CUcontext context) noexcept { spans_.forget_context(context); }

  /// One more launch of the entry will be timed. Reads what has come before there is no room left.
  void expect_time();

  /// The times of a pass that has ended are awaited.
  /// @return the one that is given up for it, because too many are
  [[nodiscard]] std::optional<PassId> await(PassRecord record);
  void forget_awaited() noexcept { awaited_.clear(); }

  /// Those that have ended since, by the times that have come.
  /// @param everything what has not come yet never will
  [[nodiscard]] std::vector<EndedPass> take(bool everything);
  /// The same of entries that were timed as a whole; nothing is asked of the timer of launches.
  [[nodiscard]] std::vector<EndedPass> take_entries();

  /// All configs that the GPU may not be through with.
  [[nodiscard]] PassRecord::Trials tried() const;

 private:
  void read_times();
  [[nodiscard]] PassRecord* find(std::uint32_t pass) noexcept;
  [[nodiscard]] EndedPass ended(const PassRecord& record, const SpanTimer::Span& span) const;

  Measurement& measurement_;
  const std::uint16_t search_;
  const RegionClock clock_;
  SiteIndex row_site_ = no_site;
  std::unique_ptr<PassRecord> entry_;
  std::deque<PassRecord> awaited_;
  EntrySpans spans_;
  std::size_t unread_launches_ = 0;  ///< of this entry, whose times have not been asked for
  std::uint64_t losses_seen_;
  std::vector<TimedWork> work_;
};

}  // namespace contextune::intercept
