#include "intercept/ranks/rank_groups.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/agreement/rank_list.hpp"
#include "core/value/stable_hash.hpp"
#include "intercept/nccl/collective_calls.hpp"
#include "intercept/ranks/domain_question.hpp"
#include "intercept/ranks/process_ranks.hpp"
#include "intercept/ranks/question_kind.hpp"

namespace contextune::intercept {
namespace {

std::vector<std::uint32_t> all_ranks(const Coordinator& coordinator) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < coordinator.num_ranks(); ++rank) ranks.push_back(rank);
  return ranks;
}

/// The same on all its ranks; 0: it has none.
std::uint64_t id_of(const collective::KnownCommunicator& one) {
  return one.tuner_id != 0 ? one.tuner_id : one.unique_id;
}

/// Names a repeated region to DomainPlanner.
std::uint64_t number_at(const std::string& region) {
  StableHash number;
  number.add("at");
  number.add(region);
  return number.value();
}

std::uint32_t times_here(std::uint64_t id) {
  const auto all = collective_calls().known();
  return static_cast<std::uint32_t>(
      std::count_if(all.begin(), all.end(), [&](const auto& one) { return id_of(one) == id; }));
}

}  // namespace

std::unique_ptr<Lockstep> RankGroups::lockstep_of(const std::string& region,
                                                  const Options& options) {
  if (!ranks_.covers_all_peers(options.distributed)) return nullptr;
  StableHash group;
  group.add("replay");
  group.add(region);
  Coordinator* const others = ranks_.coordinator();
  if (others == nullptr || others->num_ranks() == 1) return nullptr;
  return std::make_unique<Lockstep>(*others, question_kind::lockstep, group.value(),
                                    all_ranks(*others), options.presync_timeout);
}

void RankGroups::announce_communicators() noexcept {
  try {
    Coordinator* const all = ranks_.coordinator();
    if (all == nullptr) return;
    for (const collective::KnownCommunicator& one : collective_calls().known()) {
      const auto ranks = static_cast<std::uint32_t>(std::max(one.ranks, 0));
      const std::uint64_t id = id_of(one);
      // All of the job are known as they are, and of several in one process none stands for it.
      if (id != 0 && ranks > 1 && ranks < all->num_ranks() && times_here(id) <= 1)
        members_.announce(*all, id, ranks);
    }
  } catch (const std::exception&) {
    // No memory: they learn it when this one asks.
  }
}

RankGroup RankGroups::members(const void* communicator, std::uint32_t ranks,
                              const Options& options) {
  RankGroup group;
  Coordinator* const all = ranks_.others(options, group.why);
  group.knows_job = ranks_.knows_job();
  if (all == nullptr) {
    // One rank has nobody to be found, so it is nothing to it that others are lost.
    if (ranks == 1 && group.knows_job) group.ranks = {ranks_.place().rank};
    return group;
  }
  // While this one waits, ranks of its other communicators need not look for it.
  announce_communicators();
  const auto known = collective_calls().find(communicator);
  if (known && known->ranks > 0 && static_cast<std::uint32_t>(known->ranks) != ranks) {
    group.why = "it is said to be done by " + std::to_string(ranks) +
                " ranks, and its communicator has " + std::to_string(known->ranks);
    return group;
  }
  if (ranks == 0) {
    group.why = "its communicator was not seen when it was made, so nobody knows its ranks";
    return group;
  }
  if (all->num_ranks() == ranks) {
    group.ranks = all_ranks(*all);
    group.is_whole_job = true;
    return group;
  }
  if (ranks == 1) {
    group.ranks = {all->rank()};
    return group;
  }
  const std::string done_by = "it is done by " + std::to_string(ranks) +
                              " ranks, and the job has " + std::to_string(all->num_ranks());
  if (ranks > all->num_ranks()) {
    group.why = done_by;
    return group;
  }
  if (communicator == nullptr) {
    group.why = done_by + "; give it their communicator";
    return group;
  }
  const std::uint64_t id = known ? id_of(*known) : 0;
  if (id == 0) {
    group.why = done_by + ", and NCCL does not say which communicator theirs is";
    return group;
  }
  CommunicatorMembers::Members found = members_.find(*all, id, ranks, options.presync_timeout);
  group.ranks = std::move(found.ranks);
  group.why = std::move(found.why);
  group.reason = FallbackReason::NoAgreement;
  return group;
}

RankGroup RankGroups::named(std::vector<std::uint32_t> ranks, const Options& options) {
  RankGroup group;
  // Who names ranks of the job by their numbers takes those of the launcher for one job.
  Coordinator* const all = ranks_.others(options, group.why, true);
  group.knows_job = ranks_.knows_job();
  const RankPlace place =
      all == nullptr ? ranks_.place() : RankPlace{all->rank(), all->num_ranks()};
  const bool is_among = std::ranges::find(ranks, place.rank) != ranks.end();
  if (!is_among || ranks.back() >= place.num_ranks) {
    group.why = "ranks " + text_of_ranks(ranks) + " are named, and this is rank " +
                std::to_string(place.rank) + " of " + std::to_string(place.num_ranks);
    return group;
  }
  group.is_whole_job = ranks.size() == place.num_ranks && (all != nullptr || ranks.size() == 1);
  // One rank has nobody to be found.
  if (all != nullptr || ranks.size() == 1) group.ranks = std::move(ranks);
  return group;
}

bool RankGroups::may_differ(const Options& options) noexcept try {
  if (options.scope != Scope::Auto || options.distributed == Distributed::Off) return false;
  const bool has_peers = collective_calls().has_peers();
  // Communicators of all ranks do not tell who has to do with whom.
  if (has_peers ? !ranks_.has_parts() : !ranks_.are_certain()) return false;
  std::string why;
  Coordinator* const all = ranks_.others(options, why);
  return all != nullptr && all->num_ranks() > 1;
} catch (const std::exception&) {
  return false;  // no memory
}

RankGroup RankGroups::ranks_at(const std::string& region, std::span<const void* const> used,
                               const Options& options) {
  RankGroup group;
  Coordinator* const all = ranks_.others(options, group.why);
  if (all == nullptr) return group;
  group.knows_job = true;
  group.reason = FallbackReason::NoAgreement;
  DomainReport report;
  for (const void* const communicator : used) {
    const auto known = collective_calls().find(communicator);
    const std::uint64_t id = known ? id_of(*known) : 0;
    if (id == 0 || known->ranks <= 0) {
      group.why = "it uses a communicator of which nobody knows the ranks";
      return group;
    }
    const bool is_new = std::none_of(report.used.begin(), report.used.end(),
                                     [&](const auto& one) { return one.id == id; });
    if (known->ranks > 1 && is_new)
      report.used.push_back({id, static_cast<std::uint32_t>(known->ranks), times_here(id)});
  }
  if (report.used.empty() && !ranks_.are_certain() && options.distributed != Distributed::On) {
    group.ranks = {all->rank()};
    group.found_by = "it uses no communicator, and nobody has declared the ranks of a job";
    return group;
  }
  report.region = number_at(region);
  report.num_ranks = all->num_ranks();
  report.attends = true;
  group.found_by = report.used.empty()
                       ? "it uses no communicator, and nobody else of the job is on the way to it"
                       : "they are those of the communicators that it uses";
  StableHash number;
  number.add(report.region);
  number.add(all->rank());
  Topic topic;
  topic.group = number.value();
  topic.ranks = {all->rank()};
  Domain found = ask_for_domain(*all, topic, report, options.presync_timeout);
  group.ranks = std::move(found.ranks);
  group.is_whole_job = group.ranks.size() == all->num_ranks();
  group.is_cut_short = found.is_cut_short;
  group.why = std::move(found.why);
  if (group.ranks.empty() && group.why.empty())
    group.why = "not all ranks whose communicators it uses came to it in time";
  return group;
}

void RankGroups::note_place(const std::string& region, bool begins,
                            const Options& options) noexcept {
  try {
    std::string why;
    Coordinator* const all = ranks_.others(options, why);
    if (all == nullptr) return;
    DomainReport report;
    report.region = number_at(region);
    report.num_ranks = all->num_ranks();
    report.kind = begins ? DomainReport::Kind::Begins : DomainReport::Kind::Ends;
    StableHash number;
    number.add("place");
    number.add(all->rank());
    Topic topic;
    topic.group = number.value();
    topic.question = places_noted_.fetch_add(1);
    topic.ranks = {all->rank()};
    all->say(topic, question_kind::domain, encode(report), domain_answer_seconds);
  } catch (const std::exception&) {
    // No memory: those who wait for this rank wait until their time is over.
  }
}

std::unique_ptr<Lockstep> RankGroups::lockstep_among(const std::string& of, const RankGroup& group,
                                                     const Options& options, std::string& why) {
  Coordinator* const all = ranks_.others(options, why);
  if (all == nullptr) return nullptr;
  StableHash number;
  number.add("together");
  number.add(of);
  for (const std::uint32_t rank : group.ranks) number.add(rank);
  return std::make_unique<Lockstep>(*all, question_kind::lockstep, number.value(), group.ranks,
                                    options.presync_timeout);
}

}  // namespace contextune::intercept
