#include "intercept/replay/visit_ranks.hpp"

#include <utility>

#include "intercept/nccl/collective_calls.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/ranks/process_ranks.hpp"

namespace contextune::intercept {
namespace {

// For so long another thread of the program is kept off the GPU; the next visit goes on then.
constexpr double patience_seconds = 1;

}  // namespace

void VisitRanks::find() {
  if (others_ != nullptr || !collective_calls().has_peers()) return;
  if (auto lockstep = services_.ranks.groups().lockstep_of(region_.name(), options_))
    others_ = std::make_unique<ReplayRanks>(std::move(lockstep));
}

ReplayVerdict VisitRanks::vote(const ReplayVote& vote) {
  ReplayVerdict verdict = others_->vote(vote);
  together_ = verdict.together;
  return verdict;
}

void VisitRanks::await(ReplayRanks::Run run) {
  if (together_) others_->await(run);
}

ReplayRanks::Findings VisitRanks::exchange(bool right, std::uint32_t number) {
  if (!together_) return {right, false, {number}};
  ReplayRanks::Findings all = others_->exchange(right, must_stop_here(), number);
  told_to_stop_ = told_to_stop_ || all.must_stop;
  return all;
}

void VisitRanks::occupied(double seconds, const std::string& why) {
  if (together_) others_->occupied(seconds, why);
}

void VisitRanks::leave(const std::string& why) {
  if (together_) others_->leave(why);
}

bool VisitRanks::must_stop() const {
  return together_ ? told_to_stop_ : must_stop_here();
}

bool VisitRanks::must_stop_here() const {
  if (services_.stopped.load(std::memory_order_acquire)) return true;
  if (services_.gate.signal_waits()) {
    services_.log.fallback(FallbackReason::SignalWaits, region_.name(), {}, {});
    return true;
  }
  if (services_.gate.waited_seconds() < patience_seconds) return false;
  services_.log.fallback(FallbackReason::OtherThread, region_.name(), {},
                         "Another thread of the program waits for the GPU, so the replay ends "
                         "before the tuning does; the next visit goes on.");
  return true;
}

}  // namespace contextune::intercept
