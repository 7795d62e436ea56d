#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "intercept/measuring/pass_record.hpp"
#include "store/trial_journal.hpp"

namespace contextune::intercept {

/// The trials of one search that are in flight, for the journal: sites and configs that have not
/// been survived before. Not thread-safe: a part of one search.
class TrialsInFlight {
 public:
  using Trials = PassRecord::Trials;
  /// The names that the journal knows a config by. Absent: the site is not known.
  using Naming =
      std::function<std::optional<store::TrialJournal::Trial>(SiteIndex, std::uint32_t config)>;

  TrialsInFlight(store::TrialJournal& journal, Naming naming)
      : journal_(journal), naming_(std::move(naming)) {}
  TrialsInFlight(const TrialsInFlight&) = delete;
  TrialsInFlight& operator=(const TrialsInFlight&) = delete;

  [[nodiscard]] const Trials& all() const noexcept { return trials_; }
  [[nodiscard]] bool empty() const noexcept { return trials_.empty(); }
  /// False: they were before.
  bool set(const Trials& trials) {
    if (trials == trials_) return false;
    trials_ = trials;
    std::vector<store::TrialJournal::Trial> named;
    for (const auto& [site, config] : trials)
      if (auto one = naming_(site, config)) named.push_back(std::move(*one));
    journal_.set(this, std::move(named));
    return true;
  }
  /// Adds one.
  void add(SiteIndex site, std::uint32_t config) {
    auto named = naming_(site, config);
    if (!named) return;
    trials_.emplace_back(site, config);
    journal_.add(this, std::move(*named));
  }

 private:
  store::TrialJournal& journal_;
  const Naming naming_;
  Trials trials_;
};

}  // namespace contextune::intercept
