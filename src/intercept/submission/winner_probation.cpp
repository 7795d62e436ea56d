#include "intercept/submission/winner_probation.hpp"

namespace contextune::intercept {
namespace {

/// With the way that an earlier run found: then it is not what takes the process down.
constexpr std::uint64_t launches_to_survive = 4 * LaunchBatch::most_launches;
/// Where fewer of them than that went out in graphs, it stays so.
constexpr std::uint64_t most_launches = 4096;

}  // namespace

void WinnerProbation::see(CUstream stream) {
  if (!is_on_ || survived_ != nullptr) return;
  in_flight_.add(in_use_.submission(), 0, stream);
  ++launches_;
  // Before its graphs are built, gathered launches go out one by one.
  const std::uint64_t gone =
      in_use_.submission().gathered == 0 ? launches_ : in_use_.submitter().totals().graphs.kernels;
  if ((gone < launches_to_survive && launches_ < most_launches) || !events_.are_possible()) return;
  survived_ = events_.record(stream);
  if (survived_ != nullptr) in_use_.submitter().want_other_calls(true);
}

void WinnerProbation::check() {
  if (!events_.are_possible()) return;
  if (survived_ == nullptr) return in_flight_.clear_if_idle();
  const CUresult ended = events_.query(*survived_);
  if (ended == CUDA_ERROR_NOT_READY) return;
  survived_.reset();
  in_use_.submitter().want_other_calls(false);
  if (ended != CUDA_SUCCESS) return;  // so it stays in flight
  is_on_ = false;
  in_flight_.clear();
}

}  // namespace contextune::intercept
