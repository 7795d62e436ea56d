#include "intercept/replay/replay_ranks.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "core/value/byte_stream.hpp"
#include "core/value/stable_hash.hpp"
#include "intercept/nccl/collective_calls.hpp"

namespace contextune::intercept {
namespace {

// Where ranks did not meet once, they may not in other regions either.
std::atomic<bool> did_not_meet{false};
constexpr double short_wait_seconds = 0.2;

}  // namespace

ReplayRanks::ReplayRanks(std::unique_ptr<Lockstep> lockstep)
    : lockstep_(std::move(lockstep)), line_(*lockstep_) {}

ReplayVerdict ReplayRanks::vote(const ReplayVote& vote) {
  ReplayVerdict refused;
  const auto all = lockstep_->meet(
      encode(vote), did_not_meet.load() ? short_wait_seconds : Lockstep::as_long_as_said);
  if (!all) {
    did_not_meet.store(true);
    refused.why =
        "The region's ranks could not agree whether to replay it: " + lockstep_->why() + ".";
    return refused;
  }
  std::vector<ReplayVote> votes;
  for (const Payload& one : *all) {
    auto read = decode_vote(one);
    if (!read) {
      refused.why = "A rank's report on its replay cannot be read.";
      return refused;
    }
    votes.push_back(std::move(*read));
  }
  return verdict_of(votes, lockstep_->ranks());
}

void ReplayRanks::lost() const {
  throw RanksLost(
      "The ranks that replay the region together lost one another: " + lockstep_->why() + ".");
}

std::vector<Payload> ReplayRanks::meet(Payload said) {
  auto all = lockstep_->meet(std::move(said));
  if (!all) lost();
  return std::move(*all);
}

void ReplayRanks::await(Run run) {
  const auto all = line_.await(static_cast<std::uint8_t>(run));
  if (!all) lost();
  const auto alike = std::count(all->begin(), all->end(), static_cast<std::uint8_t>(run));
  if (alike == std::ssize(*all)) return;
  lockstep_->leave("they were not about to make the same run");
  throw RanksLost("The ranks that replay the region together were not at the same run.");
}

ReplayRanks::Findings ReplayRanks::exchange(bool right, bool must_stop, std::uint32_t number) {
  Payload said;
  ByteWriter to(said);
  to.number(static_cast<std::uint8_t>(right));
  to.number(static_cast<std::uint8_t>(must_stop));
  to.number(number);
  Findings all;
  for (const Payload& one : meet(std::move(said))) {
    ByteReader from(one);
    all.right = from.number<std::uint8_t>() != 0 && all.right;
    all.must_stop = from.number<std::uint8_t>() != 0 || all.must_stop;
    all.numbers.push_back(from.number<std::uint32_t>());
    if (from.failed() || from.left() != 0) {
      lockstep_->leave("the report of one of them cannot be read");
      throw RanksLost("A rank's report on its replay cannot be read.");
    }
  }
  return all;
}

std::vector<ReplayVote::Communicator> communicators_of(const Recording& recording,
                                                       std::string& refusal) {
  struct Calls {
    std::uint32_t ranks = 0;
    StableHash hash;
  };
  std::map<std::uint64_t, Calls> all;
  for (const Operation& operation : recording.operations) {
    if (operation.kind != Operation::Kind::Collective) continue;
    const contextune_nccl_call& call = *operation.collective;
    if (call.kind != contextune_nccl_collective) continue;
    const auto known = collective_calls().find(call.comm);
    if (known && known->ranks == 1) continue;
    if (!known || known->tuner_id == 0 || known->ranks < 1) {
      refusal = "The region has collectives of a communicator that NCCL does not identify.";
      return {};
    }
    if (known->nodes != 1) {
      refusal = "The region has collectives of ranks on several hosts, which are not repeated.";
      return {};
    }
    Calls& calls = all[known->tuner_id];
    calls.ranks = static_cast<std::uint32_t>(known->ranks);
    calls.hash.add(static_cast<std::uint64_t>(call.fn));
    calls.hash.add(call.count);
    calls.hash.add(static_cast<std::uint64_t>(call.datatype));
    calls.hash.add(static_cast<std::uint64_t>(call.op));
    calls.hash.add(static_cast<std::uint64_t>(call.root));
  }
  std::vector<ReplayVote::Communicator> list;
  list.reserve(all.size());
  for (const auto& [id, calls] : all) list.push_back({id, calls.ranks, calls.hash.value()});
  return list;
}

}  // namespace contextune::intercept
