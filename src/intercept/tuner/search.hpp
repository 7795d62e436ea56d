#pragma once

#include <cuda.h>

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
#include "intercept/site/region.hpp"
#include "intercept/site/site.hpp"
#include "intercept/tuner/measurement.hpp"
#include "intercept/tuner/missing_agreement.hpp"
#include "intercept/tuner/pass_log.hpp"
#include "intercept/tuner/probation.hpp"
#include "intercept/tuner/search_ranks.hpp"
#include "intercept/tuner/search_results.hpp"
#include "intercept/tuner/trial_times.hpp"
#include "log/tuning_log.hpp"

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

  Search(std::string region, const MakeTuning& make_tuning, RegionClock clock, Judging judging,
         Measurement& measurement, ProcessStore& store, EventLog& log, const StoredAs& as = {});
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  /// Before the first entry: all its sites are chosen by the region's time, so single launches are
  /// not timed, and CUPTI is not opened for it.
  void time_region_only() noexcept { only_region_time_ = true; }

  /// An entry begins for which there is nothing to do: it is only counted. By whoever has the
  /// entry.
  void skip() noexcept {
    skipped_.store(skipped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// An entry begins that is none of its passes, because others have theirs.
  void pass_by(double now);
  /// An entry begins. True: it counts as a pass.
  bool begin(double now);
  /// The next entry only shows which sites there are: the store is thought to know them.
  [[nodiscard]] bool looks_first() const noexcept;
  /// That entry is over, and may have been the program's only one: what it has shown that the store
  /// does not know is noted there. Waits until it is written, shortly, which is once a store.
  void note_unfinished();
  /// An entry is over in which a stored winner failed, or the code of a stored site was read first:
  /// waits until that is written, shortly, which is once for each. The program may end before the
  /// next entry does.
  void await_notes();
  /// The same, and what the next pass depends on is waited for: `synchronise` completes all GPU
  /// work, and the other ranks are heard. False of it: the work has not ended in time, so the
  /// search ends.
  /// @param interrupted unless it is empty, whether to go on with something else than waiting for
  ///        the others; pause() says so to them
  bool begin_waiting(const std::function<bool()>& synchronise,
                     const std::function<bool()>& interrupted = {});
  /// The other ranks, in all that the search has to do with them.
  [[nodiscard]] SearchRanks& ranks() noexcept { return ranks_; }
  /// No ranks have agreed, for that reason, a sentence.
  void say_untuned(FallbackReason reason, const std::string& text);
  /// As Region says.
  [[nodiscard]] std::string why_untuned() const;
  /// The entry ends: all its work was issued. Without a begin it does nothing.
  void end(double now);

  /// Something came that ranks may have to agree on after they had winners.
  void reopen() {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    sites_when_finished_ = 0;
    finished_.store(false, std::memory_order_release);
  }

  /// The entry that ended last ran nothing but winners, and there is nothing more to find out.
  [[nodiscard]] bool has_run_winners() const noexcept {
    return has_run_winners_.load(std::memory_order_relaxed);
  }

  [[nodiscard]] SearchSites sites() noexcept;
  [[nodiscard]] SearchTrials trials() noexcept;
  /// Runs between entries, which only look at what configs compute.
  [[nodiscard]] Screening screening() noexcept;

  /// Ends the search for good: every site runs its default from now on (or what it is pinned to).
  void stop(FallbackReason reason, const std::string& text);

  [[nodiscard]] bool finished() const noexcept { return finished_.load(std::memory_order_acquire); }
  /// The same, whatever sites have come that are not looked at yet.
  [[nodiscard]] bool is_tuned() const {
    const std::lock_guard lock(mutex_);
    return !stopped_ && !sites_.empty() && tuning_->finished();
  }
  /// Whether one of the site's own is known, now or of an earlier run.
  [[nodiscard]] bool has_winner(const Site& site) const {
    const std::lock_guard lock(mutex_);
    return results_.has_winner(site.index);
  }
  [[nodiscard]] Watch watch() const noexcept { return watch_.load(std::memory_order_acquire); }
  /// The entry under way.
  [[nodiscard]] OpenPass pass() noexcept;

  /// The program destroys a stream or a context that a span may depend on.
  void forget_stream(StreamHandle stream) noexcept;
  void forget_context(CUcontext context) noexcept;

  [[nodiscard]] SearchFigures figures() const;
  /// Writes the `summary` line, unless nothing has changed since it was last written.
  void write_summary();
  [[nodiscard]] const std::string& region() const noexcept { return region_; }

 private:
  friend class OpenPass;
  friend class Screening;
  friend class SearchRanks;
  friend class SearchSites;
  friend class SearchTrials;

  /// For what was found out to be safely written while the program runs on: a few milliseconds, but
  /// for a disk that is busy.
  static constexpr double most_noting_seconds = 0.1;

  void leave(std::string why);
  void note_failed(const Site& site, std::uint32_t config, TrialStatus why);
  [[nodiscard]] bool begin_waited(const std::function<bool()>& synchronise,
                                  const std::function<bool()>& interrupted);
  /// Names the entry that is about to begin.
  [[nodiscard]] PassId next_pass() noexcept {
    return PassId{pass_.fetch_add(1, std::memory_order_relaxed) + 1};
  }
  [[nodiscard]] PassPlan plan_entry(double now, bool bounded);
  /// Where configs differ in how many launches they make, each of which CUPTI makes dearer for as
  /// long as it is there.
  void compare_without_cupti();
  void settle_all();
  void note_tried();
  void note_survived(const Probation::Trials& trials);
  void note_in_flight();
  /// Has what was measured so far stored, from time to time or at once.
  void keep_so_far(double now, bool at_once);
  /// Work that is waited for has not ended in time, so the search ends.
  void overrun();
  void note_winners();
  [[nodiscard]] bool open_probe(bool is_all);
  void drop_open_entry();
  void report_runs(const PassRecord& record, std::span<const SiteIndex> launched,
                   std::span<const SiteIndex> failed);
  void begin_probe(double now);
  void close_probe(PassId pass, double seconds);
  [[nodiscard]] bool nothing_to_do() const {
    return stopped_ ||
           (finished_.load(std::memory_order_relaxed) && sites_.size() == sites_when_finished_);
  }
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
  const RegionClock clock_;
  bool only_region_time_ = false;
  Measurement& measurement_;
  EventLog& log_;
  std::uint16_t id_;
  mutable std::mutex mutex_;
  log::TuningLog observer_;
  ProcessStore& store_;
  SearchResults results_;
  Probation probation_;
  MissingAgreement no_agreement_;
  TrialTimes times_;
  const std::unique_ptr<RegionTuning> tuning_;
  std::vector<Site*> sites_;
  Stage kept_stage_ = Stage::Table;  ///< of the pass before
  double keep_next_ = 0;  ///< when what was measured is stored next; 0: nothing was begun
  std::atomic<bool> finished_{false};
  std::atomic<Watch> watch_{Watch::Nothing};
  std::atomic<std::uint64_t> pass_{0};  ///< of the entry under way, or of the last one
  bool stopped_ = false;
  bool saving_ = false;             ///< winners are being written
  std::atomic<bool> notes_{false};  ///< of what was found out are being written
  std::atomic<bool> was_entered_{false};
  std::atomic<bool> has_run_winners_{false};
  bool agreed_ = false;  ///< the entry under way: all ranks make it
  SearchRanks ranks_{*this};
  PassLog passes_;
  int release_tries_ = 0;  ///< of CUPTI, since it was last wanted
  std::optional<SearchFigures> summarised_;
  std::atomic<std::uint64_t> skipped_{0};  ///< entries of which the tuning was not told yet
  std::size_t sites_when_finished_ = 0;
  bool ever_finished_ = false;
  int idle_entries_ = 0;  ///< with nothing to do, while sites may still come
};

}  // namespace contextune::intercept
