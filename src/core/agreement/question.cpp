#include "core/agreement/question.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "core/agreement/batch_message.hpp"

namespace contextune {
namespace {

// For an answer that nobody waits for; a rank withdraws long before, at its horizon.
constexpr double unhurried_seconds = 3600;
// The limit for a verdict about a collective that is due, where a guess would have ranks hang in
// NCCL for good. The verdict takes longer only while a process that may know it stands still;
// the collective itself would wait for that process. All ranks hear at once of one that has
// ended.
constexpr double held_verdict_seconds = 600;
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

Question::Question(Coordinator& coordinator, Topic topic, std::uint32_t kind,
                   double patience_seconds)
    : coordinator_(coordinator),
      kind_(kind),
      patience_seconds_(patience_seconds),
      topic_(std::move(topic)) {}

void Question::narrow(std::uint64_t group, const std::vector<std::uint32_t>& ranks) {
  topic_.group = group;
  topic_.ranks = ranks;
}

bool Question::open(bool bounded) {
  bounded_ = bounded;
  open_ = true;
  if (pause_said_ != topic_.question) return true;
  said_ = {};
  is_repeated_ = false;
  pausing_ = true;
  return false;
}

void Question::say(BatchReport part) {
  is_repeated_ = false;
  said_ = std::move(part);
  coordinator_.say(topic_, kind_, encode(said_), bounded_ ? unhurried_seconds : patience_seconds_);
}

void Question::occupied(double seconds, const std::string& why) {
  if (!open_) coordinator_.occupied(topic_, seconds, why);
}

void Question::pause(const BatchReport& notice) {
  Topic topic = topic_;
  // An open question is answered all the same; this rank pauses from the next one on.
  if (open_) ++topic.question;
  if (std::exchange(pause_said_, topic.question) == topic.question) return;
  coordinator_.say(topic, kind_, encode(notice), unhurried_seconds);
}

void Question::leave(const BatchReport& notice) {
  if (std::exchange(left_, true)) return;
  Topic topic = topic_;
  if (open_) {
    // Where this rank has voted already, what was agreed on holds for it as well; see settle().
    coordinator_.withdraw(topic, notice.leaving);
    ++topic.question;
  }
  coordinator_.say(topic, kind_, encode(notice), unhurried_seconds);
}

void Question::await(const std::function<bool()>& interrupted, bool is_holding) {
  if (open_ && !answer_) {
    Agreement agreement = await_verdict(interrupted, is_holding);
    if (agreement.verdict != Verdict::Open) answer_ = std::move(agreement);
  }
  awaiting_ = false;
}

Agreement Question::await_verdict(const std::function<bool()>& interrupted, bool is_holding) {
  const double limit = patience_seconds_;
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
    const double verdict_limit = is_holding ? held_verdict_seconds : verdict_seconds;
    agreement = coordinator_.wait(topic_, verdict_limit);
    agreement.waited_seconds += waited;
    if (agreement.verdict == Verdict::Open) leave_unknown(agreement, verdict_limit);
  }
  return agreement;
}

void Question::leave_unknown(Agreement& agreement, double seconds) {
  agreement.verdict = Verdict::Unknown;
  agreement.why = "neither rank 0 nor another has said in " + seconds_text(seconds) +
                  " what was decided after this rank had voted";
}

bool Question::has_answer(bool is_overtaken) {
  if (answer_) return true;
  Agreement agreement = coordinator_.poll(topic_);
  if (agreement.verdict == Verdict::Open && is_overtaken) {
    coordinator_.withdraw(topic_, entered_again);
    // Where this rank has voted already the verdict is still on its way. If decisions wait for it,
    // settle() has.
    agreement = coordinator_.poll(topic_);
  }
  if (agreement.verdict == Verdict::Open) return false;
  answer_ = std::move(agreement);
  return true;
}

bool Question::settle(const char* why, double now) {
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
  return true;
}

Agreement Question::take_answer() {
  Agreement agreement = std::move(*answer_);
  answer_.reset();
  open_ = pausing_ = false;
  settling_since_ = std::numeric_limits<double>::quiet_NaN();
  ++topic_.question;
  return agreement;
}

}  // namespace contextune
