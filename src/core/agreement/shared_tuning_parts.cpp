// A rank's reports to the others about its region.
#include <utility>

#include "core/agreement/batch_message.hpp"
#include "core/agreement/shared_tuning.hpp"

namespace contextune {
namespace {

// For an answer that nobody waits for; a rank withdraws long before, at its horizon.
constexpr double unhurried_seconds = 3600;

}  // namespace

BatchReport SharedTuning::report(bool bounded) const {
  BatchReport report;
  report.inputs_hash = settings_.inputs_hash;
  report.options = options_;
  report.bounded = bounded;
  report.elapsed_seconds = clock_.elapsed();
  sites_.report(report);
  run_.report(report);
  return report;
}

void SharedTuning::ask(bool bounded) {
  backoff_.ask(entries_);
  asked_bounded_ = bounded;
  asked_ = true;
  if (pause_said_ == topic_.question) {
    said_ = {};
    say_again_ = false;
    pausing_ = true;
    return;
  }
  // After a refusal the very same is said again: the planner may have taken it in.
  if (!std::exchange(say_again_, false)) said_ = report(bounded);
  said_.horizon = entries_ + backoff_.margin();
  said_.margin = backoff_.margin();
  said_.standings = decisions_.hold(entries_, bounded ? backoff_.margin() + 1 : 0);
  coordinator_.say(topic_, settings_.kind, encode(said_),
                   bounded ? unhurried_seconds : settings_.presync_timeout);
}

void SharedTuning::occupied(double seconds, const std::string& why) {
  if (!asked_ && !failed_) coordinator_.occupied(topic_, seconds, why);
}

void SharedTuning::pause() {
  engagement_.end();
  if (failed_ || finished()) return;
  Topic topic = topic_;
  // An open question is answered all the same; this rank pauses from the next one on.
  if (asked_) ++topic.question;
  if (std::exchange(pause_said_, topic.question) == topic.question) return;
  BatchReport notice;
  notice.pausing = true;
  notice.inputs_hash = settings_.inputs_hash;
  notice.options = options_;
  coordinator_.say(topic, settings_.kind, encode(notice), unhurried_seconds);
}

void SharedTuning::leave(const std::string& why) {
  engagement_.end();
  if (failed_ || left_ || (!asked_ && finished())) return;
  left_ = true;
  BatchReport notice;
  notice.leaving = why;
  notice.inputs_hash = settings_.inputs_hash;
  notice.options = options_;
  Topic topic = topic_;
  if (asked_) {
    // Where this rank has voted already, what was agreed on holds for it as well; see settle().
    coordinator_.withdraw(topic, why);
    ++topic.question;
  }
  coordinator_.say(topic, settings_.kind, encode(notice), unhurried_seconds);
}

}  // namespace contextune
