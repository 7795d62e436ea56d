#pragma once

#include <optional>
#include <span>
#include <string>

#include "core/search/region_tuning.hpp"
#include "core/trials/store.hpp"
#include "core/trials/tuning_observer.hpp"
#include "intercept/site/process_store.hpp"

namespace contextune::intercept {

/// The findings of earlier runs about one region, as the store and the journal have them, and as
/// far as they count in this run. Not thread-safe: a part of one search.
class EarlierResults {
 public:
  /// @param said_to is told of findings that count no more; outlives it
  EarlierResults(ProcessStore& store, const std::string& region, const StoredAs& as,
                 Judging judging, TuningObserver& said_to);

  /// Whether sites of the region are stored: its first entry then only shows which are there.
  [[nodiscard]] bool any() const noexcept { return !entry_.sites.empty(); }
  /// Whether no run before this one has seen anything of the region that is not stored, nor ended
  /// with what is.
  [[nodiscard]] bool is_complete() const noexcept { return is_complete_; }

  struct Found {
    std::optional<StoredWinner> winner;
    bool is_outdated = false;  ///< it is of other code, or another declaration
    bool has_noted = false;    ///< something was noted in the store for the next run
  };
  /// Finds what is stored of a site that is about to be added.
  /// @param key as RegionTuning::public_key has it
  /// @param code of its kernel; winners that are stored for other code count no more (said)
  [[nodiscard]] Found find(const SiteSpec& spec, const Key& key, const SiteCode& code);

  /// Configs of the site that earlier processes were trying when they ended abnormally.
  [[nodiscard]] Suspicions suspicions(const SiteSpec& spec, const Key& key) const;

  /// The key that a site with this one is stored by.
  [[nodiscard]] Key stored_key(const Key& key) const;
  /// The stored form of a site, if need be from before its space got more configs; null: none.
  [[nodiscard]] const StoredSite* site(const std::string& name, const Key& stored_key,
                                       std::span<const Config> configs) const;
  /// The stored trial of one of its configs; null: none.
  [[nodiscard]] const StoredTrial* trial(const std::string& name, const Key& stored_key,
                                         std::span<const Config> configs, std::size_t config) const;

  /// How the whole fared with what is stored, under this software; absent: not known.
  [[nodiscard]] const std::optional<StoredConfirm>& confirm() const noexcept {
    return entry_.confirm;
  }

  [[nodiscard]] const StoreIdentity& identity() const noexcept { return entry_.identity; }
  /// How sites are judged in this run.
  [[nodiscard]] const Judging& judging() const noexcept { return judging_; }

  /// A site of which nothing was found, to be stored.
  [[nodiscard]] static StoredSite note_of(const std::string& name, const Key& stored_key);

 private:
  [[nodiscard]] store::TrialJournal::Suspicion suspicion(const std::string& name,
                                                         const Key& stored_key,
                                                         const Config& config) const;
  [[nodiscard]] bool suspects_stored() const;
  [[nodiscard]] bool is_blamed(const std::string& name, const Key& stored_key,
                               const Config& config) const;
  /// Whether there is something to find out about it.
  [[nodiscard]] bool is_open_here(const StoredSite& stored) const;
  /// How what is stored of a site stands to the code that is there now.
  enum class Code { Same, Redeclared, Other, Untold };
  [[nodiscard]] Code compare_code(const StoredSite& stored, const SiteCode& code, bool& has_noted);

  ProcessStore& store_;
  const std::string region_;
  const ProcessStore::Entry& entry_;
  const Judging judging_;
  TuningObserver& said_to_;
  const bool is_complete_;
};

}  // namespace contextune::intercept
