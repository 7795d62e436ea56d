#pragma once

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/search/region_tuning.hpp"
#include "core/search/schedule.hpp"
#include "intercept/measuring/measurement.hpp"
#include "intercept/measuring/pass_log.hpp"
#include "intercept/measuring/search_timers.hpp"
#include "intercept/site/region.hpp"
#include "intercept/site/region_outcome.hpp"
#include "intercept/site/site.hpp"
#include "intercept/tuner/entry_count.hpp"
#include "intercept/tuner/probation.hpp"
#include "intercept/tuner/search_end.hpp"
#include "intercept/tuner/search_ranks.hpp"
#include "intercept/tuner/search_reports.hpp"
#include "intercept/tuner/stored_progress.hpp"

namespace contextune::intercept {

/// The reports that launches of an entry have to make.
enum class Watch : std::uint8_t {
  Nothing,   ///< all is settled: the launch path touches nothing shared
  Count,     ///< which sites were launched
  Activity,  ///< ... and every launch is timed
  Span       ///< ... and the streams that it uses
};

/// How far a search has come.
struct SearchFigures {
  std::uint64_t passes = 0;
  std::uint64_t entries = 0;
  double tuning_seconds = 0;
  Stage stage = Stage::Table;
  std::uint64_t sites = 0;
  std::uint64_t tuned = 0;  ///< sites that run another config than the default

  bool operator==(const SearchFigures&) const = default;
};

class OpenPass;
class Screening;
class SearchSites;
class SearchTrials;

/// A tuning in a running program. It makes passes of entries, counts what was launched in them, and
/// hands the times that come in later to core's RegionTuning. Any thread may call it; the owner
/// sees to it that there is one entry at a time. Lives as long as the process.
class Search {
 public:
  /// Makes what decides, given who is told of it, and whether sites of the region are stored.
  using MakeTuning =
      std::function<std::unique_ptr<RegionTuning>(TuningObserver&, bool store_knows)>;

  /// @param usual the passes of a config, for the log, where a site says nothing else
  Search(std::string region, const MakeTuning& make_tuning, RegionClock clock, Judging judging,
         Measurement& measurement, ProcessStore& store, EventLog& log, const StoredAs& as = {},
         const ScheduleShape& usual = {});
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  /// An entry begins for which there is nothing to do: it is only counted. By whoever has the
  /// entry.
  void skip() noexcept { entries_.skip(); }
  /// An entry begins that is none of its passes, because others have theirs.
  void pass_by(double now);
  /// An entry begins. True: it counts as a pass.
  bool begin(double now);
  /// The same, and what the next pass depends on is waited for: `synchronise` completes all GPU
  /// work, and the other ranks are heard. False of it: the work has not ended in time, so the
  /// search ends.
  /// @param interrupted unless it is empty, whether to go on with something else than waiting for
  ///        the others; pause() says so to them
  bool begin_waiting(const std::function<bool()>& synchronise,
                     const std::function<bool()>& interrupted = {});
  /// An entry is over in which a stored winner failed, or the code of a stored site was read first:
  /// waits until that is written, shortly, which is once for each. The program may end before the
  /// next entry does.
  void await_notes() { storing_.await_notes(); }
  /// The other ranks, in all that the search has to do with them.
  [[nodiscard]] SearchRanks& ranks() noexcept { return ranks_; }
  /// Whether the GPU may be kept from beginning an entry until all its work is there (EntryHold).
  /// @param twice the body of such an entry may run twice
  void may_hold_entries(bool may, bool twice);
  /// Entries are rows of calls of one tunable (RegionClock::Row). Too late once a site is known.
  void time_rows();
  /// The entry ends: all its work was issued. Without a begin it does nothing. Nor does it
  /// where the body is to run again (OpenPass).
  void end(double now);

  /// The entry that ended last ran nothing but winners, and there is nothing more to find out.
  [[nodiscard]] bool has_run_winners() const noexcept { return end_.has_run_winners(); }

  [[nodiscard]] SearchSites sites() noexcept;
  [[nodiscard]] SearchTrials trials() noexcept;
  /// Runs between entries, which only look at what configs compute.
  [[nodiscard]] Screening screening() noexcept;

  /// Ends the search for good: every site runs its default from now on (or what it is pinned to).
  void stop(FallbackReason reason, const std::string& text);

  [[nodiscard]] bool finished() const noexcept { return end_.is_finished(); }
  [[nodiscard]] Watch watch() const noexcept { return watch_.load(std::memory_order_acquire); }
  /// The entry under way.
  [[nodiscard]] OpenPass pass() noexcept;

  [[nodiscard]] SearchFigures figures() const;
  [[nodiscard]] RegionOutcome outcome() const;
  /// Writes the `summary` line, unless nothing has changed since it was last written.
  void write_summary();

 private:
  friend class OpenPass;
  friend class Screening;
  friend class SearchRanks;
  friend class SearchSites;
  friend class SearchTrials;

  void leave(std::string why);
  [[nodiscard]] bool begin_waited(const std::function<bool()>& synchronise,
                                  const std::function<bool()>& interrupted);
  [[nodiscard]] PassPlan plan_entry(double now, bool bounded);
  void settle_all();
  void note_tried();
  void note_survived(const Probation::Trials& trials);
  void note_in_flight();
  /// As StoredProgress says, while there is more to come.
  void keep_so_far(double now, bool at_once);
  /// Work that is waited for has not ended in time, so the search ends.
  void overrun();
  void note_winners();
  void note_unheld();
  [[nodiscard]] bool open_probe(bool is_all);
  void drop_open_entry();
  void report_runs(const PassRecord& record, std::span<const SiteIndex> launched,
                   std::span<const SiteIndex> failed);
  void begin_probe(double now);
  void close_probe(PassId pass, double seconds);
  /// Whether calls of a site are timed from their first start to their last end.
  [[nodiscard]] bool has_spans() const noexcept {
    return std::ranges::any_of(sites_, [](const Site* site) { return site->timed_as_span; });
  }
  [[nodiscard]] bool nothing_to_do() const noexcept { return end_.is_for(sites_.size()); }
  /// False: it is no pass.
  bool skip_entry() noexcept {
    skip();
    return false;
  }
  /// Hands on what has come about passes that have ended; `everything`: no more will.
  void drain(bool everything, double now);
  void hear(std::span<const EndedPass> ended, double now);
  void after_change();
  void summarise();
  /// The same if more happened since than entries: a program may bring something new for ever.
  void summarise_new();
  [[nodiscard]] SearchFigures figures_locked() const;

  const std::string region_;
  EventLog& log_;
  ScheduleShape usual_;
  SearchTimers timers_;
  SearchReports reports_;
  Probation probation_;
  StoredProgress storing_;
  const std::unique_ptr<RegionTuning> tuning_;
  PassLog passes_;
  mutable std::mutex mutex_;
  std::vector<Site*> sites_;
  SearchEnd end_;
  EntryCount entries_;
  std::atomic<Watch> watch_{Watch::Nothing};
  SearchRanks ranks_{*this};
  std::optional<SearchFigures> summarised_;
};

}  // namespace contextune::intercept
