#include "intercept/ranks/communicator_members.hpp"

#include <utility>

#include "core/agreement/domain_planner.hpp"
#include "core/value/stable_hash.hpp"
#include "intercept/ranks/domain_question.hpp"
#include "intercept/ranks/question_kind.hpp"

namespace contextune::intercept {
namespace {

/// The group of the question that one rank asks about a communicator: the others ask questions of
/// their own.
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
  coordinator.say(topic, question_kind::domain, encode(report_of(coordinator, id, ranks)),
                  domain_answer_seconds);
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
  report.attends = true;
  topic.question = question;
  Domain domain = ask_for_domain(coordinator, topic, std::move(report), seconds);
  question = topic.question;
  Members found{std::move(domain.ranks), std::move(domain.why)};
  if (found.why.empty() && found.ranks.size() != ranks) {
    found.ranks.clear();
    found.why =
        "not all of the " + std::to_string(ranks) + " ranks of its communicator came to it in time";
  }
  return found;
}

}  // namespace contextune::intercept
