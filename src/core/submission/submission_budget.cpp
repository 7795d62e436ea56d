#include "core/submission/submission_budget.hpp"

#include <algorithm>
#include <cassert>

namespace contextune {

void SubmissionBudget::spend(double seconds) {
  if (seconds > 0) spent_ += seconds;
}

void SubmissionBudget::elapsed(double seconds) {
  elapsed_ = std::max(elapsed_, seconds);
}

void SubmissionBudget::expose(const Submission& submission, double seconds) {
  const auto at = std::find_if(exposures_.begin(), exposures_.end(), [&](const Exposure& exposure) {
    return exposure.submission == submission;
  });
  Exposure& exposure =
      at != exposures_.end() ? *at : exposures_.emplace_back(Exposure{submission, 0});
  exposure.seconds += seconds;
}

void SubmissionBudget::hold(double seconds) {
  assert(seconds >= 0);
  held_ += seconds;
}

void SubmissionBudget::release(double seconds) {
  held_ = std::max(0.0, held_ - seconds);
}

double SubmissionBudget::spent() const {
  double sum = spent_;
  for (const Exposure& exposure : exposures_) sum += std::max(0.0, exposure.seconds);
  return sum;
}

bool SubmissionBudget::covers(const Submission& submission, double seconds) const {
  if (spent() + held_ + seconds <= allowance()) return true;
  return seconds == 0 &&
         std::none_of(exposures_.begin(), exposures_.end(), [&](const Exposure& exposure) {
           return exposure.submission == submission && exposure.seconds > 0;
         });
}

}  // namespace contextune
