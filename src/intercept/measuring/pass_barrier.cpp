#include "intercept/measuring/pass_barrier.hpp"

#include <algorithm>
#include <utility>

namespace contextune::intercept {
namespace {

// As StartLine tells them.
constexpr std::uint8_t ready = 0;
constexpr std::uint8_t overran = 1;
// Whoever is late for its own limit still comes to say so.
constexpr double slack_seconds = 1;

}  // namespace

PassBarrier::PassBarrier(std::unique_ptr<Lockstep> lockstep, double patience)
    : lockstep_(std::move(lockstep)), line_(*lockstep_), patience_(patience + slack_seconds) {}

PassBarrier::Outcome PassBarrier::arrive(const std::function<bool()>& is_ready) {
  lockstep_->occupied(patience_, "runs a trial");
  const bool in_time = is_ready();
  const auto all = line_.await(in_time ? ready : overran);
  if (!all) return Outcome::Lost;
  if (!in_time) return Outcome::Overran;
  const bool all_are = std::count(all->begin(), all->end(), ready) == std::ssize(*all);
  if (!all_are) return Outcome::CutShort;
  // The pass itself: a rank that waits at the next one must not give this one up meanwhile.
  lockstep_->occupied(patience_, "runs a trial");
  return Outcome::Begins;
}

}  // namespace contextune::intercept
