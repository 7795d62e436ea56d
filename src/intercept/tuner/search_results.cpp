#include "intercept/tuner/search_results.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/trials/statistics.hpp"

namespace contextune::intercept {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

}  // namespace

SearchResults::SearchResults(ProcessStore& store, const std::string& region, const StoredAs& as,
                             Judging judging, bool is_site_alone, TuningObserver& next)
    : ForwardingObserver(next),
      store_(store),
      region_(region),
      earlier_(store, region, as, std::move(judging), next),
      is_site_alone_(is_site_alone) {}

void SearchResults::exclude(SiteIndex site, std::uint32_t config, TrialStatus why) {
  if (site >= sites_.size() || config >= sites_[site].trials.size()) return;
  sites_[site].trials[config] = {why, {}};
  has_new_trials_ = true;
}

void SearchResults::leave_out(SiteIndex site, std::span<const std::uint32_t> configs) {
  if (site >= sites_.size()) return;
  std::vector<Samples>& trials = sites_[site].trials;
  for (const std::uint32_t config : configs)
    if (config < trials.size() && trials[config].status == TrialStatus::LaunchFailed)
      trials[config] = {TrialStatus::Untried, {}, true};
}

void SearchResults::leave_out(SiteIndex site, std::uint32_t config) {
  if (site < sites_.size() && config < sites_[site].trials.size())
    sites_[site].trials[config] = {TrialStatus::Untried, {}, true};
}

void SearchResults::note_compared(SiteIndex index, std::uint32_t config) {
  if (index < sites_.size() && config < sites_[index].trials.size())
    sites_[index].trials[config].is_compared = true;
}

std::optional<store::TrialJournal::Trial> SearchResults::journalled(SiteIndex index,
                                                                    std::uint32_t config) const {
  if (index >= sites_.size() || config >= sites_[index].configs.size()) return std::nullopt;
  const Site& site = sites_[index];
  return store::TrialJournal::trial_of(region_, site.name, site.key.to_string(),
                                       site.configs[config].to_string());
}

void SearchResults::add_site(SiteIndex index, const SiteSpec& spec, const SiteCode& code,
                             const std::string& default_choice) {
  if (sites_.size() <= index) sites_.resize(index + 1U);
  Site& site = sites_[index];
  site = {};
  site.name = spec.name;
  site.key = earlier_.stored_key(spec.key);
  site.configs = spec.configs;
  site.code = code;
  site.trials.resize(spec.configs.size());
  site.objective = spec.objective;
  site.default_choice = default_choice;
  site.is_pinned = spec.pinned.has_value();
  site.needs_confirm = spec.stored && spec.stored->needs_confirm;
  if (spec.stored) {
    site.stored = spec.stored->config;
    site.is_stored_found = spec.stored->is_found;
    site.untried = spec.stored->untried;
  }
}

void SearchResults::trial(const TrialEvent& event) {
  next().trial(event);
  if (event.site >= sites_.size() || event.config >= sites_[event.site].trials.size()) return;
  has_new_trials_ = true;
  Samples& samples = sites_[event.site].trials[event.config];
  // Whatever rank has seen it, all have stored the same.
  if (event.status == TrialStatus::TooMuchMemory && samples.status != event.status)
    (void)note_failed(event.site, event.config, event.status);
  samples.status = event.status;
  if (event.status == TrialStatus::Measured && event.iteration >= 0 && !event.throttled)
    samples.seconds.push_back(event.seconds);
}

void SearchResults::winner(const WinnerEvent& heard) {
  if (heard.site >= sites_.size()) return next().winner(heard);
  Site& site = sites_[heard.site];
  WinnerEvent event = heard;
  if (event.reason == WinnerReason::Stored && !site.is_stored_found)
    event.reason = WinnerReason::NoSamples;
  next().winner(event);
  site.winner = event;
  const bool is_found =
      event.reason != WinnerReason::Only && event.reason != WinnerReason::Pinned &&
      event.reason != WinnerReason::NoSamples && !event.cut_short &&
      // A stored config that failed is noted as such: the next run tunes the site.
      !(event.reason == WinnerReason::Failed && site.stored);
  // A winner that came from the store is there already, unless it had to be shown again.
  bool was_tried = false;
  for (std::size_t config = 0; config < site.trials.size(); ++config) {
    const Samples& one = site.trials[config];
    if (one.status == TrialStatus::Untried || one.status == TrialStatus::Known) continue;
    // A config that every run leaves out, and that is stored so, was not tried either.
    const StoredTrial* const before = one.seconds.empty() ? known_trial(site, config) : nullptr;
    was_tried = was_tried || before == nullptr || before->status != one.status;
  }
  const bool is_news = event.reason != WinnerReason::Stored || site.needs_confirm || was_tried;
  site.saved = !is_found || !is_news || site.is_pinned;
}

const StoredTrial* SearchResults::known_trial(const Site& site, std::size_t config) const {
  return earlier_.trial(site.name, site.key, site.configs, config);
}

Measurements SearchResults::measurements(SiteIndex index, std::uint32_t config) const {
  if (index >= sites_.size() || config >= sites_[index].trials.size()) return {};
  const Samples& samples = sites_[index].trials[config];
  return {samples.status, samples.seconds};
}

const StoredTrial* SearchResults::stored_trial(SiteIndex index, std::uint32_t config) const {
  if (index >= sites_.size() || !sites_[index].stored) return nullptr;
  const StoredTrial* const known = known_trial(sites_[index], config);
  const bool was_measured =
      known != nullptr && known->status == TrialStatus::Measured && known->samples > 0;
  return was_measured ? known : nullptr;
}

std::string SearchResults::with_values(SiteIndex site, const std::string& text) const {
  constexpr std::string_view subject = "Config ";
  const std::size_t end = text.find(" of '");
  std::uint32_t config = 0;
  if (site >= sites_.size() || !text.starts_with(subject) || end == text.npos) return text;
  const auto read = std::from_chars(text.data() + subject.size(), text.data() + end, config);
  if (read.ptr != text.data() + end || config >= sites_[site].configs.size()) return text;
  return text.substr(0, end) + " (" + sites_[site].configs[config].to_string() + ")" +
         text.substr(end);
}

bool SearchResults::has_winner(SiteIndex site) const noexcept {
  if (site >= sites_.size() || !sites_[site].winner) return false;
  const WinnerReason reason = sites_[site].winner->reason;
  return reason != WinnerReason::Only && reason != WinnerReason::Pinned &&
         reason != WinnerReason::Nearest && reason != WinnerReason::NoSamples;
}

void SearchResults::fallback(FallbackReason reason, SiteIndex site, const std::string& text) {
  next().fallback(reason, site, with_values(site, text));
}

void SearchResults::confirm(const ConfirmEvent& event) {
  next().confirm(event);
  StoredConfirm kept;
  kept.verdict = event.verdict;
  kept.before_seconds = event.before_seconds;
  kept.after_seconds = event.after_seconds;
  kept.gain = event.gain;
  kept.bound = event.bound;
  kept.pairs = event.pairs;
  confirm_ = kept;
}

std::optional<SearchResults::Confirmed> SearchResults::confirmed() const {
  const std::optional<StoredConfirm>& before = earlier_.confirm();
  if (before && (!confirm_ || confirm_->pairs == 0)) return Confirmed{*before, true};
  return confirm_ ? std::optional(Confirmed{*confirm_, false}) : std::nullopt;
}

bool SearchResults::was_confirmed(const Site& site, const StoredSite* before) const {
  if (site.winner->config == 0) return true;
  if (confirm_ && confirm_->pairs > 0) return true;  // it was not dropped
  // A config that runs unchanged is no news to a confirmation.
  return site.stored == site.winner->config && !site.needs_confirm && before != nullptr &&
         (!before->terms || before->terms->confirmed);
}

bool SearchResults::was_compared(const Site& site, const StoredSite* before) {
  const std::uint32_t winner = site.winner->config;
  if (winner == 0 || site.trials[winner].is_compared) return true;
  return site.stored == winner && before != nullptr && before->same_software && before->terms &&
         before->terms->compared;
}

StoredSite SearchResults::stored(const Site& site) const {
  StoredSite out;
  out.name = site.name;
  out.key = site.key;
  out.winner = site.configs[site.winner->config];
  out.reason = site.winner->reason;
  out.seconds = site.winner->seconds;
  out.default_seconds = site.winner->default_seconds;
  out.default_choice = site.default_choice;
  const StoredSite* before = earlier_.site(site.name, site.key, site.configs);
  const Judging& judging = earlier_.judging();
  out.terms = {judging.tolerance,           judging.trial_timeout, judging.cutoff,
               was_confirmed(site, before), judging.comm_memory,   was_compared(site, before)};
  if (before != nullptr && out.reason == WinnerReason::Stored)
    out.reason = before->reason == WinnerReason::SoFar ? WinnerReason::Fastest : before->reason;
  for (std::size_t config = 0; config < site.configs.size(); ++config) {
    const Samples& samples = site.trials[config];
    if (samples.is_left_out) continue;
    StoredTrial trial;
    trial.config = site.configs[config];
    trial.status = samples.status;
    trial.samples = static_cast<std::uint32_t>(samples.seconds.size());
    trial.seconds = cost_of(samples.seconds, judging.selection);
    trial.low_seconds = trial.high_seconds = none;
    if (!samples.seconds.empty()) {
      const auto [low, high] = std::minmax_element(samples.seconds.begin(), samples.seconds.end());
      trial.low_seconds = *low;
      trial.high_seconds = *high;
    }
    // A cost that was not reached in time is none.
    if (trial.status == TrialStatus::TimedOut) {
      trial.samples = 0;
      trial.seconds = trial.low_seconds = trial.high_seconds = none;
    }
    if (trial.status == TrialStatus::Untried || trial.status == TrialStatus::Known) {
      const bool judged_by_region =
          site.objective == Objective::Region && site.winner->reason != WinnerReason::Stored;
      const StoredTrial* const known = known_trial(site, config);
      // A config that failed under stricter terms has not failed under these.
      if (known != nullptr &&
          (known->status == TrialStatus::Crashed || counts_as_tried(*known, *before, judging))) {
        trial = *known;
      } else if (judged_by_region) {
        trial.status = TrialStatus::Measured;  // on the region's time: it has none of its own
      } else {
        continue;
      }
    }
    out.trials.push_back(std::move(trial));
  }
  return out;
}

StoredSite SearchResults::note_of(const Site& site) {
  StoredSite note = EarlierResults::note_of(site.name, site.key);
  note.winner = site.configs.front();
  note.default_choice = site.default_choice;
  return note;
}

bool SearchResults::note_failed(SiteIndex index, std::uint32_t config, TrialStatus why) {
  if (index >= sites_.size() || config >= sites_[index].configs.size()) return false;
  Site& site = sites_[index];
  const bool is_found = site.winner && site.winner->config == config;
  if (config == 0 || site.is_pinned || (site.stored != config && !is_found)) return false;
  if (is_found) site.saved = true;
  const auto ranks = site.winner ? site.winner->ranks : std::vector<std::uint32_t>();
  StoredSite note = note_of(site);
  note.trials.push_back({site.configs[config], why, 0, none, none, none});
  store_.save(earlier_.identity(), {{std::move(note), site.code, ranks}}, std::nullopt);
  return true;
}

bool SearchResults::note_unfinished() {
  std::vector<ProcessStore::Saved> sites;
  for (const Site& site : sites_) {
    const bool is_known = site.stored && site.untried.empty();
    if (site.configs.size() < 2 || site.is_pinned || is_known) continue;
    sites.push_back({note_of(site), site.code});
    StoredSite& note = sites.back().site;
    for (const std::uint32_t config : site.untried)
      note.trials.push_back({site.configs[config], TrialStatus::Untried, 0, none, none, none});
  }
  if (sites.empty()) return false;
  store_.save(earlier_.identity(), std::move(sites), std::nullopt);
  return true;
}

std::optional<SearchResults::Site> SearchResults::so_far(SiteIndex index, const Site& site,
                                                         Selection selection) {
  const std::size_t due = site.trials.front().seconds.size();
  if (site.winner || site.is_pinned || site.objective == Objective::Region || due == 0)
    return std::nullopt;
  Site known = site;
  std::vector<double> costs;
  for (Samples& one : known.trials) {
    const bool is_measured = one.status == TrialStatus::Measured && one.seconds.size() >= due;
    costs.push_back(is_measured ? cost_of(one.seconds, selection)
                                : std::numeric_limits<double>::infinity());
    if (one.status == TrialStatus::NoSample ||
        (one.status == TrialStatus::Measured && !is_measured))
      one = {};
  }
  const auto best = static_cast<std::uint32_t>(std::ranges::min_element(costs) - costs.begin());
  const bool any_other =
      std::any_of(known.trials.begin() + 1, known.trials.end(), [](const auto& t) {
        return t.status != TrialStatus::Untried && t.status != TrialStatus::Known;
      });
  if (!any_other || !std::isfinite(costs.front())) return std::nullopt;
  known.winner = WinnerEvent{index, best, costs[best], costs.front(), WinnerReason::SoFar};
  return known;
}

void SearchResults::save_so_far() {
  if (!std::exchange(has_new_trials_, false)) return;
  std::vector<ProcessStore::Saved> sites;
  for (SiteIndex index = 0; index < sites_.size(); ++index) {
    if (sites_[index].trials.empty()) continue;
    if (const auto known = so_far(index, sites_[index], earlier_.judging().selection))
      sites.push_back({.site = stored(*known), .code = known->code});
  }
  if (!sites.empty()) store_.save(earlier_.identity(), std::move(sites), std::nullopt);
}

bool SearchResults::save() {
  std::vector<ProcessStore::Saved> sites;
  for (Site& site : sites_) {
    if (!site.winner || site.saved) continue;
    sites.push_back({stored(site), site.code, site.winner->ranks});
    site.saved = true;
  }
  if (sites.empty()) return false;
  // An entry with many keys has no time of the whole; and what was not compared is no news.
  const bool is_region = earlier_.identity().kind == StoredKind::Region && !is_site_alone_;
  const bool says_whole = is_region && confirm_ && confirm_->pairs > 0;
  store_.save(earlier_.identity(), std::move(sites), says_whole ? confirm_ : std::nullopt);
  return true;
}

}  // namespace contextune::intercept
