#include "intercept/replay_ranks.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <thread>
#include <utility>

#include "core/byte_stream.hpp"
#include "core/stable_hash.hpp"
#include "intercept/collective_hooks.hpp"
#include "rank/host_identity.hpp"

namespace contextune::intercept {
namespace {

// Where ranks did not meet once, they may not in other regions either.
std::atomic<bool> did_not_meet{false};
constexpr double short_wait_seconds = 0.2;
constexpr std::int64_t first_margin_ns = 100'000;
constexpr std::int64_t least_margin_ns = 20'000;
constexpr std::int64_t most_margin_ns = 5'000'000;
constexpr std::int64_t longest_spin_ns = 200'000;

std::int64_t now_ns() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

}  // namespace

ReplayRanks::ReplayRanks(std::unique_ptr<Lockstep> lockstep)
    : lockstep_(std::move(lockstep)),
      host_(rank::identify_host().local),
      margin_ns_(first_margin_ns) {}

ReplayVerdict ReplayRanks::vote(const ReplayVote& vote) {
  ReplayVerdict refused;
  const auto all = lockstep_->meet(
      encode(vote), did_not_meet.load() ? short_wait_seconds : Lockstep::as_long_as_said);
  if (!all) {
    did_not_meet.store(true);
    refused.why = "Its ranks could not agree whether to replay it: " + lockstep_->why() + ".";
    return refused;
  }
  std::vector<ReplayVote> votes;
  for (const Payload& one : *all) {
    auto read = decode_vote(one);
    if (!read) {
      refused.why = "What a rank said of its replay cannot be read.";
      return refused;
    }
    votes.push_back(std::move(*read));
  }
  return verdict_of(votes, lockstep_->ranks());
}

std::vector<Payload> ReplayRanks::meet(Payload said) {
  auto all = lockstep_->meet(std::move(said));
  if (!all) {
    throw RanksLost(
        "The ranks that replay the region together lost one another: " + lockstep_->why() + ".");
  }
  return std::move(*all);
}

void ReplayRanks::await(Run run) {
  Payload said;
  ByteWriter to(said);
  to.number(static_cast<std::uint8_t>(run));
  to.number(host_);
  to.number(static_cast<std::uint64_t>(now_ns()));
  to.number(static_cast<std::uint64_t>(late_ns_));
  bool alike = true;
  bool on_one_host = true;
  std::int64_t last_ready = 0;
  std::int64_t most_late = 0;
  for (const Payload& one : meet(std::move(said))) {
    ByteReader from(one);
    alike = from.number<std::uint8_t>() == static_cast<std::uint8_t>(run) && alike;
    on_one_host = from.number<std::uint64_t>() == host_ && on_one_host;
    last_ready = std::max(last_ready, static_cast<std::int64_t>(from.number<std::uint64_t>()));
    most_late = std::max(most_late, static_cast<std::int64_t>(from.number<std::uint64_t>()));
    alike = alike && !from.failed() && from.left() == 0;
  }
  if (!alike) {
    lockstep_->leave("they were not about to make the same run");
    throw RanksLost("The ranks that replay the region together were not at the same run.");
  }
  if (!on_one_host) return;
  // All ranks reckon alike: a moment at which the last of them has heard, and not much later.
  margin_ns_ = most_late > 0 ? std::min(most_margin_ns, margin_ns_ + 2 * most_late)
                             : std::max(least_margin_ns, margin_ns_ - margin_ns_ / 8);
  const std::int64_t moment = last_ready + margin_ns_;
  late_ns_ = now_ns() - moment;
  if (late_ns_ < -most_margin_ns) return;  // of a clock that is not this one
  if (-late_ns_ > longest_spin_ns)
    std::this_thread::sleep_for(std::chrono::nanoseconds(-late_ns_ - longest_spin_ns));
  while (now_ns() < moment) {
  }
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
      lockstep_->leave("what one of them said cannot be read");
      throw RanksLost("What a rank said of its replay cannot be read.");
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
      refusal = "It has collectives of a communicator of which NCCL does not say which it is.";
      return {};
    }
    if (known->nodes != 1) {
      refusal = "It has collectives of ranks on several hosts, which are not repeated.";
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
  for (const auto& [id, calls] : all) list.push_back({id, calls.ranks, calls.hash.value()});
  return list;
}

}  // namespace contextune::intercept
