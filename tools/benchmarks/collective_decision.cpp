// What one getCollInfo call costs: finding the answer in the leases and writing it into NCCL's cost
// table, and what is done around it in a call of the program. No GPU, no NCCL: it is host work.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "collective/apply_decision.hpp"
#include "collective/lease_table.hpp"
#include "intercept/collectives/process_collectives.hpp"
#include "intercept/nccl/collective_calls.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/runtime/collective_hooks.hpp"

using namespace contextune::collective;

namespace {

constexpr int num_keys = 200;
constexpr int turns = 101;
constexpr int decisions_per_turn = 2'000;

constexpr double target = 100e-9;
constexpr double no_target = 1;

constexpr Decision chosen{true, {Algorithm::Ring, Protocol::LL128}, 16};

constinit LeaseTable table;

LeaseKey key_number(std::uint64_t number) {
  return {1 + number / 8, std::uint64_t{4096} << number % 8, 1, Function::AllReduce, 0};
}

void install(const LeaseKey& key, std::uint64_t epoch, std::vector<LeaseSpan> spans) {
  const Lease lease{key, epoch, table.decisions(key), std::move(spans), chosen, 1};
  if (table.prepare(lease) != LeaseTable::Refusal::None || table.commit(epoch).leases != 1) {
    throw std::runtime_error("a lease could not be installed");
  }
}

/// The longest that fits, so that no turn comes to its end.
std::vector<LeaseSpan> long_trial() {
  std::vector<LeaseSpan> spans;
  for (std::uint32_t i = 0; i < LeaseTable::max_spans; ++i) spans.push_back({chosen, i, 1'000'000});
  return spans;
}

/// What getCollInfo does.
std::uint64_t answer(const LeaseKey& key) {
  float costs[num_cells];
  std::fill(std::begin(costs), std::end(costs), 10.0F);
  int channels = 0;
  const Grant grant = table.decide(key);
  const bool applied =
      apply_decision(grant.decision, 1, {costs, num_algorithms, num_protocols, &channels});
  return static_cast<std::uint64_t>(channels) + (applied ? grant.config : 0);
}

/// Of one call of `work`, as it is over some turns.
/// @return the median's seconds
double print(const char* name, const std::function<std::uint64_t(std::uint64_t)>& work,
             double most = target) {
  std::vector<double> seconds;
  std::uint64_t used = 0;
  for (int turn = 0; turn < turns; ++turn) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint64_t i = 0; i < decisions_per_turn; ++i) used += work(i);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    seconds.push_back(took.count() / decisions_per_turn);
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[turns / 2];
  std::printf("%-44s %6.1f ns (%.1f to %.1f)%s\n", name, median * 1e9, seconds[turns / 10] * 1e9,
              seconds[turns - 1 - turns / 10] * 1e9, median <= most ? "" : "  over the target");
  if (used == 0) std::printf("nothing was decided\n");
  return median;
}

/// One rank's calls of NCCL, as the frontend shows them.
class Rank {
 public:
  Rank() {
    calls_.set_decider(&all_);
    contextune_nccl_call made{};
    void* place = nullptr;
    made.fn = contextune_fn_ncclCommInitRank;
    made.kind = contextune_nccl_communicator;
    made.made = &place;
    made.num_made = 1;
    calls_.before(made);
    question_.tuner = calls_.begin_tuner({1, 4, 1, 5, contextune_tuner_offered, 0});
    place = this;
    calls_.after(made);
    call_.fn = contextune_fn_ncclAllReduce;
    call_.kind = contextune_nccl_collective;
    call_.comm = this;
    call_.count = 1024;
    call_.datatype = static_cast<std::int32_t>(Datatype::I32);
    question_.function = static_cast<int>(Function::AllReduce);
    question_.bytes = 4096;
    question_.table = costs_;
    question_.algorithms = num_algorithms;
    question_.protocols = num_protocols;
    question_.channels = &channels_;
    static_cast<void>(call_slowly(true));
    const LeaseKey key{static_cast<std::uint64_t>(question_.tuner) + 1, 4096, 1,
                       Function::AllReduce, kind_of(Datatype::I32, Operator::Sum)};
    if (!all_.commit({key, 1, all_.decisions(key), {}, chosen, 1}).empty())
      throw std::runtime_error("a winner could not be installed");
  }

  /// A call of which nothing is remembered.
  std::uint64_t call_slowly(bool decides) {
    calls_.before(call_);
    all_.begin(call_, nullptr, true, false);
    const bool decided = decides && calls_.decide(asked());
    call_.result = 0;
    all_.end(call_, remembers_, false);
    calls_.after(call_);
    return decided ? 2 : 1;
  }
  /// A call like the last one.
  std::uint64_t call_again() {
    remembers_ = true;
    auto& of_thread = contextune::intercept::this_thread().collectives;
    if (!all_.begin_settled(call_, nullptr, of_thread)) return call_slowly(true);
    const auto decided = all_.decide_settled(asked(), of_thread);
    return all_.end_settled(of_thread) && decided == true ? 2 : 0;
  }

 private:
  const TunerQuestion& asked() {
    std::fill(std::begin(costs_), std::end(costs_), 10.0F);
    return question_;
  }

  contextune::intercept::ProcessCollectives& all_ = contextune::intercept::process_collectives();
  CollectiveCalls& calls_ = contextune::intercept::collective_calls();
  contextune_nccl_call call_{};
  TunerQuestion question_;
  float costs_[num_cells] = {};
  int channels_ = 0;
  bool remembers_ = false;
};

void run_calls() {
  Rank rank;
  const double without = print(
      "a collective without a decision", [&](std::uint64_t) { return rank.call_slowly(false); },
      no_target);
  const double with = print(
      "the same with one, a winner", [&](std::uint64_t) { return rank.call_slowly(true); },
      no_target);
  const double decision = with - without;
  std::printf("%-44s %6.1f ns%s\n", "so the decision, with whose it is", decision * 1e9,
              decision <= target ? "" : "  over the target");
  print("a settled collective with its decision", [&](std::uint64_t) { return rank.call_again(); });
}

void run() {
  for (std::uint64_t number = 0; number < num_keys; ++number) {
    static_cast<void>(table.decide(key_number(number)));
    install(key_number(number), 1, {});
  }
  const LeaseKey one = key_number(7);
  print("a winner, one key", [&](std::uint64_t) { return table.decide(one).number; });
  print("winners, all keys in turn",
        [](std::uint64_t i) { return table.decide(key_number(i % num_keys)).number; });
  LeaseKey other = one;
  other.kind = 1;
  static_cast<void>(table.decide(other));
  print("a key without a lease", [&](std::uint64_t) { return table.decide(other).number; });
  install(one, 2, long_trial());
  print("a trial of 256 spans", [&](std::uint64_t) { return table.decide(one).number; });
  print("getCollInfo decision, applied", [&](std::uint64_t) { return answer(one); });
  run_calls();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    std::printf("usage: %s\nTimes what one getCollInfo call costs on this host.\n", argv[0]);
    return std::strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
  std::printf(
      "work of this host's CPU only, with no GPU and no NCCL\n%d keys; median of %d turns (10th to "
      "90th percentile); target %.0f ns\n",
      num_keys, turns, target * 1e9);
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
