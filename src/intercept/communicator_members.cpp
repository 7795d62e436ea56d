#include "intercept/communicator_members.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/domain_planner.hpp"
#include "core/stable_hash.hpp"
#include "intercept/clock.hpp"
#include "intercept/process_ranks.hpp"

namespace contextune::intercept {
namespace {

// In which rank 0 answers once it is there. Of a short time, a quarter.
constexpr double answer_seconds = 0.25;
constexpr std::chrono::microseconds least_pause{100};
constexpr std::chrono::microseconds most_pause{10'000};

/// Of what one rank asks about a communicator: the others ask questions of their own.
std::uint64_t group_of_question(std::uint64_t id, std::uint32_t rank) {
  StableHash hash;
  hash.add("member");
  hash.add(id);
  hash.add(rank);
  return hash.value();
}

/// In place of a region, for DomainPlanner.
std::uint64_t number_of(std::uint64_t id) {
  StableHash hash;
  hash.add("members");
  hash.add(id);
  return hash.value();
}

Topic topic_of(const Coordinator& coordinator, std::uint64_t id) {
  Topic topic;
  topic.group = group_of_question(id, coordinator.rank());
  topic.ranks = {coordinator.rank()};
  return topic;
}

DomainReport report_of(const Coordinator& coordinator, std::uint64_t id, std::uint32_t ranks) {
  DomainReport report;
  report.region = number_of(id);
  report.num_ranks = coordinator.num_ranks();
  report.used.push_back({id, ranks, 1});
  return report;
}

/// Asks rank 0 once. Empty ranks without a clause: it does not know them all yet.
CommunicatorMembers::Members ask(Coordinator& coordinator, const Topic& topic,
                                 const DomainReport& report, double seconds) {
  CommunicatorMembers::Members found;
  coordinator.say(topic, ProcessRanks::domain_kind, encode(report), seconds);
  Agreement answer = coordinator.wait(topic, seconds);
  if (answer.verdict == Verdict::Open) {
    coordinator.withdraw(topic, "rank 0 did not answer");
    answer = coordinator.wait(topic, std::min(seconds, answer_seconds));
  }
  auto ranks = answer.verdict == Verdict::Committed ? decode_domain(answer.decision) : std::nullopt;
  if (ranks) {
    found.ranks = *std::move(ranks);
  } else {
    found.why = answer.why.empty() ? "rank 0 did not answer" : std::move(answer.why);
  }
  return found;
}

}  // namespace

CommunicatorMembers::Known& CommunicatorMembers::known(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  return known_[id];
}

void CommunicatorMembers::announce(Coordinator& coordinator, std::uint64_t id,
                                   std::uint32_t ranks) {
  Known& one = known(id);
  // A thread of this process that asks says the same.
  const std::unique_lock lock(one.mutex, std::try_to_lock);
  if (!lock.owns_lock() || one.question != 0) return;
  Topic topic = topic_of(coordinator, id);
  topic.question = one.question++;
  coordinator.say(topic, ProcessRanks::domain_kind, encode(report_of(coordinator, id, ranks)),
                  answer_seconds);
}

CommunicatorMembers::Members CommunicatorMembers::find(Coordinator& coordinator, std::uint64_t id,
                                                       std::uint32_t ranks, double seconds) {
  Known& one = known(id);
  const std::lock_guard lock(one.mutex);
  if (!one.members) one.members = ask_until(coordinator, id, ranks, seconds, one.question);
  return *one.members;
}

CommunicatorMembers::Members CommunicatorMembers::ask_until(Coordinator& coordinator,
                                                            std::uint64_t id, std::uint32_t ranks,
                                                            double seconds,
                                                            std::uint64_t& question) {
  Topic topic = topic_of(coordinator, id);
  DomainReport report = report_of(coordinator, id, ranks);
  const double deadline = now_seconds() + seconds;
  const double last_answer = std::min(seconds / 4, answer_seconds);
  auto pause = least_pause;
  Members found;
  for (;;) {
    topic.question = question++;
    // Whoever asks later is to hear at once that this rank does not wait any more.
    const double left = deadline - now_seconds();
    report.leaves = left <= last_answer;
    found = ask(coordinator, topic, report, std::max(left, last_answer));
    if (!found.ranks.empty() || !found.why.empty() || report.leaves) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, most_pause);
  }
  if (found.why.empty() && found.ranks.size() != ranks) {
    found.ranks.clear();
    found.why =
        "not all of the " + std::to_string(ranks) + " ranks of its communicator came to it in time";
  }
  return found;
}

}  // namespace contextune::intercept
