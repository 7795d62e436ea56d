#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/search/region_tuning.hpp"
#include "core/search/store.hpp"
#include "core/search/tuning_observer.hpp"
#include "intercept/site/process_store.hpp"
#include "intercept/tuner/pass_record.hpp"

namespace contextune::intercept {

/// The findings of one search, on their way to the store and to the log. It passes everything on to
/// another observer, and keeps of it what a later run is to know. Not thread-safe: used by one
/// search, which serialises calls.
class SearchResults final : public TuningObserver {
 public:
  SearchResults(ProcessStore& store, const std::string& region, const StoredAs& as, Judging judging,
                TuningObserver& next);

  /// The search is of one site, where others of the region have searches of their own: no time of
  /// it is the region's.
  void set_site_alone() noexcept { is_site_alone_ = true; }

  /// Whether sites of the region are stored: its first entry then only shows which are there.
  [[nodiscard]] bool store_knows() const noexcept { return !entry_.sites.empty(); }
  /// Whether no run before this one has seen anything of the region that is not stored, nor ended
  /// with what is.
  [[nodiscard]] bool store_is_complete() const noexcept { return is_complete_; }

  /// Finds what is stored of a site that is about to be added.
  /// @param key as RegionTuning::public_key has it
  /// @param code of its kernel; winners that are stored for other code count no more (said)
  [[nodiscard]] std::optional<StoredWinner> find(const SiteSpec& spec, const Key& key,
                                                 const SiteCode& code);

  /// Whether find() has had something noted since this was last asked.
  [[nodiscard]] bool take_noted() noexcept { return std::exchange(has_noted_, false); }

  /// Whether the last find() met a winner of other code, or another declaration.
  [[nodiscard]] bool is_outdated() const noexcept { return is_outdated_; }

  /// Configs of the site that earlier processes were trying when they ended abnormally.
  [[nodiscard]] Suspicions suspicions(const SiteSpec& spec, const Key& key) const;

  /// It was added under that number; `spec` with that key. `default_choice` as log::SiteFacts has
  /// it.
  void add_site(SiteIndex index, const SiteSpec& spec, const SiteCode& code,
                const std::string& default_choice);

  /// The config is not tried, for that reason.
  void exclude(SiteIndex site, std::uint32_t config, TrialStatus why);
  /// Those of the configs that a site was added without are not tried in this run only.
  void leave_out(SiteIndex site, std::span<const std::uint32_t> configs);
  void leave_out(SiteIndex site, std::uint32_t config);

  /// All that is in flight and has not been survived before: sites and configs.
  using Trials = PassRecord::Trials;
  /// False: they were before.
  bool set_in_flight(const Trials& trials);
  [[nodiscard]] const Trials& in_flight() const noexcept { return in_flight_; }
  /// Adds one to those in flight.
  void add_in_flight(SiteIndex site, std::uint32_t config);
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

  /// Whether a site was compared with its default, here or in an earlier run.
  [[nodiscard]] bool has_winner(SiteIndex site) const noexcept;

  void stage(Stage stage, std::uint32_t generation) override { next_.stage(stage, generation); }
  void trial(const TrialEvent& event) override;
  void winner(const WinnerEvent& event) override;
  void confirm(const ConfirmEvent& event) override;
  void left_out(const LeftOutEvent& event) override { next_.left_out(event); }
  void sync(const SyncEvent& event) override { next_.sync(event); }
  void fallback(FallbackReason reason, SiteIndex site, const std::string& text) override {
    next_.fallback(reason, site, with_values(site, text));
    if (site == no_site) note_untuned(reason, text);
  }
  /// Nothing is found out, for that reason, a sentence.
  void note_untuned(FallbackReason reason, const std::string& text);
  /// As Region says.
  [[nodiscard]] const std::string& why_untuned() const noexcept { return why_untuned_; }

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

  [[nodiscard]] store::TrialJournal::Suspicion suspicion(const std::string& name,
                                                         const Key& stored_key,
                                                         const Config& config) const;
  [[nodiscard]] Key stored_key(const Key& key) const;
  [[nodiscard]] store::TrialJournal::Trial named(const Site& site, std::uint32_t config) const;
  [[nodiscard]] bool suspects_stored() const;
  [[nodiscard]] bool is_blamed(const std::string& name, const Key& stored_key,
                               const Config& config) const;
  /// Whether there is something to find out about it.
  [[nodiscard]] bool is_open_here(const StoredSite& stored) const;
  [[nodiscard]] bool was_confirmed(const Site& site, const StoredSite* before) const;
  [[nodiscard]] static bool was_compared(const Site& site, const StoredSite* before);
  /// How what is stored of a site stands to the code that is there now.
  enum class Code { Same, Redeclared, Other, Untold };
  [[nodiscard]] Code compare_code(const StoredSite& stored, const SiteCode& code);
  /// The stored form of a site, if need be from before its space got more configs; null: none.
  [[nodiscard]] const StoredSite* find_stored(const std::string& name, const Key& stored_key,
                                              std::span<const Config> configs) const;
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
  [[nodiscard]] static StoredSite note_of(const std::string& name, const Key& key);

  ProcessStore& store_;
  const std::string region_;
  const ProcessStore::Entry& entry_;
  const Judging judging_;
  TuningObserver& next_;
  const bool is_complete_;
  std::vector<Site> sites_;
  std::optional<StoredConfirm> confirm_;
  Trials in_flight_;
  bool has_noted_ = false;
  bool has_new_trials_ = false;  ///< since what was measured so far was written
  std::string why_untuned_;
  bool is_outdated_ = false;
  bool is_site_alone_ = false;
};

}  // namespace contextune::intercept
