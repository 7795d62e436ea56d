// Collectives that a thread has made before, when all was settled: what they are spared, and what
// they are not.
#include <array>

#include "catch.hpp"
#include "intercept/collectives/process_collectives.hpp"
#include "intercept/nccl/collective_calls.hpp"
#include "intercept/program/thread_state.hpp"

using namespace contextune::intercept;
using namespace contextune::collective;

namespace {

constexpr Decision tree_simple{true, {Algorithm::Tree, Protocol::Simple}, 0};

/// One rank of a communicator, and what its program and NCCL do.
class Rank {
 public:
  Rank() {
    all.prepare({}, nullptr, nullptr);
    calls.set_decider(&all);
    contextune_nccl_call made{};
    void* place = nullptr;
    made.fn = contextune_fn_ncclCommInitRank;
    made.kind = contextune_nccl_communicator;
    made.made = &place;
    made.num_made = 1;
    made.nranks = 4;
    calls.before(made);
    tuner = calls.begin_tuner({77, 4, 1, 5, contextune_tuner_offered, 0});
    place = this;
    calls.after(made);
  }
  ~Rank() { calls.end_tuner(tuner); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  [[nodiscard]] contextune_nccl_call all_reduce(std::uint64_t count = 1024) {
    contextune_nccl_call call{};
    call.fn = contextune_fn_ncclAllReduce;
    call.kind = contextune_nccl_collective;
    call.comm = this;
    call.count = count;
    call.datatype = static_cast<std::int32_t>(Datatype::I32);
    call.result = -1;
    return call;
  }
  [[nodiscard]] TunerQuestion question(std::uint64_t bytes = 4096) {
    costs.fill(10.0F);
    TunerQuestion asked;
    asked.tuner = tuner;
    asked.function = static_cast<int>(Function::AllReduce);
    asked.bytes = bytes;
    asked.table = costs.data();
    asked.algorithms = num_algorithms;
    asked.protocols = num_protocols;
    asked.channels = &channels;
    return asked;
  }
  [[nodiscard]] LeaseKey key(std::uint64_t bytes = 4096) const {
    return {static_cast<std::uint64_t>(tuner) + 1, bytes, 1, Function::AllReduce,
            kind_of(Datatype::I32, Operator::Sum)};
  }

  void begin_slowly(const contextune_nccl_call& call) {
    calls.before(call);
    all.begin(call, nullptr, true, false);
  }
  void end_slowly(contextune_nccl_call& call) {
    call.result = 0;
    all.end(call, true, false);
    calls.after(call);
  }
  void reduce_slowly() {
    contextune_nccl_call call = all_reduce();
    begin_slowly(call);
    static_cast<void>(calls.decide(question()));
    end_slowly(call);
  }
  [[nodiscard]] bool repeats(const contextune_nccl_call& call, LaunchRegion* region = nullptr) {
    const bool begun = all.begin_settled(call, region, of_thread);
    if (begun) of_thread.note_decision();
    return begun && all.end_settled(of_thread);
  }

  ProcessCollectives& all = process_collectives();
  CollectiveCalls& calls = collective_calls();
  SettledCollectives& of_thread = this_thread().collectives;
  std::array<float, num_cells> costs{};
  int channels = 0;
  std::int64_t tuner = -1;
};

struct SlowRank {
  SlowRank() { rank.reduce_slowly(); }
  Rank rank;
};

}  // namespace

TEST_CASE("A settled collective counts its decision each time", "[settled_collectives]") {
  Rank rank;
  contextune_nccl_call call = rank.all_reduce();
  CHECK_FALSE(rank.all.begin_settled(call, nullptr, rank.of_thread));
  rank.reduce_slowly();
  for (std::uint64_t made = 1; made < 5; ++made) {
    CHECK(rank.all.decisions(rank.key()) == made);
    REQUIRE(rank.all.begin_settled(call, nullptr, rank.of_thread));
    CHECK(ProcessCollectives::is_inside());
    CHECK(rank.all.decide_settled(rank.question(), rank.of_thread) == false);
    CHECK(rank.all.end_settled(rank.of_thread));
    CHECK_FALSE(ProcessCollectives::is_inside());
  }
}

TEST_CASE_METHOD(SlowRank, "A settled collective runs the winner", "[settled_collectives]") {
  REQUIRE(rank.all.commit({rank.key(), 1, 1, {}, tree_simple, 3}).empty());
  rank.reduce_slowly();
  const contextune_nccl_call call = rank.all_reduce();
  REQUIRE(rank.all.begin_settled(call, nullptr, rank.of_thread));
  const TunerQuestion asked = rank.question();
  CHECK(rank.all.decide_settled(asked, rank.of_thread) == true);
  CHECK(CostTable(rank.costs.data(), num_algorithms, num_protocols).cheapest() == tree_simple.cell);
  CHECK(rank.all.end_settled(rank.of_thread));
  CHECK(rank.all.decisions(rank.key()) == 3);
}

TEST_CASE_METHOD(SlowRank, "A winner that is not legal this time is not set",
                 "[settled_collectives]") {
  REQUIRE(rank.all.commit({rank.key(), 1, 1, {}, tree_simple, 3}).empty());
  rank.reduce_slowly();
  const contextune_nccl_call call = rank.all_reduce();
  REQUIRE(rank.all.begin_settled(call, nullptr, rank.of_thread));
  const TunerQuestion asked = rank.question();
  rank.costs[tree_simple.cell.index()] = CostTable::illegal;
  CHECK(rank.all.decide_settled(asked, rank.of_thread) == false);
  CHECK(rank.all.end_settled(rank.of_thread));
}

TEST_CASE("What is not known of some communicators is no reason to leave others alone",
          "[settled_collectives]") {
  for (int i = 0; i < 100; ++i) {
    Rank rank;
    static_cast<void>(rank.calls.decide(rank.question()));  // of a call that nobody saw
    CHECK(rank.all.decisions({rank.key().communicator, 4096, 1, Function::AllReduce, 0}) == 1);
    CHECK_FALSE(rank.all.is_sound(rank.key(), &rank));
  }
  Rank rank;
  rank.reduce_slowly();
  CHECK(rank.all.is_sound(rank.key(), &rank));
}

TEST_CASE_METHOD(SlowRank, "A settled collective is under way for whoever looks",
                 "[settled_collectives]") {
  const contextune_nccl_call call = rank.all_reduce();
  CHECK(rank.all.is_sound(rank.key(), &rank));
  REQUIRE(rank.all.begin_settled(call, nullptr, rank.of_thread));
  CHECK_FALSE(rank.all.is_sound(rank.key(), &rank));
  CHECK_FALSE(rank.all.is_sound(rank.key(), nullptr));
  CHECK(rank.all.decide_settled(rank.question(), rank.of_thread));
  CHECK_FALSE(rank.all.is_sound(rank.key(), &rank));
  CHECK(rank.all.end_settled(rank.of_thread));
  CHECK(rank.all.is_sound(rank.key(), &rank));
}

TEST_CASE_METHOD(SlowRank, "While decisions may be forbidden no collective is settled",
                 "[settled_collectives]") {
  rank.all.regions().hold(true);
  CHECK_FALSE(rank.repeats(rank.all_reduce()));
  CHECK(rank.all.is_sound(rank.key(), &rank));
  rank.all.regions().hold(false);
  CHECK(rank.repeats(rank.all_reduce()));
}

TEST_CASE_METHOD(SlowRank, "A lease that came since is followed, and its decision counted once",
                 "[settled_collectives]") {
  REQUIRE(rank.all.commit({rank.key(), 1, 1, {{tree_simple, 2, 1}}, {}, 0}).empty());
  contextune_nccl_call call = rank.all_reduce();
  REQUIRE(rank.all.begin_settled(call, nullptr, rank.of_thread));
  const TunerQuestion asked = rank.question();
  CHECK(rank.all.decide_settled(asked, rank.of_thread) == std::nullopt);
  CHECK(rank.all.decisions(rank.key()) == 2);
  CHECK(rank.calls.decide(asked));
  CHECK(rank.all.decisions(rank.key()) == 2);
  REQUIRE(ProcessCollectives::made().size() == 1);
  CHECK(ProcessCollectives::made().front().grant.number == 1);
  CHECK(ProcessCollectives::made().front().grant.is_trial);
  CHECK_FALSE(rank.all.is_sound(rank.key(), &rank));
  CHECK_FALSE(rank.all.end_settled(rank.of_thread));
  rank.end_slowly(call);
  CHECK(rank.all.is_sound(rank.key(), &rank));
  // A trial is nothing to remember, and what was remembered before is not so any more.
  REQUIRE(rank.all.begin_settled(call, nullptr, rank.of_thread));
  CHECK(rank.all.decide_settled(rank.question(), rank.of_thread) == false);
  CHECK(rank.all.end_settled(rank.of_thread));
  CHECK(rank.all.decisions(rank.key()) == 3);
}

TEST_CASE_METHOD(SlowRank,
                 "A settled collective that NCCL asks of otherwise is decided as what it is",
                 "[settled_collectives]") {
  contextune_nccl_call call = rank.all_reduce();
  REQUIRE(rank.all.begin_settled(call, nullptr, rank.of_thread));
  const TunerQuestion asked = rank.question(65536);
  CHECK(rank.all.decide_settled(asked, rank.of_thread) == std::nullopt);
  CHECK_FALSE(rank.calls.decide(asked));
  CHECK_FALSE(rank.all.end_settled(rank.of_thread));
  rank.end_slowly(call);
  CHECK(rank.all.decisions(rank.key()) == 1);
  CHECK(rank.all.decisions(rank.key(65536)) == 1);
}

TEST_CASE_METHOD(SlowRank, "A settled collective of which NCCL asks nobody stays sound",
                 "[settled_collectives]") {
  contextune_nccl_call call = rank.all_reduce();
  REQUIRE(rank.all.begin_settled(call, nullptr, rank.of_thread));
  CHECK_FALSE(rank.all.end_settled(rank.of_thread));
  rank.end_slowly(call);
  CHECK(rank.all.is_sound(rank.key(), &rank));
}

TEST_CASE_METHOD(SlowRank, "What changed since, or is another call, is not settled",
                 "[settled_collectives]") {
  CHECK(rank.repeats(rank.all_reduce()));
  CHECK_FALSE(rank.repeats(rank.all_reduce(), reinterpret_cast<LaunchRegion*>(64)));
  CHECK_FALSE(rank.repeats(rank.all_reduce(2048)));
  contextune_nccl_call other = rank.all_reduce();
  other.datatype = static_cast<std::int32_t>(Datatype::U32);
  CHECK_FALSE(rank.repeats(other));
  other = rank.all_reduce();
  other.op = static_cast<std::int32_t>(Operator::Max);
  CHECK_FALSE(rank.repeats(other));
  other = rank.all_reduce();
  other.group_depth = 1;
  CHECK_FALSE(rank.repeats(other));
  settled_changed();
  CHECK_FALSE(rank.repeats(rank.all_reduce()));
  rank.reduce_slowly();
  CHECK(rank.repeats(rank.all_reduce()));
}

TEST_CASE_METHOD(SlowRank, "A communicator that took the place of another one begins anew",
                 "[settled_collectives]") {
  CHECK(rank.repeats(rank.all_reduce()));
  rank.calls.end_tuner(rank.tuner);
  rank.tuner = rank.calls.begin_tuner({78, 4, 1, 5, contextune_tuner_offered, 0});
  contextune_nccl_call call = rank.all_reduce();
  REQUIRE(rank.all.begin_settled(call, nullptr, rank.of_thread));
  const TunerQuestion asked = rank.question();
  CHECK(rank.all.decide_settled(asked, rank.of_thread) == std::nullopt);
  CHECK_FALSE(rank.calls.decide(asked));
  CHECK_FALSE(rank.all.end_settled(rank.of_thread));
  rank.end_slowly(call);
  CHECK(rank.all.decisions(rank.key()) == 1);
}
