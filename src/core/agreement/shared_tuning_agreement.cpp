// The answers to a rank about its region, and how it waits for them.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/agreement/batch_message.hpp"
#include "core/agreement/shared_tuning.hpp"
#include "core/trials/statistics.hpp"

namespace contextune {

void SharedTuning::advance(bool bounded) {
  while (!has_failed() && !backoff_.rests()) {
    if (question_.is_open()) {
      if (!question_.has_answer(bounded && entries_ > question_.said().horizon)) return;
      heard(bounded);
      continue;
    }
    const bool seen_sites = observed_ || sites_.size() > 0 || (bounded && entries_ > 1);
    const bool meets = !bounded && run_.batch().number == 0;
    if ((!seen_sites && !meets) || !run_.is_through() || finished()) return;
    if (bounded && !backoff_.may_ask(entries_)) return;
    ask(bounded);
  }
}

void SharedTuning::await(const std::function<bool()>& interrupted) {
  question_.await(interrupted, decisions_.is_holding());
}

bool SharedTuning::settle(Due due, double now) {
  const bool is_held = question_.is_open() && decisions_.is_holding();
  const char* why = Question::entered_again;
  if (due == Due::Entry) {
    if (!is_held || !question_.is_bounded() || entries_ < question_.said().horizon) return true;
  } else {
    clock_.reach_at_least(now);
    if (!is_held) {
      decisions_.release();
      return true;
    }
    why = "a collective was due before all had spoken";
  }
  if (!question_.settle(why, now)) return false;
  heard(question_.is_bounded());
  return true;
}

void SharedTuning::explain_unfinished() {
  if (has_failed() || finished()) return;
  const std::string why = backoff_.explain();
  if (why.empty()) return;
  observer_.fallback(
      FallbackReason::NoAgreement, no_site,
      "The ranks had not agreed by entry " + std::to_string(entries_) + ", " + why + ".");
}

void SharedTuning::heard(bool bounded) {
  Batch batch;
  bool is_read = false;
  // The others have it: until it is taken in here, it stays the answer.
  if (question_.answer().verdict == Verdict::Committed) {
    is_read = decode(question_.answer().decision, batch) &&
              (batch.number == run_.batch().number + 1 || !batch.refused.empty());
    if (is_read) decisions_.commit(batch);
  }
  const std::uint64_t number = question_.topic().question;
  const bool paused_here = question_.is_pausing();
  const Agreement agreement = question_.take_answer();
  decisions_.end_commit();
  const Topic& topic = question_.topic();
  SyncEvent event;
  event.group = topic.group;
  event.group_rank = static_cast<std::uint32_t>(std::distance(
      topic.ranks.begin(), std::find(topic.ranks.begin(), topic.ranks.end(), coordinator_.rank())));
  event.question = number;
  event.verdict = agreement.verdict;
  event.wait_seconds = agreement.waited_seconds;
  event.others_seconds = std::min(agreement.others_seconds, agreement.waited_seconds);
  event.why = agreement.why;
  const std::uint32_t culprit = agreement.culprit;
  if (agreement.verdict == Verdict::Committed) {
    event.hash = hash_of(agreement.decision);
    if (is_read) {
      observer_.sync(event);
      if (!batch.refused.empty()) {
        decisions_.release();
        return run_.batch().finished ? close(batch.refused) : fail(batch.refused);
      }
      backoff_.agree(entries_);
      sites_.note_reported(question_.said());
      take(std::move(batch), event.hash);
      // The pause that others were told to wait for is past.
      if (paused_here) backoff_.wake();
      if (!bounded && !run_.batch().passes.empty()) {
        occupied(options_.trial_timeout, "runs trials");
        engagement_.begin(coordinator_, settings_.ranks, "tunes a region with other ranks");
      } else {
        engagement_.end();
      }
      return decisions_.release();
    }
    event.why = "the ranks' agreement cannot be read";
    event.verdict = Verdict::Unknown;
  }
  decisions_.release();
  observer_.sync(event);
  if (run_.batch().finished) decisions_.note_untold();
  const bool may_ask_again = bounded && agreement.verdict == Verdict::Aborted &&
                             coordinator_.lost().empty() && has_patience(event.why);
  if (!may_ask_again) {
    // This rank's own withdrawal says less than what the rank has lost.
    const std::string lost = coordinator_.lost();
    const std::string& why = lost.empty() || culprit != coordinator_.rank() ? event.why : lost;
    return run_.batch().finished ? close(why) : fail(why);
  }
  backoff_.back_off(event.why);
  question_.repeat();
}

bool SharedTuning::has_patience(const std::string& why) {
  return backoff_.refuse(why.find(Question::entered_again) != std::string::npos,
                         run_.batch().finished, clock_.now());
}

void SharedTuning::take(Batch&& batch, std::uint64_t hash) {
  for (const SharedSite& shared : batch.new_sites) sites_.take_up(shared);
  for (const TuningEvent& event : batch.events) mirror(event);
  stage_ = batch.passes.empty() ? batch.stage : batch.passes.front().stage;
  backoff_.pace(!batch.passes.empty(), entries_);
  if (batch.waiting == Waiting::Ranks) batch.waiting = Waiting::Results;
  if (batch.paused) batch.waiting = Waiting::Pause;
  if (batch.finished && !run_.batch().finished) clock_.end();
  run_.start(std::move(batch), hash);
  if (run_.batch().finished) decisions_.note_untold();
  for (SiteIndex here = 0; here < sites_.size(); ++here) take_winner(here);
}

void SharedTuning::mirror(const TuningEvent& event) {
  if (const auto* stage = std::get_if<StageEvent>(&event)) {
    // The first one was reported at the first entry.
    if (run_.batch().number > 0 || stage->stage != Stage::Table) {
      observer_.stage(stage->stage, stage->generation);
    }
  } else if (const auto* confirm = std::get_if<ConfirmEvent>(&event)) {
    observer_.confirm(*confirm);
  } else if (const auto* left_out = std::get_if<LeftOutEvent>(&event)) {
    const SiteIndex here = sites_.local(left_out->site);
    if (here == no_site) return;
    LeftOutEvent own = *left_out;
    own.site = here;
    observer_.left_out(own);
  } else if (const auto* fallback = std::get_if<FallbackEvent>(&event)) {
    const SiteIndex here = fallback->site == no_site ? no_site : sites_.local(fallback->site);
    if (fallback->site == no_site || here != no_site) {
      observer_.fallback(fallback->reason, here, fallback->text);
    }
  } else if (const auto* trial = std::get_if<TrialEvent>(&event)) {
    const SiteIndex here = sites_.local(trial->site);
    if (here == no_site || trial->config >= sites_[here].shared.num_configs) return;
    TrialEvent own = *trial;
    own.site = here;
    own.agreed = settings_.ranks.size() > 1;
    own.seconds = no_sample;
    own.launches = 0;
    if (const PassReport* const pass = run_.report_of(trial->pass)) {
      own.sm_clock_hz = pass->sm_clock_hz;
      for (const SiteResult& seen : pass->sites) {
        if (seen.site != trial->site || seen.status != SiteResult::Status::Measured) continue;
        own.seconds = seen.seconds;
        own.launches = seen.launches;
      }
    }
    if (own.status == TrialStatus::Measured && std::isnan(own.seconds)) return;
    if (own.status != TrialStatus::Measured) own.seconds = no_sample;
    if (own.status == TrialStatus::Measured && own.iteration >= 0 && !own.throttled) {
      sites_.add_sample(here, own.config, own.seconds);
    }
    observer_.trial(own);
  } else if (const auto* winner = std::get_if<WinnerEvent>(&event)) {
    const SiteIndex here = sites_.local(winner->site);
    if (here == no_site) return;
    WinnerEvent own = *winner;
    own.site = here;
    own.seconds = sites_.cost(here, winner->config, winner->seconds);
    own.default_seconds = sites_.cost(here, 0, winner->default_seconds);
    observer_.winner(own);
  }
}

void SharedTuning::give_up(const std::string& why) {
  if (has_failed()) return;
  leave(why);
  fail(why);
}

void SharedTuning::close(const std::string& why) {
  if (!has_failed()) accord_ = Accord::Closed;
  engagement_.end();
  observer_.fallback(FallbackReason::NoAgreement, no_site,
                     "The winners stay, and what came after them keeps its default: " + why + ".");
}

void SharedTuning::fail(const std::string& why) {
  accord_ = Accord::Failed;
  engagement_.end();
  clock_.end();
  stage_ = Stage::Finished;
  sites_.drop_winners();
  run_.drop_passes();
  const std::string outcome =
      settings_.outcome ? settings_.outcome() : "All sites run their default";
  observer_.fallback(FallbackReason::NoAgreement, no_site,
                     outcome + ": " + (why.empty() ? "the ranks could not agree" : why) + ".");
  observer_.stage(Stage::Finished, 0);
}

}  // namespace contextune
