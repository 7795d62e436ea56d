#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "core/coordination/lockstep.hpp"
#include "mentions.hpp"
#include "rank/members/local_coordinator.hpp"
#include "several_ranks.hpp"

using contextune::Lockstep;
using contextune::Payload;

namespace {

Ranks four_ranks() {
  return make_ranks(test_settings(4));
}

Lockstep of(contextune::Coordinator& rank, double seconds = long_enough) {
  return Lockstep(rank, tell_all, 8, {0, 1, 2, 3}, seconds);
}

std::string word(std::uint32_t rank, int step) {
  return "rank " + std::to_string(rank) + " at step " + std::to_string(step);
}

}  // namespace

TEST_CASE("At each step every rank hears what all have said", "[lockstep]") {
  Ranks ranks = four_ranks();
  std::vector<std::thread> threads;
  std::vector<int> heard(4);
  for (const auto& rank : ranks) {
    threads.emplace_back([&heard, &rank = *rank] {
      Lockstep step = of(rank);
      for (int i = 0; i < 50; ++i) {
        const auto all = step.meet(bytes_of(word(rank.rank(), i)));
        if (!all || all->size() != 4 || step.position() != rank.rank()) return;
        for (std::uint32_t other = 0; other < 4; ++other)
          if ((*all)[other] != bytes_of(word(other, i))) return;
        ++heard[rank.rank()];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(heard == std::vector<int>(4, 50));
}

TEST_CASE("A rank that leaves lets none go on, now or later, and says why", "[lockstep]") {
  Ranks ranks = four_ranks();
  std::vector<std::thread> threads;
  std::vector<std::string> why(4);
  for (const auto& rank : ranks) {
    threads.emplace_back([&why, &rank = *rank] {
      Lockstep step = of(rank);
      if (!step.meet(bytes_of("first"))) return;
      if (rank.rank() == 2) step.leave("it has had enough");
      if (step.meet(bytes_of("second")) || step.meet(bytes_of("third"))) return;
      why[rank.rank()] = step.why();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& one : why) CHECK(mentions(one, "it has had enough"));
}

TEST_CASE("A rank that does not come is waited for no longer than was said", "[lockstep]") {
  Ranks ranks = four_ranks();
  std::vector<std::thread> threads;
  std::vector<std::string> why(4);
  for (const auto& rank : ranks) {
    if (rank->rank() == 3) continue;
    threads.emplace_back([&why, &rank = *rank] {
      Lockstep step = of(rank, 1);
      if (step.meet(bytes_of("here"))) return;
      why[rank.rank()] = step.why();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < 3; ++i) CHECK(mentions(why[i], "rank 3"));
  Lockstep late = of(*ranks[3]);
  CHECK_FALSE(late.meet(bytes_of("late")));
}

TEST_CASE("One rank alone goes on at its own pace", "[lockstep]") {
  contextune::rank::LocalCoordinator alone(test_deciders());
  Lockstep step(alone, tell_all, 8, {0}, 1);
  for (int i = 0; i < 3; ++i) {
    const auto all = step.meet(bytes_of("here"));
    REQUIRE(all);
    CHECK(*all == std::vector<Payload>{bytes_of("here")});
  }
}
