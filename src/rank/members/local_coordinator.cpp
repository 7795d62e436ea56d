#include "rank/members/local_coordinator.hpp"

#include <span>
#include <utility>

namespace contextune::rank {

void LocalCoordinator::say(const Topic& topic, std::uint32_t kind, Payload part, double) noexcept {
  try {
    {
      const std::lock_guard lock(mutex_);
      if (settled_.contains(topic)) return;
    }
    Agreement agreement;
    agreement.why = fault_of(topic, num_ranks());
    if (agreement.why.empty())
      agreement.decision = decide(deciders_, kind, topic, std::span(&part, 1), agreement.why);
    agreement.verdict = agreement.decision.empty() ? Verdict::Aborted : Verdict::Committed;
    if (agreement.verdict == Verdict::Committed) agreement.why.clear();
    const std::lock_guard lock(mutex_);
    settled_.try_emplace(topic, std::move(agreement));
  } catch (...) {
    // Out of memory: the topic stays open, and nothing is acted on.
    return;
  }
}

Agreement LocalCoordinator::poll(const Topic& topic) noexcept {
  const std::lock_guard lock(mutex_);
  auto found = settled_.extract(topic);
  return found.empty() ? Agreement{} : std::move(found.mapped());
}

Agreement LocalCoordinator::wait(const Topic& topic, double) noexcept {
  return poll(topic);
}

void LocalCoordinator::withdraw(const Topic& topic, std::string why) noexcept {
  try {
    Agreement agreement;
    agreement.verdict = Verdict::Aborted;
    agreement.why = why.empty() ? "no reason was given" : std::move(why);
    agreement.culprit = 0;
    const std::lock_guard lock(mutex_);
    settled_.try_emplace(topic, std::move(agreement));
  } catch (...) {
    return;
  }
}

}  // namespace contextune::rank
