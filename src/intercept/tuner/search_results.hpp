#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/search/region_tuning.hpp"
#include "core/trials/forwarding_observer.hpp"
#include "core/trials/store.hpp"
#include "intercept/site/process_store.hpp"
#include "intercept/tuner/earlier_results.hpp"

namespace contextune::intercept {

/// What one run has measured of a config.
struct Measurements {
  TrialStatus status = TrialStatus::Untried;
  std::vector<double> seconds;  ///< samples that count, in their order
};

/// The findings of one search, on their way to the store and to the log. It passes everything on to
/// another observer, and keeps of it what a later run is to know. Not thread-safe: used by one
/// search, which serialises calls.
class SearchResults final : public ForwardingObserver {
 public:
  /// @param is_site_alone the search is of one site, where others of the region have searches of
  ///                      their own: no time of it is the region's
  SearchResults(ProcessStore& store, const std::string& region, const StoredAs& as, Judging judging,
                bool is_site_alone, TuningObserver& next);

  /// The findings of earlier runs.
  [[nodiscard]] EarlierResults& earlier() noexcept { return earlier_; }
  [[nodiscard]] const EarlierResults& earlier() const noexcept { return earlier_; }

  /// It was added under that number; `spec` with that key. `default_choice` as log::SiteFacts has
  /// it.
  void add_site(SiteIndex index, const SiteSpec& spec, const SiteCode& code,
                const std::string& default_choice);

  /// The config is not tried, for that reason.
  void exclude(SiteIndex site, std::uint32_t config, TrialStatus why);
  /// Those of the configs that a site was added without are not tried in this run only.
  void leave_out(SiteIndex site, std::span<const std::uint32_t> configs);
  void leave_out(SiteIndex site, std::uint32_t config);

  /// The names that the journal knows a config by. Absent: the site is not known.
  [[nodiscard]] std::optional<store::TrialJournal::Trial> journalled(SiteIndex site,
                                                                     std::uint32_t config) const;
  /// It computes what the default does: the two were compared.
  void note_compared(SiteIndex site, std::uint32_t config);
  [[nodiscard]] bool is_compared(SiteIndex site, std::uint32_t config) const noexcept {
    return site < sites_.size() && config < sites_[site].trials.size() &&
           sites_[site].trials[config].is_compared;
  }

  /// Has all winners written that were reported since.
  /// @return false: there were none
  bool save();
  /// The same of what was measured of sites that have no winner yet: whatever ends this process,
  /// the next run measures only the rest.
  void save_so_far();

  /// A config that was stored of a site, or would be, has failed: it is taken out of the store.
  /// @return false: it is nothing that the store has, or would get
  bool note_failed(SiteIndex site, std::uint32_t config, TrialStatus why);

  /// Has sites and configs noted that are not stored and will not be tuned now, for the next run.
  /// @return false: there are none
  bool note_unfinished();

  /// The measurements of a config in earlier runs, where what is stored of the site counts; null:
  /// none.
  [[nodiscard]] const StoredTrial* stored_trial(SiteIndex site, std::uint32_t config) const;

  /// How the whole fared with its winners, in this run or, where nothing was compared in it, in an
  /// earlier one. Absent: nobody has compared it.
  struct Confirmed {
    StoredConfirm confirm;
    bool is_stored = false;
  };
  [[nodiscard]] std::optional<Confirmed> confirmed() const;

  /// The measurements of a config in this run.
  [[nodiscard]] Measurements measurements(SiteIndex site, std::uint32_t config) const;

  /// Whether a site was compared with its default, here or in an earlier run.
  [[nodiscard]] bool has_winner(SiteIndex site) const noexcept;

  void trial(const TrialEvent& event) override;
  void winner(const WinnerEvent& event) override;
  void confirm(const ConfirmEvent& event) override;
  void fallback(FallbackReason reason, SiteIndex site, const std::string& text) override;

 private:
  /// The samples of one config.
  struct Samples {
    TrialStatus status = TrialStatus::Untried;
    std::vector<double> seconds;
    bool is_left_out = false;  ///< nothing is found out about it, nor stored
    bool is_compared = false;  ///< with the default, and right
  };
  struct Site {
    std::string name;
    Key key;
    std::vector<Config> configs;
    SiteCode code;
    std::vector<Samples> trials;
    std::string default_choice;
    Objective objective = Objective::Own;
    bool is_pinned = false;
    std::optional<std::uint32_t> stored{};  ///< config that was
    bool is_stored_found = true;            ///< as StoredWinner::is_found
    bool needs_confirm = false;             ///< what was stored of it
    std::vector<std::uint32_t> untried{};   ///< configs of which nothing is stored
    std::optional<WinnerEvent> winner;
    bool saved = false;
  };

  [[nodiscard]] bool was_confirmed(const Site& site, const StoredSite* before) const;
  [[nodiscard]] static bool was_compared(const Site& site, const StoredSite* before);
  /// The core numbers configs; people know them by their values.
  [[nodiscard]] std::string with_values(SiteIndex site, const std::string& text) const;
  /// The stored trial of a config of a site; null: none.
  [[nodiscard]] const StoredTrial* known_trial(const Site& site, std::size_t config) const;
  [[nodiscard]] StoredSite stored(const Site& site) const;
  /// The site with the best of the configs that were measured as often as its default, and without
  /// what was not. Absent: there is none.
  [[nodiscard]] static std::optional<Site> so_far(SiteIndex index, const Site& site,
                                                  Selection selection);
  [[nodiscard]] static StoredSite note_of(const Site& site);

  ProcessStore& store_;
  const std::string region_;
  EarlierResults earlier_;
  const bool is_site_alone_;
  std::vector<Site> sites_;
  std::optional<StoredConfirm> confirm_;
  bool has_new_trials_ = false;  ///< since what was measured so far was written
};

}  // namespace contextune::intercept
