// What a rank says to the others about its region, and what it is told.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/batch_message.hpp"
#include "core/shared_tuning.hpp"
#include "core/statistics.hpp"

namespace contextune {
namespace {

// Beyond presync_timeout: the coordinating rank's own limit is to be heard, not to be met.
constexpr double slack_seconds = 1;
// A rank that has voted gets its verdict from control threads alone, whatever programs do.
constexpr double verdict_seconds = 15;
// The same where a collective is due that the verdict is about, and to guess would have ranks hang
// in NCCL for good. It takes longer only while a process stands still that may know the verdict,
// for which the collective itself would wait; of one that has ended, all hear at once.
constexpr double held_verdict_seconds = 600;
// For an answer that nobody waits for; a rank withdraws long before, at its horizon.
constexpr double unhurried_seconds = 3600;
// Each time the room for an answer doubles.
constexpr int most_refusals = 12;
// Once there are winners: what comes after them may be this rank's alone.
constexpr int most_late_refusals = 4;
constexpr std::uint64_t first_margin = 4;
constexpr std::uint64_t most_margin = 4096;
constexpr std::uint64_t most_pause = 1024;

std::string seconds_text(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g s", seconds);
  return text.data();
}

}  // namespace

SiteIndex SharedTuning::local(SiteIndex shared) const {
  return shared < local_.size() ? local_[shared] : no_site;
}

void SharedTuning::advance(double now, bool bounded) {
  while (!failed_ && !rest_) {
    if (asked_) {
      Agreement agreement;
      if (answer_) {
        agreement = *std::exchange(answer_, std::nullopt);
      } else {
        agreement = coordinator_.poll(topic_);
        if (agreement.verdict == Verdict::Open && bounded && entries_ > said_.horizon) {
          agreement = take_back("the region was entered again before all had spoken");
        }
      }
      if (agreement.verdict == Verdict::Open) return;
      heard(std::move(agreement), bounded);
      continue;
    }
    const bool seen_sites = entries_ > 1 || !sites_.empty();
    if (!seen_sites || !batch_is_through() || finished()) return;
    if (bounded && entries_ < pause_until_) return;
    ask(now, bounded);
  }
}

Agreement SharedTuning::take_back(const char* why) {
  coordinator_.withdraw(topic_, why);
  // Where this rank has voted already the verdict is still on its way.
  Agreement agreement = coordinator_.poll(topic_);
  if (agreement.verdict != Verdict::Open || !holding_) return agreement;
  // A decision that was agreed on must not be missed: the others, inside NCCL, would never return.
  agreement = coordinator_.wait(topic_, held_verdict_seconds);
  if (agreement.verdict == Verdict::Open) agreement.verdict = Verdict::Unknown;
  return agreement;
}

void SharedTuning::await_ranks() {
  if (asked_ && !answer_) answer_ = await_verdict();
  awaiting_ = false;
}

Agreement SharedTuning::await_verdict() {
  const double limit = settings_.presync_timeout + slack_seconds;
  Agreement agreement = coordinator_.wait(topic_, limit);
  if (agreement.verdict == Verdict::Open) {
    const double waited = agreement.waited_seconds;
    // It would have named a rank that has not come.
    coordinator_.withdraw(topic_, "rank 0 did not answer in " + seconds_text(limit));
    agreement = coordinator_.wait(topic_, holding_ ? held_verdict_seconds : verdict_seconds);
    agreement.waited_seconds += waited;
    if (agreement.verdict == Verdict::Open) agreement.verdict = Verdict::Unknown;
  }
  return agreement;
}

void SharedTuning::explain_unfinished() {
  if (failed_ || finished() || refusals_ == 0 || std::exchange(explained_, true)) return;
  observer_.fallback(FallbackReason::NoAgreement, no_site,
                     "By entry " + std::to_string(entries_) + " the ranks had not agreed in " +
                         std::to_string(refusals_) + " attempts, so this one ran what was known " +
                         "before: " + last_refusal_ + ".");
}

BatchReport SharedTuning::report(double now, bool bounded) const {
  BatchReport report;
  report.batch = batch_.number;
  report.batch_hash = batch_hash_;
  report.inputs_hash = settings_.inputs_hash;
  report.options = options_;
  report.bounded = bounded;
  report.elapsed_seconds = now - first_now_;
  report.overran = overran_;
  for (const Site& site : sites_) {
    if (!site.reported) {
      report.new_sites.push_back({site.shared, site.ready, site.unusable,
                                  std::vector(site.wrong.begin(), site.wrong.end())});
    } else if (site.index) {
      if (site.ready && !site.reported_ready)
        report.readied.push_back({*site.index, site.unusable});
      for (const std::uint32_t config : site.wrong)
        if (!site.reported_wrong.contains(config))
          report.rejections.push_back({*site.index, config});
    }
  }
  for (const Seen& seen : seen_) report.passes.push_back(seen.report);
  return report;
}

void SharedTuning::ask(double now, bool bounded) {
  // After a refusal the very same is said again: the planner may have taken it in.
  if (!std::exchange(say_again_, false)) said_ = report(now, bounded);
  said_.horizon = entries_ + margin_;
  said_.margin = margin_;
  asked_entry_ = entries_;
  asked_bounded_ = bounded;
  asked_ = true;
  hold_decisions(bounded);
  coordinator_.say(topic_, settings_.kind, encode(said_),
                   bounded ? unhurried_seconds : settings_.presync_timeout);
}

void SharedTuning::note_said(const BatchReport& report) {
  std::size_t next = 0;
  for (Site& site : sites_) {
    if (!site.reported) {
      if (next == report.new_sites.size()) break;  // it came after that
      const BatchReport::NewSite& said = report.new_sites[next++];
      site.reported = true;
      site.reported_ready = said.ready;
      site.reported_wrong.insert(said.wrong.begin(), said.wrong.end());
    } else if (site.index) {
      for (const auto& one : report.readied)
        site.reported_ready = site.reported_ready || one.site == *site.index;
      for (const auto& one : report.rejections)
        if (one.site == *site.index) site.reported_wrong.insert(one.config);
    }
  }
}

void SharedTuning::heard(Agreement agreement, bool bounded) {
  asked_ = false;
  answer_.reset();
  SyncEvent event;
  event.group = topic_.group;
  event.group_rank = static_cast<std::uint32_t>(
      std::find(topic_.ranks.begin(), topic_.ranks.end(), coordinator_.rank()) -
      topic_.ranks.begin());
  event.question = topic_.question;
  event.verdict = agreement.verdict;
  event.wait_seconds = agreement.waited_seconds;
  event.why = agreement.why;
  const std::uint32_t culprit = agreement.culprit;
  ++topic_.question;
  Batch batch;
  if (agreement.verdict == Verdict::Committed) {
    event.hash = hash_of(agreement.decision);
    if (decode(agreement.decision, batch) && batch.number == batch_.number + 1) {
      observer_.sync(event);
      batch_hash_ = event.hash;
      refusals_ = 0;
      // Less room where the answer came at once, and no more than that.
      if (4 * (entries_ - asked_entry_) < margin_) margin_ = std::max(first_margin, margin_ / 2);
      note_said(said_);
      take(std::move(batch));
      return release_decisions();  // not before: they are told by what was committed just now
    }
    event.why = "what the ranks agreed on cannot be read";
    event.verdict = Verdict::Unknown;
  }
  release_decisions();
  observer_.sync(event);
  const bool may_ask_again = bounded && agreement.verdict == Verdict::Aborted &&
                             coordinator_.lost().empty() &&
                             ++refusals_ <= (batch_.finished ? most_late_refusals : most_refusals);
  if (!may_ask_again) {
    // What this rank took back itself says less than what it has lost.
    const std::string lost = coordinator_.lost();
    const std::string& why = lost.empty() || culprit != coordinator_.rank() ? event.why : lost;
    return batch_.finished ? close(why) : fail(why);
  }
  last_refusal_ = event.why;
  margin_ = std::min(2 * margin_, most_margin);
  say_again_ = true;
}

void SharedTuning::take(Batch&& batch) {
  for (const SharedSite& shared : batch.new_sites) {
    shared_.push_back(shared);
    local_.push_back(no_site);
    for (SiteIndex here = 0; here < sites_.size(); ++here)
      join(here, static_cast<SharedIndex>(shared_.size() - 1));
  }
  for (const TuningEvent& event : batch.events) mirror(event);
  stage_ = batch.passes.empty() ? batch.stage : batch.passes.front().stage;
  seen_.assign(batch.passes.size(), {});
  next_ = 0;
  rest_ = batch.passes.empty();
  // Whatever there is to wait for, asking at every entry does not bring it.
  pause_entries_ =
      batch.passes.empty() ? std::clamp<std::uint64_t>(2 * pause_entries_, 1, most_pause) : 0;
  pause_until_ = entries_ + pause_entries_;
  if (batch.waiting == Waiting::Ranks) batch.waiting = Waiting::Results;
  if (batch.finished) finished_at_ = last_now_;
  overran_ = false;
  batch_ = std::move(batch);
  batch_.events.clear();
  commit_leases();
  for (SiteIndex here = 0; here < sites_.size(); ++here) take_winner(here);
}

void SharedTuning::mirror(const TuningEvent& event) {
  if (const auto* stage = std::get_if<StageEvent>(&event)) {
    // The first one was reported at the first entry.
    if (batch_.number > 0 || stage->stage != Stage::Table) {
      observer_.stage(stage->stage, stage->generation);
    }
  } else if (const auto* confirm = std::get_if<ConfirmEvent>(&event)) {
    observer_.confirm(*confirm);
  } else if (const auto* fallback = std::get_if<FallbackEvent>(&event)) {
    const SiteIndex here = fallback->site == no_site ? no_site : local(fallback->site);
    if (fallback->site == no_site || here != no_site) {
      observer_.fallback(fallback->reason, here, fallback->text);
    }
  } else if (const auto* trial = std::get_if<TrialEvent>(&event)) {
    const SiteIndex here = local(trial->site);
    if (here == no_site || trial->config >= sites_[here].shared.num_configs) return;
    TrialEvent own = *trial;
    own.site = here;
    own.seconds = no_sample;
    own.launches = 0;
    for (std::size_t p = 0; p < seen_.size(); ++p) {
      if (batch_.passes[p].number != trial->pass) continue;
      own.sm_clock_hz = seen_[p].report.sm_clock_hz;
      for (const SiteResult& seen : seen_[p].report.sites) {
        if (seen.site != trial->site || seen.status != SiteResult::Status::Measured) continue;
        own.seconds = seen.seconds;
        own.launches = seen.launches;
      }
    }
    if (own.status == TrialStatus::Measured && std::isnan(own.seconds)) return;
    if (own.status != TrialStatus::Measured) own.seconds = no_sample;
    if (own.status == TrialStatus::Measured && own.iteration >= 0 && !own.throttled) {
      sites_[here].samples[own.config].push_back(own.seconds);
    }
    observer_.trial(own);
  } else if (const auto* winner = std::get_if<WinnerEvent>(&event)) {
    const SiteIndex here = local(winner->site);
    if (here == no_site) return;
    const auto own_cost = [&](std::uint32_t config, double agreed) {
      const auto samples = sites_[here].samples.find(config);
      return samples == sites_[here].samples.end() ? agreed
                                                   : cost_of(samples->second, options_.selection);
    };
    WinnerEvent own = *winner;
    own.site = here;
    own.seconds = own_cost(winner->config, winner->seconds);
    own.default_seconds = own_cost(0, winner->default_seconds);
    observer_.winner(own);
  }
}

void SharedTuning::close(const std::string& why) {
  closed_ = true;
  observer_.fallback(
      FallbackReason::NoAgreement, no_site,
      "The winners stay, and sites that came after them keep their default: " + why + ".");
}

void SharedTuning::fail(const std::string& why) {
  failed_ = true;
  finished_at_ = last_now_;
  stage_ = Stage::Finished;
  for (std::size_t here = 0; here < sites_.size(); ++here)
    winners_[here] = sites_[here].shared.collective ? sites_[here].leased
                                                    : sites_[here].shared.pinned.value_or(0);
  batch_.passes.clear();
  seen_.clear();
  next_ = 0;
  observer_.fallback(
      FallbackReason::NoAgreement, no_site,
      "All sites run their default: " + (why.empty() ? "the ranks could not agree" : why) + ".");
  observer_.stage(Stage::Finished, 0);
}

}  // namespace contextune
