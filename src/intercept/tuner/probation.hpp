#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/search/region_tuning.hpp"
#include "core/search/stored_winner.hpp"
#include "intercept/site/process_store.hpp"
#include "intercept/site/site.hpp"
#include "intercept/tuner/search_results.hpp"

namespace contextune::intercept {

/// The configs that one search runs and that this process is not known to survive. They are trials,
/// and winners that an earlier run or another rank has found, which run at once. Each is in flight,
/// for the journal, until the GPU has ended an entry with it: it may be the last thing that this
/// process does. Not thread-safe, but has_winners(): a part of one search, which serialises calls.
class Probation {
 public:
  using Trials = SearchResults::Trials;

  Probation(SearchResults& results, ProcessStore& store) : results_(results), store_(store) {}

  /// Adds the site, which gets the next number. It lives as long as the process.
  void add_site(const Site& site, std::size_t num_configs, std::optional<StoredWinner> stored,
                Suspicions suspicions);
  [[nodiscard]] std::size_t num_sites() const noexcept { return prospects_.size(); }
  /// From now on every site runs its default.
  void stop() noexcept { stopped_ = true; }

  // Knowledge of a config before it is tried; of a site that was not added, every config may be.
  [[nodiscard]] bool survived(SiteIndex site, std::uint32_t config) const {
    return prospects_[site].survived[config];
  }
  [[nodiscard]] bool may_try(SiteIndex site, std::uint32_t config) const;
  [[nodiscard]] bool has_to_time(SiteIndex site, std::uint32_t config) const;
  [[nodiscard]] bool was_right(SiteIndex site, std::uint32_t config) const;
  [[nodiscard]] std::vector<std::uint32_t> suspects(SiteIndex site) const;
  [[nodiscard]] bool has_suspects() const;

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
  void survive(const Trials& trials);
  /// A run between entries begins, which only looks at what configs compute, or has ended.
  void screen(const Trials& trials) { screened_ = trials; }
  [[nodiscard]] const Trials& screened() const noexcept { return screened_; }
  /// The GPU has not got through with what is in flight, and perhaps never will.
  void get_stuck() { stuck_ = results_.in_flight(); }
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

  // An entry that is watched only to know when its work has ended, and what ran in it: a probe.
  /// @param is_all the tuning knows nothing of that entry
  /// @return false: there is nothing to find out, or another one's work has not ended
  [[nodiscard]] bool begin_probe(PassId pass, bool is_all);
  /// Its entry is under way.
  [[nodiscard]] bool is_probing() const noexcept { return probe_ && probe_->open; }
  /// Its entry is over, and its work is awaited.
  [[nodiscard]] bool awaits_probe() const noexcept { return probe_ && !probe_->open; }
  /// Its entry has not ended, and will not.
  void drop_probe() {
    if (is_probing()) probe_.reset();
  }
  /// An entry has ended.
  /// @param has_span its work is timed
  /// @return whether the entry was nothing but the probe
  [[nodiscard]] bool end_probe(bool has_span);
  /// A span's time has come; NaN: it is not known.
  /// @param survived gets what ran in it
  /// @return false: it is another one's
  [[nodiscard]] bool close_probe(PassId pass, double seconds, Trials& survived);

 private:
  struct Prospect {
    const Site* site = nullptr;
    std::optional<StoredWinner> stored;
    Suspicions suspicions;
    std::vector<bool> survived;  ///< by config: it was tried, and the process is still there
  };
  struct Probe {
    PassId pass{};
    bool is_all = false;
    bool open = true;
    Trials used;
  };

  [[nodiscard]] bool is_winner_in_use(SiteIndex site) const;

  SearchResults& results_;
  ProcessStore& store_;
  std::vector<Prospect> prospects_;  ///< by site
  Trials winners_;
  Trials screened_;
  Trials stuck_;
  bool stopped_ = false;
  std::atomic<bool> has_winners_{false};
  double since_ = 0;         ///< when what is in flight began; 0: nothing is, or hangs and was said
  double begun_ = 0;         ///< the entry before this one
  double quiet_period_ = 0;  ///< from one entry with nothing in flight to the next
  std::optional<Probe> probe_;
  bool has_probed_ = false;
};

}  // namespace contextune::intercept
