// The answers to a rank about its region, and how it waits for them.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "core/agreement/batch_message.hpp"
#include "core/agreement/shared_tuning.hpp"
#include "core/search/statistics.hpp"

namespace contextune {
namespace {

// Beyond what was granted: the coordinating rank's own limit is to be heard, not to be met. Within
// presync_timeout it answers in time.
constexpr double slack_seconds = 2;
// How often somebody who waits looks whether to go on with something else.
constexpr double interruption_seconds = 0.02;
// A rank that has voted gets its verdict from control threads alone, whatever programs do.
constexpr double verdict_seconds = 15;

std::string seconds_text(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g s", seconds);
  return text.data();
}

}  // namespace

void SharedTuning::advance(bool bounded) {
  while (!failed_ && !rest_) {
    if (asked_) {
      Agreement agreement;
      if (answer_) {
        agreement = *std::exchange(answer_, std::nullopt);
      } else {
        agreement = coordinator_.poll(topic_);
        if (agreement.verdict == Verdict::Open && bounded && entries_ > said_.horizon) {
          agreement = take_back();
        }
      }
      if (agreement.verdict == Verdict::Open) return;
      heard(std::move(agreement), bounded);
      continue;
    }
    const bool seen_sites = observed_ || sites_.size() > 0 || (bounded && entries_ > 1);
    const bool meets = !bounded && run_.batch().number == 0;
    if ((!seen_sites && !meets) || !run_.is_through() || finished()) return;
    if (bounded && !backoff_.may_ask(entries_)) return;
    ask(bounded);
  }
}

Agreement SharedTuning::take_back() {
  coordinator_.withdraw(topic_, entered_again);
  // Where this rank has voted already the verdict is still on its way. If decisions wait for it,
  // settle() has.
  return coordinator_.poll(topic_);
}

void SharedTuning::await(const std::function<bool()>& interrupted) {
  if (asked_ && !answer_) {
    Agreement agreement = await_verdict(interrupted);
    if (agreement.verdict != Verdict::Open) answer_ = std::move(agreement);
  }
  awaiting_ = false;
}

Agreement SharedTuning::await_verdict(const std::function<bool()>& interrupted) {
  const double limit = settings_.presync_timeout;
  Agreement agreement;
  for (double left = limit; left > 0 && agreement.verdict == Verdict::Open;) {
    const double slice = interrupted ? std::min(left, interruption_seconds) : left;
    agreement = coordinator_.wait(topic_, slice);
    left -= slice;
    if (agreement.granted_seconds > 0)
      left = std::max(left, agreement.granted_seconds + slack_seconds);
    if (agreement.verdict == Verdict::Open && interrupted && interrupted()) return agreement;
  }
  if (agreement.verdict == Verdict::Open) {
    const double waited = agreement.waited_seconds;
    // It would have named a rank that has not come.
    coordinator_.withdraw(topic_, "rank 0 did not answer in " + seconds_text(limit));
    const double verdict_limit = decisions_.is_holding() ? held_verdict_seconds : verdict_seconds;
    agreement = coordinator_.wait(topic_, verdict_limit);
    agreement.waited_seconds += waited;
    if (agreement.verdict == Verdict::Open) leave_unknown(agreement, verdict_limit);
  }
  return agreement;
}

void SharedTuning::leave_unknown(Agreement& agreement, double seconds) {
  agreement.verdict = Verdict::Unknown;
  agreement.why = "neither rank 0 nor another has said in " + seconds_text(seconds) +
                  " what was decided after this rank had voted";
}

bool SharedTuning::settle(Due due, double now) {
  if (due == Due::Entry) {
    if (!asked_ || !decisions_.is_holding() || !asked_bounded_ || entries_ < said_.horizon)
      return true;
    return settle_because(entered_again, now);
  }
  clock_.reach_at_least(now);
  if (asked_ && decisions_.is_holding())
    return settle_because("a collective was due before all had spoken", now);
  decisions_.release();
  return true;
}

bool SharedTuning::settle_because(const char* why, double now) {
  if (awaiting_) {
    coordinator_.withdraw(topic_, why);
    return false;
  }
  if (!answer_) {
    if (std::isnan(settling_since_)) {
      settling_since_ = now;
      coordinator_.withdraw(topic_, why);
    }
    Agreement agreement = coordinator_.poll(topic_);
    if (agreement.verdict == Verdict::Open) {
      // This rank has voted. A decision that was agreed on must not be missed: the others, inside
      // NCCL, would never return.
      if (now - settling_since_ < held_verdict_seconds) return false;
      leave_unknown(agreement, held_verdict_seconds);
    }
    agreement.waited_seconds += now - settling_since_;
    answer_ = std::move(agreement);
  }
  heard(*answer_, asked_bounded_);
  return true;
}

void SharedTuning::explain_unfinished() {
  if (failed_ || finished() || backoff_.refusals() == 0 || std::exchange(explained_, true)) return;
  observer_.fallback(FallbackReason::NoAgreement, no_site,
                     "The ranks had not agreed by entry " + std::to_string(entries_) + ", in " +
                         std::to_string(backoff_.refusals()) +
                         " attempts, so this rank ran what was known " +
                         "before: " + backoff_.last_refusal() + ".");
}

void SharedTuning::heard(Agreement agreement, bool bounded) {
  Batch batch;
  bool is_read = false;
  if (agreement.verdict == Verdict::Committed) {
    // The others have it: where there is no memory to take it in, it is still there to be asked
    // for.
    answer_ = std::move(agreement);
    is_read = decode(answer_->decision, batch) &&
              (batch.number == run_.batch().number + 1 || !batch.refused.empty());
    if (is_read) decisions_.commit(batch);
    agreement = std::move(*answer_);
  }
  answer_.reset();
  asked_ = false;
  decisions_.end_commit();
  settling_since_ = std::numeric_limits<double>::quiet_NaN();
  SyncEvent event;
  event.group = topic_.group;
  event.group_rank = static_cast<std::uint32_t>(
      std::find(topic_.ranks.begin(), topic_.ranks.end(), coordinator_.rank()) -
      topic_.ranks.begin());
  event.question = topic_.question;
  event.verdict = agreement.verdict;
  event.wait_seconds = agreement.waited_seconds;
  event.others_seconds = std::min(agreement.others_seconds, agreement.waited_seconds);
  event.why = agreement.why;
  const std::uint32_t culprit = agreement.culprit;
  ++topic_.question;
  const bool paused_here = std::exchange(pausing_, false);
  if (agreement.verdict == Verdict::Committed) {
    event.hash = hash_of(agreement.decision);
    if (is_read) {
      observer_.sync(event);
      if (!batch.refused.empty()) {
        decisions_.release();
        return run_.batch().finished ? close(batch.refused) : fail(batch.refused);
      }
      backoff_.agree(entries_);
      sites_.note_reported(said_);
      take(std::move(batch), event.hash);
      // The pause that others were told to wait for is past.
      if (paused_here) rest_ = false;
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
  say_again_ = true;
}

bool SharedTuning::has_patience(const std::string& why) {
  return backoff_.refuse(why.find(entered_again) != std::string::npos, run_.batch().finished,
                         clock_.now());
}

void SharedTuning::take(Batch&& batch, std::uint64_t hash) {
  for (const SharedSite& shared : batch.new_sites) sites_.take_up(shared);
  for (const TuningEvent& event : batch.events) mirror(event);
  stage_ = batch.passes.empty() ? batch.stage : batch.passes.front().stage;
  rest_ = batch.passes.empty();
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
  if (failed_) return;
  leave(why);
  fail(why);
}

void SharedTuning::close(const std::string& why) {
  closed_ = true;
  engagement_.end();
  observer_.fallback(FallbackReason::NoAgreement, no_site,
                     "The winners stay, and what came after them keeps its default: " + why + ".");
}

void SharedTuning::fail(const std::string& why) {
  failed_ = true;
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
