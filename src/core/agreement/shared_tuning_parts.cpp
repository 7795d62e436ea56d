// A rank's reports to the others about its region.
#include <utility>

#include "core/agreement/batch_message.hpp"
#include "core/agreement/shared_tuning.hpp"

namespace contextune {
namespace {

// For an answer that nobody waits for; a rank withdraws long before, at its horizon.
constexpr double unhurried_seconds = 3600;

}  // namespace

BatchReport SharedTuning::report(double now, bool bounded) const {
  BatchReport report;
  report.batch = batch_.number;
  report.batch_hash = batch_hash_;
  report.inputs_hash = settings_.inputs_hash;
  report.options = options_;
  report.bounded = bounded;
  report.elapsed_seconds = now - first_now_;
  report.overran = overran_;
  sites_.report(report);
  for (const Seen& seen : seen_) report.passes.push_back(seen.report);
  return report;
}

void SharedTuning::ask(double now, bool bounded) {
  asked_entry_ = entries_;
  asked_bounded_ = bounded;
  asked_ = true;
  if (pause_said_ == topic_.question) {
    said_ = {};
    say_again_ = false;
    pausing_ = true;
    return;
  }
  // After a refusal the very same is said again: the planner may have taken it in.
  if (!std::exchange(say_again_, false)) said_ = report(now, bounded);
  said_.horizon = entries_ + margin_;
  said_.margin = margin_;
  said_.standings = decisions_.hold(entries_, bounded ? margin_ + 1 : 0);
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
