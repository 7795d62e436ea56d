#include <algorithm>
#include <set>

#include "catch.hpp"
#include "simulated_ranks.hpp"
#include "tests/case_step.hpp"

using contextune::Agreement;
using contextune::Topic;
using contextune::Verdict;

TEST_CASE("Ranks that all speak get the same decision, whatever order messages take",
          "[agreement]") {
  const auto seed = GENERATE(range(0, 20));
  SimulatedRanks ranks(4, static_cast<std::uint64_t>(seed));
  const Topic topic = topic_of({0, 1, 3});
  for (const std::uint32_t rank : topic.ranks) ranks.say(rank, topic);
  ranks.settle();
  for (const std::uint32_t rank : topic.ranks) {
    CHECK(ranks.seen(rank, topic).verdict == Verdict::Committed);
    CHECK(ranks.seen(rank, topic).decision ==
          contextune::Payload{std::byte{1}, std::byte{2}, std::byte{4}});
  }
  CHECK(ranks.num_topics_at_hub() == 0);
}

TEST_CASE("Ranks are told how long they waited for those that came late", "[agreement]") {
  constexpr double long_ago = 30;
  SimulatedRanks ranks(3, 1);
  const Topic topic = topic_of({0, 1, 2});
  ranks.say(0, topic, long_ago);
  ranks.steps(1000);
  ranks.pass_time(2);
  ranks.say(1, topic, long_ago);
  ranks.steps(1000);
  ranks.pass_time(1);
  ranks.say(2, topic, long_ago);
  ranks.pass_time(4);
  ranks.steps(1000);
  CHECK(ranks.seen(0, topic).others_seconds == 3 + 4);
  CHECK(ranks.seen(1, topic).others_seconds == 1 + 4);
  CHECK(ranks.seen(2, topic).others_seconds == 0);
}

TEST_CASE("Rank 0 decides for a group that it is not in", "[agreement]") {
  SimulatedRanks ranks(3, 1);
  const Topic topic = topic_of({1, 2});
  ranks.say(1, topic);
  ranks.say(2, topic);
  ranks.settle();
  CHECK(ranks.verdicts(topic) == std::set{Verdict::Committed});
}

TEST_CASE("A rank that does not come is named, and gets the answer when it does", "[agreement]") {
  SimulatedRanks ranks(3, 1);
  const Topic topic = topic_of({0, 1, 2});
  ranks.say(0, topic, 1);
  ranks.say(1, topic, 1);
  ranks.settle();
  CHECK(ranks.seen(0, topic).verdict == Verdict::Aborted);
  CHECK(ranks.seen(1, topic).culprit == 2);
  ranks.say(2, topic, 1);
  CHECK(ranks.seen(2, topic).verdict == Verdict::Aborted);
  CHECK(ranks.num_topics_at_hub() == 0);
}

TEST_CASE("Of several deadlines the earliest counts", "[agreement]") {
  SimulatedRanks ranks(3, 1);
  const Topic topic = topic_of({0, 1, 2});
  ranks.say(0, topic, 1000);
  ranks.say(1, topic, 1);
  ranks.settle();
  CHECK(ranks.seen(0, topic).verdict == Verdict::Aborted);
}

TEST_CASE("Whoever withdraws before it has voted aborts for all", "[agreement]") {
  SimulatedRanks ranks(3, 1);
  const Topic topic = topic_of({0, 1, 2});
  ranks.say(0, topic);
  ranks.say(1, topic);
  ranks.withdraw(1, topic);
  ranks.say(2, topic);
  ranks.settle();
  CHECK(ranks.verdicts(topic) == std::set{Verdict::Aborted});
  CHECK(ranks.seen(0, topic).culprit == 1);
}

TEST_CASE("Ranks that take a group for different ranks are told so, and wait for nobody",
          "[agreement]") {
  SimulatedRanks ranks(4, static_cast<std::uint64_t>(GENERATE(range(0, 20))));
  const Topic small = topic_of({0, 1, 2});
  const Topic large = topic_of({0, 1, 2, 3});
  const Topic other_question = topic_of({1, 3}, 2);
  const bool large_first = GENERATE(false, true);
  ranks.say(0, large_first ? large : small, 1e6);
  ranks.steps(ranks.random() % 3);
  ranks.say(1, large_first ? small : large, 1e6);
  for (const std::uint32_t rank : {2U, 3U}) ranks.say(rank, large, 1e6);
  for (const std::uint32_t rank : other_question.ranks) ranks.say(rank, other_question);
  // No deadline helps.
  ranks.steps(1000);
  for (const auto& [rank, topic] : {std::pair{0U, large_first ? large : small},
                                    {1U, large_first ? small : large},
                                    {2U, large},
                                    {3U, large}}) {
    const Agreement agreement = ranks.seen(rank, topic);
    CHECK(agreement.verdict == Verdict::Aborted);
    CHECK(agreement.why.find("0, 1, 2, 3") != std::string::npos);
    CHECK(agreement.why.find("the ranks of the group differ") != std::string::npos);
  }
  CHECK(ranks.verdicts(other_question) == std::set{Verdict::Committed});
}

TEST_CASE("A rank that is gone aborts what is open and all that comes", "[agreement]") {
  SimulatedRanks ranks(3, 1);
  const Topic open = topic_of({0, 1, 2});
  const Topic later = topic_of({0, 2}, 2);
  const Topic without = topic_of({0, 1}, 3);
  ranks.say(0, open);
  ranks.kill(2);
  ranks.settle();
  CHECK(ranks.seen(0, open).culprit == 2);
  ranks.say(0, later);
  ranks.say(0, without);
  ranks.say(1, without);
  ranks.settle();
  CHECK(ranks.seen(0, later).verdict == Verdict::Aborted);
  CHECK(ranks.verdicts(without) == std::set{Verdict::Committed});
}

TEST_CASE("A rank that lost rank 0 after its vote learns from one that knows", "[agreement]") {
  // Of all orders, those count in which the verdict was lost on its way to one rank only.
  int learned = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimulatedRanks ranks(3, seed);
    const Topic topic = topic_of({1, 2});
    ranks.say(1, topic);
    ranks.say(2, topic);
    while (ranks.seen(1, topic).verdict == Verdict::Open && ranks.step()) {
    }
    if (ranks.seen(2, topic).verdict != Verdict::Open) continue;
    ranks.kill(0);
    ranks.settle();
    REQUIRE(ranks.verdicts(topic) == std::set{Verdict::Committed});
    ++learned;
  }
  CHECK(learned > 10);
}

TEST_CASE("If rank 0 is lost and all others have voted, nobody guesses", "[agreement]") {
  int unknown = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SimulatedRanks ranks(3, seed);
    const Topic topic = topic_of({0, 1, 2});
    for (const std::uint32_t rank : topic.ranks) ranks.say(rank, topic);
    ranks.steps(seed % 12);
    ranks.kill(0);
    ranks.settle();
    REQUIRE(ranks.keeps_promise(topic));
    CHECK(ranks.seen(1, topic).verdict == ranks.seen(2, topic).verdict);
    if (ranks.seen(1, topic).verdict == Verdict::Unknown) ++unknown;
  }
  CHECK(unknown > 10);
}

TEST_CASE("A rank that is cut off at any moment fares as the others, for rank 0 can be asked",
          "[agreement]") {
  for (std::uint64_t seed = 0; seed < 3000; seed += case_step) {
    CAPTURE(seed);
    SimulatedRanks ranks(4, seed);
    const Topic topic = topic_of({1, 2, 3});
    for (const std::uint32_t rank : topic.ranks) ranks.say(rank, topic);
    ranks.steps(ranks.random() % 16);
    ranks.cut(1);
    ranks.settle();
    REQUIRE(ranks.verdicts(topic).size() == 1);
  }
}

TEST_CASE("No rank sees Committed where another sees Aborted, whatever is lost", "[agreement]") {
  std::map<Verdict, int> counts;
  for (std::uint64_t seed = 0; seed < 4000; seed += case_step) {
    CAPTURE(seed);
    const auto num_ranks = static_cast<std::uint32_t>(2 + seed % 4);
    SimulatedRanks ranks(num_ranks, seed);
    std::vector<Topic> topics;
    for (std::uint64_t question = 1; question <= 3; ++question) {
      Topic topic = topic_of({}, question);
      for (std::uint32_t rank = 0; rank < num_ranks; ++rank) {
        if (ranks.random() % 4 != 0 || rank == question % num_ranks) topic.ranks.push_back(rank);
      }
      topics.push_back(std::move(topic));
    }
    for (const Topic& topic : topics) {
      for (const std::uint32_t rank : topic.ranks) {
        if (ranks.random() % 30 != 0) ranks.say(rank, topic);
        ranks.steps(ranks.random() % 4);
        const auto any = static_cast<std::uint32_t>(ranks.random() % num_ranks);
        switch (ranks.random() % 24) {
          case 0:
            ranks.kill(any);
            break;
          case 1:
            ranks.cut(any);
            break;
          case 2:
            ranks.withdraw(rank, topic);
            break;
          case 3:
            ranks.hide(any);
            break;
          case 4:
            ranks.pass_time(4);
            break;
          default:
            break;
        }
      }
    }
    ranks.steps(ranks.random() % 40);
    if (ranks.random() % 2 == 0) ranks.kill(static_cast<std::uint32_t>(ranks.random() % num_ranks));
    if (ranks.random() % 2 == 0) ranks.cut(static_cast<std::uint32_t>(ranks.random() % num_ranks));
    ranks.settle();
    for (const Topic& topic : topics) {
      REQUIRE(ranks.keeps_promise(topic));
      for (const std::uint32_t rank : topic.ranks) ++counts[ranks.seen(rank, topic).verdict];
    }
  }
  // All of them have happened.
  CHECK(counts[Verdict::Committed] > 1000 / case_step);
  CHECK(counts[Verdict::Aborted] > 1000 / case_step);
  CHECK(counts[Verdict::Unknown] > 100 / case_step);
}

TEST_CASE("Whoever has spoken and lives gets an answer, whatever is lost", "[agreement]") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    CAPTURE(seed);
    SimulatedRanks ranks(4, seed);
    const Topic topic = topic_of({0, 1, 2, 3});
    for (const std::uint32_t rank : topic.ranks) {
      ranks.say(rank, topic);
      ranks.steps(ranks.random() % 5);
    }
    ranks.steps(ranks.random() % 30);
    ranks.kill(static_cast<std::uint32_t>(ranks.random() % 4));
    ranks.cut(static_cast<std::uint32_t>(ranks.random() % 4));
    ranks.settle();
    for (const std::uint32_t rank : topic.ranks) {
      if (ranks.is_alive(rank)) REQUIRE(ranks.seen(rank, topic).verdict != Verdict::Open);
    }
  }
}
