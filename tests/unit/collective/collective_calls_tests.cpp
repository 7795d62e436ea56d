#include "collective/collective_calls.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <limits>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "program_calls.hpp"

using namespace contextune::collective;

namespace {

/// Decides always, and keeps what it was asked.
class Decider final : public CollectiveDecider {
 public:
  bool decide(const TunerQuestion& question) noexcept override {
    asked = question;
    was_lone = question.in_flight->is_lone_operation();
    was_simulated = question.in_flight->is_simulated();
    call = question.in_flight->call;
    return true;
  }
  void forget(std::int64_t tuner) noexcept override { forgotten = tuner; }

  TunerQuestion asked;
  bool was_lone = false;
  bool was_simulated = false;
  const contextune_nccl_call* call = nullptr;
  std::int64_t forgotten = -1;
};

int one, two;

}  // namespace

TEST_CASE("A communicator is known from when it is made until it ends", "[collective]") {
  Program program;
  program.init(&one);
  const auto known = program.calls->find(&one);
  REQUIRE(known.has_value());
  CHECK(known->ranks == 4);
  CHECK(known->unique_id == 99);
  CHECK(known->nodes == 0);
  CHECK(known->tuner == -1);
  program.end(&one);
  CHECK_FALSE(program.calls->find(&one).has_value());
}

TEST_CASE("One that is still being made is known; one that could not be made is not",
          "[collective]") {
  Program program;
  program.init(&one, nullptr, 7);
  CHECK(program.calls->find(&one).has_value());
  program.init(&two, nullptr, 5);
  CHECK_FALSE(program.calls->find(&two).has_value());
  CHECK_FALSE(program.calls->find(nullptr).has_value());
}

TEST_CASE("What NCCL tells its plugin meanwhile belongs to the communicator", "[collective]") {
  Program program;
  program.init(&one, &tuner_comm);
  const auto known = program.calls->find(&one);
  REQUIRE(known.has_value());
  CHECK(known->tuner == program.begun);
  CHECK(known->tuner_id == 77);
  CHECK(known->nodes == 2);
  // The next is made without a word to the plugin.
  program.init(&two);
  CHECK(program.calls->find(&two)->tuner == -1);
}

TEST_CASE("Where NCCL does not say which communicator it is, the id that it was made of does",
          "[collective]") {
  Program program;
  Decider decider;
  program.calls->set_decider(&decider);
  constexpr contextune_tuner_comm unsaid{0, 4, 2, 4, contextune_tuner_offered, 0};
  program.init(&one, &unsaid);
  CHECK(program.calls->find(&one)->tuner_id == 99);
  CHECK(program.calls->tuned().front().id == 99);
  CHECK(program.all_reduce(&one, program.begun));
  CHECK(decider.asked.communicator == 99);

  contextune_nccl_call split =
      Program::call(contextune_fn_ncclCommSplit, contextune_nccl_communicator);
  split.comm = &one;
  program.make(split, &two, &unsaid);
  CHECK(program.calls->find(&two)->tuner_id == 0);
  CHECK(program.all_reduce(&two, program.begun));
  CHECK(decider.asked.communicator == 0);
}

TEST_CASE("One that was made in a group is found out by the first that it does alone",
          "[collective]") {
  Program program;
  program.init(&one);
  const std::int64_t tuner = program.calls->begin_tuner({0, 4, 2, 4, contextune_tuner_offered, 0});
  CHECK(program.calls->tuned().front().id == 0);
  static_cast<void>(program.all_reduce(&one, tuner));
  CHECK(program.calls->find(&one)->tuner_id == 99);
  CHECK(program.calls->tuned().front().id == 99);
}

TEST_CASE("Communicators that NCCL asks about are told, once for each rank that is here",
          "[collective]") {
  Program program;
  CHECK(program.calls->tuned().empty());
  program.init(&one, &tuner_comm);
  const std::int64_t first = program.begun;
  program.init(&two, &tuner_comm);
  REQUIRE(program.calls->tuned().size() == 2);
  for (const auto& tuned : program.calls->tuned()) {
    CHECK(tuned.id == 77);
    CHECK(tuned.ranks == 4);
    CHECK(tuned.nodes == 2);
  }
  program.calls->end_tuner(first);
  CHECK(program.calls->tuned().size() == 1);
}

TEST_CASE("A split knows its parent, and a rank without a colour gets none", "[collective]") {
  Program program;
  program.init(&one);
  contextune_nccl_call split =
      Program::call(contextune_fn_ncclCommSplit, contextune_nccl_communicator);
  split.comm = &one;
  program.make(split, &two);
  const auto part = program.calls->find(&two);
  REQUIRE(part.has_value());
  CHECK(part->parent == &one);
  CHECK(part->ranks == 0);
  program.make(split, nullptr);
  CHECK_FALSE(program.calls->find(nullptr).has_value());
}

TEST_CASE("Whether one abort ends a communicator and its splits is read from its configuration",
          "[collective]") {
  struct {
    std::size_t size = 48;
    unsigned magic = 0xcafebeef;
    unsigned version = 21801;
    int blocking = 1, cga = 0, min_ctas = 0, max_ctas = 0;
    const char* net_name = nullptr;
    int split_share = 1;
  } config;
  contextune_nccl_call made =
      Program::call(contextune_fn_ncclCommInitRankConfig, contextune_nccl_communicator);
  contextune_nccl_call split =
      Program::call(contextune_fn_ncclCommSplit, contextune_nccl_communicator);
  split.comm = &one;
  const auto shares = [](Program& program, void* handle) {
    return program.calls->find(handle).value().shares_with_splits;
  };
  made.config = &config;
  {
    Program program;
    program.make(made, &one);
    CHECK(shares(program, &one));
    program.make(split, &two);  // which has what its parent has
    CHECK(shares(program, &two));
  }
  SECTION("which may say that it does not") {
    config.split_share = 0;
  }
  SECTION("which may say nothing") {
    config.split_share = std::numeric_limits<int>::min();
  }
  SECTION("which may be of an NCCL that had no such thing") {
    config.size = offsetof(decltype(config), split_share);
  }
  SECTION("which may be none at all") {
    config.magic = 0;
  }
  Program program;
  program.make(made, &one);
  CHECK_FALSE(shares(program, &one));
  program.make(split, &two);
  CHECK_FALSE(shares(program, &two));
}

TEST_CASE("Communicators that are made all at once are known", "[collective]") {
  Program program;
  std::array<void*, 2> places = {&one, &two};
  contextune_nccl_call all =
      Program::call(contextune_fn_ncclCommInitAll, contextune_nccl_communicator);
  all.made = places.data();
  all.num_made = all.nranks = 2;
  program.calls->before(all);
  all.result = 0;
  program.calls->after(all);
  for (const int* each : {&one, &two}) {
    REQUIRE(program.calls->find(each).has_value());
    CHECK(program.calls->find(each)->ranks == 2);
  }
}

TEST_CASE("The decider learns who asks, about what, and inside which call", "[collective]") {
  Program program;
  Decider decider;
  program.init(&one, &tuner_comm);
  CHECK_FALSE(program.all_reduce(&one, program.begun));  // nobody decides yet
  program.calls->set_decider(&decider);
  CHECK(program.all_reduce(&one, program.begun));
  CHECK(decider.asked.communicator == 77);
  CHECK(decider.asked.ranks == 4);
  CHECK(decider.asked.nodes == 2);
  CHECK(decider.asked.bytes == 32);
  CHECK(decider.was_lone);
  CHECK_FALSE(decider.was_simulated);
  CHECK(decider.call != nullptr);
}

TEST_CASE("What is asked at the end of a group is about no call of its own", "[collective]") {
  Program program;
  Decider decider;
  program.calls->set_decider(&decider);
  program.init(&one, &tuner_comm);
  program.all_reduce(&one, -1, 1);
  program.all_reduce(&one, -1, 1);
  for (const contextune_nccl_fn fn :
       {contextune_fn_ncclGroupSimulateEnd, contextune_fn_ncclGroupEnd}) {
    contextune_nccl_call end = Program::call(fn, contextune_nccl_group);
    end.group_depth = 1;
    program.calls->before(end);
    CHECK(program.ask(program.begun));
    CHECK_FALSE(decider.was_lone);
    CHECK(decider.was_simulated == (fn == contextune_fn_ncclGroupSimulateEnd));
    end.result = 0;
    program.calls->after(end);
  }
}

TEST_CASE("A communicator of which the plugin heard elsewhere is learnt by its first call",
          "[collective]") {
  Program program;
  program.init(&one, nullptr, 7);
  std::thread([&] { program.begun = program.calls->begin_tuner(tuner_comm); }).join();
  CHECK(program.calls->find(&one)->tuner == -1);
  program.all_reduce(&one, program.begun);
  CHECK(program.calls->find(&one)->tuner == program.begun);
  CHECK(program.calls->find(&one)->tuner_id == 77);
  // But not by a call in a group, which may be about another one.
  std::thread([&] { program.begun = program.calls->begin_tuner(tuner_comm); }).join();
  program.init(&two, nullptr, 7);
  program.all_reduce(&two, program.begun, 1);
  CHECK(program.calls->find(&two)->tuner == -1);
}

TEST_CASE("A question on a thread of NCCL's own is about no call", "[collective]") {
  Program program;
  Decider decider;
  program.calls->set_decider(&decider);
  program.init(&one, &tuner_comm);
  std::thread([&] { CHECK(program.ask(program.begun)); }).join();
  CHECK(decider.call == nullptr);
  CHECK_FALSE(decider.was_lone);
}

TEST_CASE("Where the user chose nobody is asked", "[collective]") {
  Program program;
  contextune_tuner_comm chosen = tuner_comm;
  chosen.tuner = contextune_tuner_users_choice;
  CHECK(program.calls->begin_tuner(chosen) == -1);
}

TEST_CASE("Places for communicators are given back, and there is an end to them", "[collective]") {
  Program program;
  Decider decider;
  program.calls->set_decider(&decider);
  for (std::int64_t i = 0; i < CollectiveCalls::max_tuners; ++i) {
    REQUIRE(program.calls->begin_tuner(tuner_comm) == i);
  }
  CHECK_FALSE(program.calls->had_too_many());
  CHECK(program.calls->begin_tuner(tuner_comm) == -1);
  CHECK(program.calls->had_too_many());
  program.calls->end_tuner(17);
  CHECK(decider.forgotten == 17);
  CHECK(program.calls->begin_tuner(tuner_comm) >= 0);
  CHECK(program.calls->begin_tuner(tuner_comm) == -1);
  CHECK_FALSE(program.ask(-1));
}

TEST_CASE("No number is given out twice, so that no count of decisions goes on for another",
          "[collective]") {
  Program program;
  Decider decider;
  program.calls->set_decider(&decider);
  std::vector<std::int64_t> numbers;
  for (int i = 0; i < 5; ++i) {
    program.init(&one, &tuner_comm);
    numbers.push_back(program.begun);
    program.end(&one);
    program.calls->end_tuner(program.begun);
  }
  std::sort(numbers.begin(), numbers.end());
  CHECK(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end());
}

TEST_CASE("The number of an ended communicator means nothing any more", "[collective]") {
  Program program;
  Decider decider;
  program.calls->set_decider(&decider);
  program.init(&one, &tuner_comm);
  const std::int64_t ended = program.begun;
  program.calls->end_tuner(ended);
  CHECK_FALSE(program.ask(ended));
  program.init(&two, &tuner_comm);
  CHECK_FALSE(program.ask(ended));
  program.all_reduce(&one, ended);
  CHECK(program.calls->find(&two)->tuner == program.begun);
  // Nor does it end the one that has its place now.
  decider.forgotten = -1;
  program.calls->end_tuner(ended);
  CHECK(decider.forgotten == -1);
  CHECK(program.ask(program.begun));
}

TEST_CASE("Threads may make, use and end communicators at once", "[collective]") {
  Program shared;
  std::vector<std::thread> threads;
  std::array<char, 4> handles{};
  std::atomic<int> known{0};
  for (char& handle : handles) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        contextune_nccl_call made =
            Program::call(contextune_fn_ncclCommInitRank, contextune_nccl_communicator);
        void* place = &handle;
        made.made = &place;
        made.num_made = 1;
        shared.calls->before(made);
        const std::int64_t tuner = shared.calls->begin_tuner(tuner_comm);
        made.result = 0;
        shared.calls->after(made);
        shared.all_reduce(&handle, tuner);
        known += shared.calls->find(&handle)->tuner == tuner;
        shared.end(&handle);
        shared.calls->end_tuner(tuner);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(known == 4 * 500);
  for (char& handle : handles) CHECK_FALSE(shared.calls->find(&handle).has_value());
}
