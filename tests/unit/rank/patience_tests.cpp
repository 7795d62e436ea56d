// Who is waited for, and how long.
#include <set>

#include "catch.hpp"
#include "simulated_ranks.hpp"

using contextune::Topic;
using contextune::Verdict;
using contextune::rank::max_open_topics;
using contextune::rank::Member;
using contextune::rank::Message;
using contextune::rank::MessageType;
using contextune::rank::Outbox;

namespace {

void let_pass(SimulatedRanks& ranks, double seconds) {
  for (double waited = 0; waited < seconds; waited += 0.5) {
    ranks.steps(1000);
    ranks.pass_time(0.5);
  }
  ranks.steps(1000);
}

}  // namespace

TEST_CASE("A rank that is occupied is waited for as long as it said, and no longer", "[patience]") {
  SimulatedRanks ranks(3, static_cast<std::uint64_t>(GENERATE(range(0, 10))));
  const Topic topic = topic_of({0, 1, 2});
  const auto wait = [&](double seconds) { let_pass(ranks, seconds); };
  const bool comes = GENERATE(true, false);
  ranks.occupied(2, topic, 20);
  ranks.say(0, topic, 1);
  ranks.say(1, topic, 1);
  wait(15);
  CHECK(ranks.verdicts(topic) == std::set{Verdict::Open});
  if (comes) ranks.say(2, topic, 1);
  wait(10);
  for (const std::uint32_t rank : {0U, 1U})
    CHECK(ranks.seen(rank, topic).verdict == (comes ? Verdict::Committed : Verdict::Aborted));
  if (!comes)
    CHECK(ranks.seen(0, topic).why ==
          "rank 2 did not come within 1 s, nor in the time that it asked for: it is building");
}

TEST_CASE("Those who wait hear in the time they stated that a rank does not come", "[patience]") {
  SimulatedRanks ranks(3, static_cast<std::uint64_t>(GENERATE(range(0, 10))));
  const double seconds = GENERATE(0.2, 1.0, 5.0);
  const Topic topic = topic_of({0, 1, 2});
  ranks.say(0, topic, seconds);
  ranks.say(1, topic, seconds);
  for (int i = 0; i < 99; ++i) {
    ranks.steps(1000);
    ranks.pass_time(seconds / 100);
  }
  ranks.steps(1000);
  for (const std::uint32_t rank : {0U, 1U}) {
    CHECK(ranks.seen(rank, topic).verdict == Verdict::Aborted);
    CHECK(ranks.seen(rank, topic).culprit == 2);
  }
}

TEST_CASE("Those who wait hear in the time they stated that a rank does not vote", "[patience]") {
  SimulatedRanks ranks(2, 1);
  const Topic topic = topic_of({0, 1});
  ranks.say(0, topic, 1);
  ranks.say(1, topic, 1);
  // All have spoken, and one stands still before it has heard what it is to vote on.
  ranks.stand_still(1);
  ranks.steps(1000);
  ranks.pass_time(0.99);
  ranks.steps(1000);
  CHECK(ranks.seen(0, topic).verdict == Verdict::Aborted);
  CHECK(ranks.seen(0, topic).culprit == 1);
}

TEST_CASE("One that was occupied with another question, or has spoken since, is not waited for",
          "[patience]") {
  SimulatedRanks ranks(2, 1);
  const Topic first = topic_of({0, 1});
  const Topic second = topic_of({0, 1}, 2);
  ranks.occupied(1, first, 1000);
  ranks.say(0, first, 1);
  ranks.say(1, first, 1);
  ranks.settle();
  CHECK(ranks.verdicts(first) == std::set{Verdict::Committed});
  ranks.say(0, second, 1);
  ranks.settle();
  CHECK(ranks.seen(0, second).verdict == Verdict::Aborted);
}

TEST_CASE("A rank that is engaged with others is waited for until it is free", "[patience]") {
  SimulatedRanks ranks(4, static_cast<std::uint64_t>(GENERATE(range(0, 10))));
  const Topic topic = topic_of({1, 2});
  const Topic behind{8, 1, {2, 3}};
  // While it is asked already, or before that.
  const bool is_late = GENERATE(true, false);
  if (!is_late) ranks.engage(1, {0, 1});
  ranks.say(3, behind, 1);
  ranks.say(2, topic, 1);
  if (is_late) {
    let_pass(ranks, 0.5);
    ranks.engage(1, {0, 1});
  }
  let_pass(ranks, 100);
  CHECK(ranks.seen(2, topic).verdict == Verdict::Open);
  // Rank 2 is waiting itself.
  CHECK(ranks.seen(3, behind).verdict == Verdict::Open);
  const bool comes = GENERATE(true, false);
  ranks.disengage(1, {0, 1});
  let_pass(ranks, 0.5);
  if (comes) ranks.say(1, topic, 1);
  let_pass(ranks, 2);
  CHECK(ranks.seen(2, topic).verdict == (comes ? Verdict::Committed : Verdict::Aborted));
  let_pass(ranks, 2);
  CHECK(ranks.seen(3, behind).verdict == Verdict::Aborted);
}

TEST_CASE("A rank that is engaged again and again is waited for each time", "[patience]") {
  SimulatedRanks ranks(4, 1);
  const Topic topic = topic_of({1, 2});
  const Topic behind{8, 2, {2, 3}};
  const double pause = GENERATE(0.0, 0.5);
  ranks.say(2, topic, 1);
  ranks.say(3, behind, 1);
  for (int i = 0; i < 5; ++i) {
    ranks.engage(1, {0, 1});
    let_pass(ranks, 20);
    ranks.disengage(1, {0, 1});
    let_pass(ranks, pause);
  }
  ranks.say(1, topic, 1);
  let_pass(ranks, 0.5);
  ranks.say(2, behind, 1);
  let_pass(ranks, 1);
  CHECK(ranks.verdicts(topic) == std::set{Verdict::Committed});
  CHECK(ranks.verdicts(behind) == std::set{Verdict::Committed});
}

TEST_CASE("Whoever waits behind a rank that is just being asked waits for the answer",
          "[patience]") {
  SimulatedRanks ranks(4, 1);
  const Topic topic = topic_of({1, 2});
  const Topic behind{8, 2, {2, 3}};
  ranks.engage(1, {0, 1});
  ranks.say(3, behind, 1);
  ranks.steps(1000);
  ranks.pass_time(0.5);
  // When it is looked at who waits behind, the other is asked.
  ranks.say(2, topic, 1);
  let_pass(ranks, 20);
  CHECK(ranks.seen(2, topic).verdict == Verdict::Open);
  CHECK(ranks.seen(3, behind).verdict == Verdict::Open);
}

TEST_CASE("Those that a rank is engaged with wait no longer for it than else", "[patience]") {
  SimulatedRanks ranks(2, 1);
  const Topic topic = topic_of({0, 1});
  ranks.engage(1, {0, 1});
  ranks.say(0, topic, 1);
  let_pass(ranks, 3);
  CHECK(ranks.seen(0, topic).verdict == Verdict::Aborted);
}

TEST_CASE("Ranks that wait for one another in a circle do not do so for ever", "[patience]") {
  SimulatedRanks ranks(3, 1);
  const std::vector<Topic> circle{{1, 1, {0, 1}}, {2, 1, {1, 2}}, {3, 1, {0, 2}}};
  ranks.say(0, circle[0], 1);
  ranks.say(1, circle[1], 2);
  ranks.say(2, circle[2], 3);
  let_pass(ranks, 8);
  CHECK(ranks.seen(0, circle[0]).verdict == Verdict::Aborted);
  CHECK(ranks.seen(1, circle[1]).verdict == Verdict::Aborted);
  CHECK(ranks.seen(2, circle[2]).verdict == Verdict::Aborted);
}

TEST_CASE("Ranks that wait together for one that is engaged hold up what they have not come to",
          "[patience]") {
  SimulatedRanks ranks(5, static_cast<std::uint64_t>(GENERATE(range(0, 10))));
  const Topic topic{8, 1, {1, 2, 3}};
  const Topic behind{9, 2, {0, 1, 2}};
  ranks.engage(3, {3, 4});
  ranks.say(1, topic, 1);
  ranks.say(2, topic, 1);
  ranks.say(0, behind, 1);
  let_pass(ranks, 100);
  CHECK(ranks.seen(0, behind).verdict == Verdict::Open);
  ranks.disengage(3, {3, 4});
  ranks.say(3, topic, 1);
  ranks.say(1, behind, 1);
  ranks.say(2, behind, 1);
  let_pass(ranks, 1);
  CHECK(ranks.verdicts(topic) == std::set{Verdict::Committed});
  CHECK(ranks.verdicts(behind) == std::set{Verdict::Committed});
}

TEST_CASE("A rank whose own wait has just ended has time to say what it is at now", "[patience]") {
  SimulatedRanks ranks(4, static_cast<std::uint64_t>(GENERATE(range(0, 10))));
  const Topic topic = topic_of({1, 2});
  const Topic behind{8, 2, {2, 3}};
  ranks.engage(1, {0, 1});
  ranks.say(2, topic, 1);
  ranks.say(3, behind, 1);
  let_pass(ranks, 5);
  ranks.disengage(1, {0, 1});
  ranks.say(1, topic, 1);
  // Who waits behind it is looked at while it votes, or when it knows the verdict.
  ranks.steps(GENERATE(2U, 1000U));
  ranks.pass_time(0.5);
  ranks.steps(1000);
  CHECK(ranks.verdicts(topic) == std::set{Verdict::Committed});
  CHECK(ranks.seen(3, behind).verdict == Verdict::Open);
  const bool is_at_it = GENERATE(true, false);
  if (is_at_it) {
    ranks.engage(2, {1, 2});
    let_pass(ranks, 20);
    CHECK(ranks.seen(3, behind).verdict == Verdict::Open);
    ranks.disengage(2, {1, 2});
    ranks.say(2, behind, 1);
  }
  let_pass(ranks, 1);
  CHECK(ranks.seen(3, behind).verdict == (is_at_it ? Verdict::Committed : Verdict::Aborted));
}

TEST_CASE("However short a time was stated, those who wait hear twice a second that they may",
          "[patience]") {
  SimulatedRanks ranks(4, 1);
  ranks.engage(1, {0, 1});
  ranks.say(2, {7, 1, {1, 2}}, 1e-6);
  ranks.say(3, {8, 2, {2, 3}}, 1e-6);
  let_pass(ranks, 5);
  const std::size_t before = ranks.num_messages();
  for (int ticks = 0; ticks < 1000; ++ticks) {
    ranks.steps(1000);
    ranks.pass_time(0.01);
  }
  CHECK(ranks.seen(3, {8, 2, {2, 3}}).verdict == Verdict::Open);
  CHECK(ranks.num_messages() - before <= 21);
}

TEST_CASE("A rank remembers no more questions than can be open", "[patience]") {
  Member member(1, 2, 5);
  Outbox out;
  Message inquiry;
  inquiry.type = MessageType::Inquire;
  for (std::uint64_t question = 0; question < 2 * max_open_topics; ++question) {
    inquiry.topic = topic_of({0, 1}, question);
    REQUIRE(member.receive(inquiry, out).empty());
  }
  REQUIRE(out.empty());
  member.engage({1, 2}, "is searching", out);
  CHECK(out.size() == max_open_topics);
}

TEST_CASE("A rank that has spoken elsewhere and does not wait there is waited for no longer",
          "[patience]") {
  SimulatedRanks ranks(2, 1);
  const Topic unhurried{9, 1, {0, 1}};
  ranks.say(1, unhurried, 3600);
  const Topic topic = topic_of({0, 1});
  ranks.say(0, topic, 1);
  let_pass(ranks, 3);
  CHECK(ranks.seen(0, topic).verdict == Verdict::Aborted);
}
