#include "store/merge.hpp"

#include <algorithm>
#include <set>

#include "core/trials/stored_winner.hpp"
#include "store/entry_json.hpp"
#include "store/identity.hpp"

namespace contextune::store {
namespace {

ReplacedWinner winner_of(const EntrySite& entry) {
  return {entry.site.winner,          entry.site.reason,   entry.site.seconds,
          entry.site.default_seconds, entry.site.tuned_at, entry.software};
}

// Where the site is, or belongs.
std::vector<EntrySite>::iterator place_in(Entry& entry, const StoredSite& site) {
  return std::ranges::lower_bound(
      entry.sites, site, comes_before,
      [](const EntrySite& known) -> const StoredSite& { return known.site; });
}

bool is_at(const Entry& entry, std::vector<EntrySite>::const_iterator place,
           const StoredSite& site) {
  return place != entry.sites.end() && !comes_before(site, place->site);
}

bool is_note(const StoredSite& site) {
  return site.reason == WinnerReason::NoSamples;
}

// Whether a tuning ended with it. History tells of nothing else.
bool is_final(const StoredSite& site) {
  return !is_note(site) && site.reason != WinnerReason::SoFar;
}

bool has_failed(TrialStatus status) {
  return status == TrialStatus::LaunchFailed || status == TrialStatus::WrongResult ||
         status == TrialStatus::Crashed || status == TrialStatus::TooMuchMemory;
}

// Whether what failed under the one would fail under the other. Findings about a winner say nothing
// of what failed.
bool judge_alike(const std::optional<StoredTerms>& a, const std::optional<StoredTerms>& b) {
  if (!a || !b) return !a && !b;
  StoredTerms same = *a;
  same.confirmed = b->confirmed;
  same.compared = b->compared;
  return same == *b;
}

// Whether findings about the one say nothing about the other.
bool is_other_code(const StoredSite& a, const StoredSite& b) {
  if (!is_same_declaration(a.declaration, b.declaration)) return true;
  return !a.code.empty() && !b.code.empty() && a.code != b.code;
}

// Its winner is one no more.
void retire(EntrySite& known, const StoredSite& note, const std::string& tuned_at) {
  if (is_final(known.site)) known.replaced.insert(known.replaced.begin(), winner_of(known));
  if (known.replaced.size() > most_replaced) known.replaced.resize(most_replaced);
  known.site.winner = note.winner;
  known.site.reason = note.reason;
  known.site.seconds = note.seconds;
  known.site.tuned_at = tuned_at;
}

// Adds what a note says of a site that is known: configs that were not tried, and such that failed
// since; and which code it has.
void add_note(EntrySite& known, const StoredSite& note, const std::string& tuned_at) {
  if (is_other_code(note, known.site)) {
    retire(known, note, tuned_at);
    known.site.trials.clear();
    known.site.default_seconds = note.default_seconds;
    known.site.progress = note.progress;
  }
  if (!note.declaration.empty()) known.site.declaration = note.declaration;
  if (!note.code.empty()) {
    known.site.code = note.code;
    known.site.image = note.image;
  }
  for (const StoredTrial& said : note.trials) {
    const std::string config = canonical_text(said.config);
    std::vector<StoredTrial>& trials = known.site.trials;
    const auto place = std::ranges::find_if(
        trials, [&](const StoredTrial& trial) { return canonical_text(trial.config) == config; });
    if (place == trials.end()) {
      if (trials.size() < most_trials) trials.push_back(said);
    } else if (has_failed(said.status)) {
      *place = said;
    }
    if (has_failed(said.status) && canonical_text(known.site.winner) == config)
      retire(known, note, tuned_at);
  }
}

// A tuned winner counts more than a note, whenever the note was made, unless it says that the
// winner has failed since.
bool counts_more(const StoredSite& a, const StoredSite& b) {
  const bool later = a.tuned_at > b.tuned_at;
  if (is_note(a) == is_note(b)) return later;
  const auto refutes = [](const StoredSite& note, const StoredSite& other) {
    return note.tuned_at >= other.tuned_at &&
           std::ranges::any_of(note.trials, [&](const StoredTrial& trial) {
             return has_failed(trial.status) &&
                    canonical_text(trial.config) == canonical_text(other.winner);
           });
  };
  return is_note(a) ? refutes(a, b) : !refutes(b, a);
}

void keep_trials(EntrySite& site, const EntrySite& before) {
  if (site.software != before.software || is_other_code(site.site, before.site)) return;
  std::set<std::string> known;
  for (const StoredTrial& trial : site.site.trials) known.insert(canonical_text(trial.config));
  for (const StoredTrial& trial : before.site.trials) {
    if (site.site.trials.size() >= most_trials) return;
    if (trial.status == TrialStatus::Untried) continue;
    // Under other terms it might not have failed.
    if (trial.status != TrialStatus::Measured && !judge_alike(site.site.terms, before.site.terms))
      continue;
    if (known.insert(canonical_text(trial.config)).second) site.site.trials.push_back(trial);
  }
}

bool is_same(const ReplacedWinner& a, const ReplacedWinner& b) {
  return a.tuned_at == b.tuned_at && a.software == b.software && a.winner == b.winner;
}

// The history of `newer` with that of `older` and its winner, each once.
std::vector<ReplacedWinner> joined_history(const EntrySite& newer, const EntrySite& older) {
  std::vector<ReplacedWinner> all = newer.replaced;
  if (is_final(older.site)) all.push_back(winner_of(older));
  all.insert(all.end(), older.replaced.begin(), older.replaced.end());
  std::ranges::stable_sort(all, std::ranges::greater(), &ReplacedWinner::tuned_at);
  std::vector<ReplacedWinner> history;
  const ReplacedWinner current = winner_of(newer);
  for (const ReplacedWinner& replaced : all) {
    const auto matches = [&](const ReplacedWinner& known) { return is_same(known, replaced); };
    if (history.size() == most_replaced) break;
    if (!matches(current) && std::ranges::none_of(history, matches)) history.push_back(replaced);
  }
  return history;
}

void drop_unused_software(Entry& entry) {
  std::set<std::string> used;
  if (entry.confirm) used.insert(entry.confirm->software);
  for (const EntrySite& site : entry.sites) {
    used.insert(site.software);
    for (const ReplacedWinner& replaced : site.replaced) used.insert(replaced.software);
  }
  std::erase_if(entry.software, [&](const auto& known) { return !used.contains(known.first); });
}

EntrySite tuned_site(const StoredSite& site, const std::string& software,
                     const std::string& tuned_at) {
  EntrySite made{site, software, {}};
  made.site.tuned_at = tuned_at;
  made.site.same_software = true;
  // A known trial is what the store said, and stays as it is there.
  std::erase_if(made.site.trials, [](const StoredTrial& trial) {
    return trial.status == TrialStatus::Untried || trial.status == TrialStatus::Known;
  });
  if (made.site.trials.size() > most_trials) made.site.trials.resize(most_trials);
  return made;
}

}  // namespace

std::string canonical_text(const Config& config) {
  std::vector<Config::Entry> entries = config.entries();
  std::ranges::sort(entries, {}, &Config::Entry::first);
  std::string text;
  for (const auto& [name, value] : entries) {
    if (!text.empty()) text += ' ';
    text += to_string(Value(name)) + '=' + to_string(value);
  }
  return text;
}

void add_tuning(Entry& entry, const Facts& software, const std::vector<StoredSite>& sites,
                const std::optional<StoredConfirm>& confirm, const std::string& tuned_at) {
  const std::string id = software_id(software);
  entry.software.emplace(id, normalised(software));
  for (const StoredSite& site : sites) {
    EntrySite made = tuned_site(site, id, tuned_at);
    const auto place = place_in(entry, site);
    if (!is_at(entry, place, site)) {
      entry.sites.insert(place, std::move(made));
      continue;
    }
    if (is_note(site)) {
      add_note(*place, site, tuned_at);
      continue;
    }
    keep_trials(made, *place);
    made.replaced = place->replaced;
    if (is_final(place->site)) made.replaced.insert(made.replaced.begin(), winner_of(*place));
    if (made.replaced.size() > most_replaced) made.replaced.resize(most_replaced);
    *place = std::move(made);
  }
  if (confirm && confirm->pairs > 0) entry.confirm = EntryConfirm{*confirm, tuned_at, id};
  drop_unused_software(entry);
}

MergeCount merge_entry(Entry& entry, const Entry& other) {
  MergeCount count;
  entry.software.insert(other.software.begin(), other.software.end());
  for (const EntrySite& site : other.sites) {
    if (refutation(site.site)) continue;
    const auto place = place_in(entry, site.site);
    if (!is_at(entry, place, site.site)) {
      entry.sites.insert(place, site);
      ++count.added;
      continue;
    }
    const bool same = is_same(winner_of(*place), winner_of(site));
    const bool newer = counts_more(site.site, place->site);
    ++(same ? count.same : newer ? count.replaced : count.older);
    EntrySite joined = newer ? site : *place;
    const EntrySite& rest = newer ? *place : site;
    joined.replaced = joined_history(joined, rest);
    keep_trials(joined, rest);
    *place = std::move(joined);
  }
  const bool has_compared = other.confirm && other.confirm->figures.pairs > 0;
  if (has_compared && (!entry.confirm || other.confirm->tuned_at > entry.confirm->tuned_at))
    entry.confirm = other.confirm;
  drop_unused_software(entry);
  return count;
}

}  // namespace contextune::store
