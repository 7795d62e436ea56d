// A rank's reports to the others about its region.
#include <utility>

#include "core/agreement/shared_tuning.hpp"

namespace contextune {

BatchReport SharedTuning::report(bool bounded) const {
  BatchReport report = notice();
  report.bounded = bounded;
  report.elapsed_seconds = clock_.elapsed();
  sites_.report(report);
  run_.report(report);
  return report;
}

BatchReport SharedTuning::notice() const {
  BatchReport notice;
  notice.inputs_hash = settings_.inputs_hash;
  notice.options = options_;
  return notice;
}

void SharedTuning::ask(bool bounded) {
  backoff_.ask(entries_);
  if (!question_.open(bounded)) return;
  BatchReport part = question_.is_repeated() ? question_.said() : report(bounded);
  part.horizon = entries_ + backoff_.margin();
  part.margin = backoff_.margin();
  part.standings = decisions_.hold(entries_, bounded ? backoff_.margin() + 1 : 0);
  question_.say(std::move(part));
}

void SharedTuning::occupied(double seconds, const std::string& why) {
  if (!has_failed()) question_.occupied(seconds, why);
}

void SharedTuning::pause() {
  engagement_.end();
  if (has_failed() || finished()) return;
  BatchReport said = notice();
  said.pausing = true;
  question_.pause(said);
}

void SharedTuning::leave(const std::string& why) {
  engagement_.end();
  if (has_failed() || (!question_.is_open() && finished())) return;
  BatchReport said = notice();
  said.leaving = why;
  question_.leave(said);
}

}  // namespace contextune
