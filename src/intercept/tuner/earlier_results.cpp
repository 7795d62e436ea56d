#include "intercept/tuner/earlier_results.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/trials/grown_space.hpp"

namespace contextune::intercept {
namespace {

// Where nothing is tuned, nothing is confirmed or compared either.
Judging judging_for(Judging judging, bool tunes) {
  judging.confirm = judging.confirm && tunes;
  judging.compares = judging.compares && tunes;
  return judging;
}

}  // namespace

EarlierResults::EarlierResults(ProcessStore& store, const std::string& region, const StoredAs& as,
                               Judging judging, TuningObserver& said_to)
    : store_(store),
      region_(region),
      entry_(store.entry_of(region, as)),
      judging_(judging_for(std::move(judging), store.tunes())),
      said_to_(said_to),
      is_complete_(!entry_.sites.empty() && !suspects_stored() &&
                   std::ranges::none_of(entry_.sites,
                                        [this](const auto& site) { return is_open_here(site); })) {}

bool EarlierResults::suspects_stored() const {
  return std::ranges::any_of(entry_.sites, [this](const StoredSite& site) {
    return suspicion(site.name, site.key, site.winner) == store::TrialJournal::Suspicion::Suspect;
  });
}

bool EarlierResults::is_blamed(const std::string& name, const Key& stored_key,
                               const Config& config) const {
  return suspicion(name, stored_key, config) == store::TrialJournal::Suspicion::Blamed;
}

bool EarlierResults::is_open_here(const StoredSite& stored) const {
  return is_open(stored, judging_) ||
         std::ranges::any_of(stored.trials, [&](const StoredTrial& trial) {
           return trial.status == TrialStatus::Crashed &&
                  !is_blamed(stored.name, stored.key, trial.config);
         });
}

Key EarlierResults::stored_key(const Key& key) const {
  if (entry_.keeps_devices_apart) return key;
  // Which of several equal devices it was does not matter.
  Key stored;
  for (const Key::Entry& part : key.entries())
    if (part.first != "device") stored.add(part.first, part.second);
  return stored;
}

EarlierResults::Code EarlierResults::compare_code(const StoredSite& stored, const SiteCode& code,
                                                  bool& has_noted) {
  if (!is_same_declaration(stored.declaration, code.declaration)) return Code::Redeclared;
  // The next run finds what was read.
  const auto note = [&] {
    StoredSite seen = note_of(stored.name, stored.key);
    store_.save(entry_.identity, {{std::move(seen), code, {}, true}}, std::nullopt);
    has_noted = true;
  };
  if (stored.declaration.empty() && !code.declaration.empty()) note();
  if (code.image == nullptr) {
    const bool is_known = !stored.image.empty() && !code.build.empty();
    return is_known && stored.image != code.build ? Code::Untold : Code::Same;
  }
  const bool is_stamped = !stored.image.empty() && stored.image == code.stamp();
  if (!stored.code.empty() && is_stamped) return Code::Same;
  const bool reads_now = code.is_quick();
  const std::string here = reads_now ? code.read() : std::string();
  if (reads_now && here.empty()) return Code::Same;  // nor is there anything to note
  if (reads_now && here == stored.code && stored.image == code.stamp()) return Code::Same;
  note();
  if (stored.code.empty() || (reads_now && here == stored.code)) return Code::Same;
  return reads_now ? Code::Other : Code::Untold;
}

const StoredSite* EarlierResults::site(const std::string& name, const Key& stored_key,
                                       std::span<const Config> configs) const {
  const StoredSite* known = store_.find(entry_, name, stored_key);
  const bool is_only_seen =
      known == nullptr || (known->reason == WinnerReason::NoSamples &&
                           std::ranges::all_of(known->trials, [](const StoredTrial& trial) {
                             return trial.status == TrialStatus::Untried;
                           }));
  if (!is_only_seen) return known;
  const StoredSite* before = find_before_growth(entry_.sites, name, stored_key, configs);
  return before != nullptr ? before : known;
}

EarlierResults::Found EarlierResults::find(const SiteSpec& spec, const Key& key,
                                           const SiteCode& code) {
  if (spec.configs.size() < 2 || spec.pinned) return {};
  const std::string then = store_.tunes() ? "so it is tuned again." : "so it runs its default.";
  Found found;
  std::optional<StoredWinner>& winner = found.winner;
  const StoredSite* stored = site(spec.name, stored_key(key), spec.configs);
  if (stored != nullptr) winner = stored_winner(*stored, spec.configs, judging_);
  if (winner && is_loose(*stored, judging_)) {
    winner.reset();
    said_to_.fallback(FallbackReason::LooseTolerance, no_site,
                      "The stored winner of '" + spec.name + "' was found with the tolerance '" +
                          stored->terms->tolerance + "', which this run's does not cover, " + then);
  }
  if (winner && lacks_comparison(*stored, judging_)) {
    said_to_.fallback(
        FallbackReason::NotCompared, no_site,
        "The stored winner of '" + spec.name +
            "' was never compared with the default, so it is compared before it counts.");
  }
  if (winner) {
    std::erase_if(winner->untried, [&](std::uint32_t config) {
      return is_blamed(stored->name, stored->key, spec.configs[config]);
    });
    const Code known = compare_code(*stored, code, found.has_noted);
    found.is_outdated = known == Code::Redeclared || known == Code::Other;
    if (known == Code::Untold) winner->needs_confirm = winner->config != 0;
    if (known == Code::Redeclared) {
      winner.reset();
      said_to_.fallback(FallbackReason::OtherDeclaration, no_site,
                        "'" + spec.name +
                            "' is declared in another way than when its stored winner " +
                            "was found, " + then);
    }
    if (known == Code::Other) {
      winner.reset();
      said_to_.fallback(FallbackReason::OtherCode, no_site,
                        "'" + spec.name +
                            "' was built anew: its instructions are others than those " +
                            "that its stored winner was found with, " + then);
    }
  }
  if (!store_.tunes()) {
    if (!winner) winner.emplace().is_found = false;
    winner->untried.clear();
  }
  if (winner) winner->environment = entry_.environment;
  return found;
}

store::TrialJournal::Suspicion EarlierResults::suspicion(const std::string& name,
                                                         const Key& stored_key,
                                                         const Config& config) const {
  return store_.journal().suspicion(
      store::tried_config(region_, name, stored_key.to_string(), config.to_string()));
}

Suspicions EarlierResults::suspicions(const SiteSpec& spec, const Key& key) const {
  Suspicions found;
  const Key known_as = stored_key(key);
  for (std::uint32_t config = 1; config < spec.configs.size(); ++config) {
    switch (suspicion(spec.name, known_as, spec.configs[config])) {
      case store::TrialJournal::Suspicion::None:
        break;
      case store::TrialJournal::Suspicion::Suspect:
        found.suspects.push_back(config);
        break;
      case store::TrialJournal::Suspicion::Blamed:
        found.blamed.push_back(config);
        break;
    }
  }
  return found;
}

const StoredTrial* EarlierResults::trial(const std::string& name, const Key& stored_key,
                                         std::span<const Config> configs,
                                         std::size_t config) const {
  const StoredSite* const known = site(name, stored_key, configs);
  if (known == nullptr || config >= configs.size()) return nullptr;
  const auto found = std::ranges::find_if(
      known->trials, [&](const StoredTrial& one) { return one.config == configs[config]; });
  return found == known->trials.end() ? nullptr : &*found;
}

StoredSite EarlierResults::note_of(const std::string& name, const Key& stored_key) {
  StoredSite note;
  note.name = name;
  note.key = stored_key;
  note.reason = WinnerReason::NoSamples;
  note.seconds = note.default_seconds = std::numeric_limits<double>::quiet_NaN();
  return note;
}

}  // namespace contextune::intercept
