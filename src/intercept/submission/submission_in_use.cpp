#include "intercept/submission/submission_in_use.hpp"

#include <utility>

namespace contextune::intercept {

void SubmissionInUse::use(const Submission& submission, bool stays) noexcept {
  submission_ = submission;
  submitter_.use(submission);
  using Use = ChainedGraphs::Use;
  graphs_.use(submission.chained ? Use::Now
              : stays            ? Use::Never
                                 : Use::Perhaps,
              submission.ordinary);
}

void SubmissionInUse::leave_losers(const std::vector<std::uint64_t>& kernels) {
  if (!submission_.chained) loads_.leave_all(submission_.gathered != 0);
  if (kernels.size() <= 1) return;
  std::vector<std::uint64_t> left;
  for (std::size_t i = 0; i < kernels.size(); ++i)
    if ((submission_.ordinary >> i & 1U) != 0) left.push_back(kernels[i]);
  loads_.leave(std::move(left));
}

std::uint64_t SubmissionInUse::disturbed() const noexcept {
  return submitter_.totals().single + graphs_.totals().disturbed;
}

double SubmissionInUse::seconds_taken() const noexcept {
  return loads_.totals().seconds + graphs_.totals().seconds +
         submitter_.totals().graphs.build_seconds;
}

}  // namespace contextune::intercept
