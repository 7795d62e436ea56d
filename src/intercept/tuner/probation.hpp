#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "core/search/region_tuning.hpp"
#include "intercept/measuring/entry_probe.hpp"
#include "intercept/measuring/trials_in_flight.hpp"
#include "intercept/site/process_store.hpp"
#include "intercept/tuner/prospects.hpp"
#include "intercept/tuner/search_results.hpp"

namespace contextune::intercept {

/// The configs that one search runs and that this process is not known to survive. They are trials,
/// and winners that an earlier run or another rank has found, which run at once. Each is in flight,
/// for the journal, until the GPU has ended an entry with it: it may be the last thing that this
/// process does. Not thread-safe, but has_winners(): a part of one search, which serialises calls.
class Probation {
 public:
  using Trials = PassRecord::Trials;

  Probation(const SearchResults& results, ProcessStore& store)
      : store_(store),
        in_flight_(store.journal(), [&results](SiteIndex site, std::uint32_t config) {
          return results.journalled(site, config);
        }) {}

  /// From now on every site runs its default.
  void stop() noexcept { stopped_ = true; }

  [[nodiscard]] Prospects& prospects() noexcept { return prospects_; }
  [[nodiscard]] const Prospects& prospects() const noexcept { return prospects_; }
  /// How winners in use are found to be survived.
  [[nodiscard]] EntryProbe& probe() noexcept { return probe_; }

  // Winners in use.
  /// Whether there are some. Any thread.
  [[nodiscard]] bool has_winners() const noexcept {
    return has_winners_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] const Trials& winners() const noexcept { return winners_; }
  /// The site was added with one.
  void note_winner(SiteIndex site);
  /// Sites run other configs than before, or some were survived.
  /// @return whether other winners are in flight, so that note() is due
  [[nodiscard]] bool note_winners();

  // Trials.
  /// A run between entries begins, which only looks at what configs compute, or has ended.
  void screen(const Trials& trials) { screened_ = trials; }
  [[nodiscard]] const Trials& screened() const noexcept { return screened_; }
  /// The GPU has not got through with what is in flight, and perhaps never will.
  void get_stuck() { stuck_ = in_flight_.all(); }
  [[nodiscard]] const TrialsInFlight& in_flight() const noexcept { return in_flight_; }
  /// Has the journal told that it hangs; what later runs make of it, a sentence.
  [[nodiscard]] std::string hung() { return store_.journal().hung(); }
  /// Has the journal told what is in flight.
  /// @param tried in the passes whose results have not come
  void note(const Trials& tried);

  // Since when.
  void entry_begins(double now);
  /// Its hanging was said.
  void forget_since() noexcept { since_ = 0; }
  [[nodiscard]] bool is_any_since() const noexcept { return since_ != 0; }
  /// In how many seconds it has been in flight for longer than `timeout` and twice what an entry
  /// takes with nothing new in flight. Absent: nothing is, or its hanging was said.
  [[nodiscard]] std::optional<double> overdue_in(double timeout, double now) const;

 private:
  [[nodiscard]] bool is_winner_in_use(SiteIndex site) const;

  ProcessStore& store_;
  TrialsInFlight in_flight_;
  Prospects prospects_;
  Trials winners_;
  Trials screened_;
  Trials stuck_;
  bool stopped_ = false;
  std::atomic<bool> has_winners_{false};
  double since_ = 0;         ///< when what is in flight began; 0: nothing is, or hangs and was said
  double begun_ = 0;         ///< the entry before this one
  double quiet_period_ = 0;  ///< from one entry with nothing in flight to the next
  EntryProbe probe_{winners_};
};

}  // namespace contextune::intercept
