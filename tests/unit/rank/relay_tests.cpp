// Ranks whose relays pass on what they say, and what becomes of it where relays fail.
#include <set>
#include <utility>

#include "catch.hpp"
#include "mentions.hpp"
#include "rank/members/agreement_relay.hpp"
#include "simulated_ranks.hpp"
#include "tests/case_step.hpp"

using contextune::Payload;
using contextune::RankSet;
using contextune::Topic;
using contextune::Verdict;
using contextune::rank::Message;
using contextune::rank::MessageType;
using contextune::rank::Outbox;
using contextune::rank::Relay;
using contextune::rank::RelayRoutes;
using contextune::rank::RelaySpans;

namespace {

// Spans of four: rank 0's own, that of relay 4, and that of relay 8.
constexpr std::uint32_t num_ranks = 11;
constexpr std::uint32_t fewest_relayed = 3;

struct RelayedRanks : SimulatedRanks {
  explicit RelayedRanks(std::uint64_t seed) : SimulatedRanks(num_ranks, seed, fewest_relayed) {
    for (std::uint32_t rank = 0; rank < num_ranks; ++rank) attach(rank);
    steps(100);
  }
  void all_say(const Topic& topic, double seconds = 10) {
    for (const std::uint32_t rank : topic.ranks) say(rank, topic, seconds);
  }
};

Topic topic_without(std::uint32_t absent) {
  Topic topic = topic_of({});
  topic.ranks =
      RankSet::all_of(num_ranks).filtered([&](std::uint32_t rank) { return rank != absent; });
  return topic;
}

const Topic all_ranks{7, 1, RankSet::all_of(num_ranks)};
const RelaySpans spans(num_ranks, fewest_relayed);

Message about(const Topic& topic, MessageType type) {
  Message message;
  message.type = type;
  message.topic = topic;
  return message;
}

}  // namespace

TEST_CASE("Few ranks have no relays, and many as many as each relay has ranks", "[relay]") {
  for (const std::uint32_t few : {1U, 2U, 8U, 32U}) {
    const RelaySpans none(few);
    for (std::uint32_t rank = 0; rank < few; ++rank) CHECK(none.relay_of(rank) == 0);
  }
  for (const auto& [many, length] : {std::pair{33U, 8U}, {64U, 8U}, {1024U, 32U}, {16384U, 128U}}) {
    const RelaySpans some(many);
    CHECK(some.relay_of(length - 1) == 0);
    CHECK(some.is_relay(length));
    CHECK(some.relay_of(2 * length - 1) == length);
    CHECK_FALSE(some.is_relay(0));
  }
}

TEST_CASE("Ranks with relays get the same decision, made from all parts in the order of ranks",
          "[relay]") {
  RelayedRanks ranks(static_cast<std::uint64_t>(GENERATE(range(0, 20))));
  Payload all;
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank)
    all.push_back(static_cast<std::byte>(rank + 1));
  ranks.all_say(all_ranks);
  ranks.settle();
  for (const std::uint32_t rank : all_ranks.ranks) {
    CHECK(ranks.seen(rank, all_ranks).verdict == Verdict::Committed);
    CHECK(ranks.seen(rank, all_ranks).decision == all);
  }
  CHECK(ranks.num_topics_at_hub() == 0);
  // Three of its own span, and two relays: six each, after five that attached.
  CHECK(ranks.num_hub_messages() == 6 * (3 + 2) + 5);
}

TEST_CASE("Few of many ranks agree without their relays", "[relay]") {
  RelayedRanks ranks(1);
  const std::size_t before = ranks.num_messages();
  const Topic topic = topic_of({5, 6});
  ranks.all_say(topic);
  ranks.settle();
  CHECK(ranks.verdicts(topic) == std::set{Verdict::Committed});
  CHECK(ranks.num_messages() - before == 6 * 2);
}

TEST_CASE("Each rank of a relay is told how long it waited itself", "[relay]") {
  RelayedRanks ranks(1);
  ranks.say(5, all_ranks);
  ranks.steps(1000);
  ranks.pass_time(2);
  ranks.steps(1000);
  for (const std::uint32_t rank : all_ranks.ranks)
    if (rank != 5 && rank != 6) ranks.say(rank, all_ranks);
  ranks.steps(1000);
  ranks.pass_time(1);
  ranks.steps(1000);
  ranks.say(6, all_ranks);
  ranks.steps(1000);
  // A relay passes on what it holds when a time has passed: here, only that which is told.
  CHECK(ranks.seen(5, all_ranks).others_seconds == 1);
  CHECK(ranks.seen(7, all_ranks).others_seconds == 0);
  CHECK(ranks.seen(9, all_ranks).others_seconds == 1);
}

TEST_CASE("A relay that dies costs nothing but the topics that it is in", "[relay]") {
  for (std::uint64_t seed = 0; seed < 1000; seed += case_step) {
    CAPTURE(seed);
    RelayedRanks ranks(seed);
    const Topic topic = topic_without(4);
    ranks.all_say(topic);
    ranks.steps(ranks.random() % 60);
    ranks.kill(4);
    ranks.settle();
    REQUIRE(ranks.verdicts(topic) == std::set{Verdict::Committed});
    REQUIRE(ranks.num_topics_at_hub() == 0);
  }
}

TEST_CASE("A rank whose connection to its relay breaks agrees with the others", "[relay]") {
  for (std::uint64_t seed = 0; seed < 2000; seed += case_step) {
    CAPTURE(seed);
    RelayedRanks ranks(seed);
    ranks.all_say(all_ranks);
    ranks.steps(ranks.random() % 60);
    ranks.cut_off_relay(5);
    ranks.steps(ranks.random() % 10);
    ranks.cut_off_relay(9);
    ranks.settle();
    REQUIRE(ranks.verdicts(all_ranks) == std::set{Verdict::Committed});
    REQUIRE(ranks.num_topics_at_hub() == 0);
    REQUIRE(ranks.num_topics_at_members() == 0);
    const Topic next{7, 2, all_ranks.ranks};
    ranks.all_say(next);
    ranks.settle();
    REQUIRE(ranks.verdicts(next) == std::set{Verdict::Committed});
  }
}

TEST_CASE("A relay that stands still is left in the time that was stated", "[relay]") {
  for (std::uint64_t seed = 0; seed < 500; seed += case_step) {
    CAPTURE(seed);
    RelayedRanks ranks(seed);
    const Topic topic = topic_without(4);
    ranks.all_say(topic, 5);
    ranks.steps(ranks.random() % 50);
    ranks.stand_still(4);
    for (int i = 0; i < 50; ++i) {
      ranks.steps(1000);
      ranks.pass_time(0.1);
    }
    ranks.steps(1000);
    const std::set<Verdict> verdicts = ranks.verdicts(topic);
    // It may have kept the verdict from ranks that have voted: those hear it when it is silent.
    REQUIRE(verdicts.contains(Verdict::Committed));
    REQUIRE_FALSE(verdicts.contains(Verdict::Aborted));
  }
}

TEST_CASE("All ranks learn the verdict where each ends as soon as it has it", "[relay]") {
  for (std::uint64_t seed = 0; seed < 1000; seed += case_step) {
    CAPTURE(seed);
    RelayedRanks ranks(seed);
    ranks.all_say(all_ranks);
    while (ranks.step()) {
      for (const std::uint32_t rank : all_ranks.ranks)
        if (ranks.seen(rank, all_ranks).verdict != Verdict::Open) ranks.leave(rank);
    }
    ranks.settle();
    REQUIRE(ranks.verdicts(all_ranks) == std::set{Verdict::Committed});
  }
}

TEST_CASE("No rank sees Committed where another sees Aborted, whatever is lost of relays",
          "[relay]") {
  std::map<Verdict, int> counts;
  for (std::uint64_t seed = 0; seed < 6000; seed += case_step) {
    CAPTURE(seed);
    SimulatedRanks ranks(num_ranks, seed, fewest_relayed);
    const auto any = [&] { return static_cast<std::uint32_t>(ranks.random() % num_ranks); };
    std::vector<Topic> topics;
    for (std::uint64_t question = 1; question <= 3; ++question) {
      Topic topic = topic_of({}, question);
      topic.ranks = all_ranks.ranks.filtered([&](std::uint32_t rank) {
        return ranks.random() % 4 != 0 || rank == question % num_ranks;
      });
      topics.push_back(std::move(topic));
    }
    for (const Topic& topic : topics) {
      for (const std::uint32_t rank : topic.ranks) {
        if (ranks.random() % 100 != 0) ranks.say(rank, topic);
        ranks.steps(ranks.random() % 4);
        switch (ranks.random() % 60) {
          case 0:
            ranks.kill(any());
            break;
          case 1:
            ranks.cut(any());
            break;
          case 2:
            ranks.withdraw(rank, topic);
            break;
          case 3:
          case 4:
          case 5:
            ranks.cut_off_relay(any());
            break;
          case 6:
            ranks.pass_time(4);
            break;
          case 7:
            ranks.stand_still(any());
            break;
          case 8:
            ranks.hide(any());
            break;
          default:
            ranks.attach(any());
            break;
        }
      }
    }
    ranks.steps(ranks.random() % 100);
    if (ranks.random() % 2 == 0) ranks.kill(any());
    if (ranks.random() % 2 == 0) ranks.cut(any());
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

TEST_CASE("A relay joins what its ranks say, and holds it for a moment only", "[relay]") {
  Relay relay(4, spans);
  Outbox out;
  relay.attach(5);
  relay.attach(6);
  Message say = about(all_ranks, MessageType::Say);
  say.kind = 1;
  for (const std::uint32_t rank : {6U, 4U}) {
    say.payload = {static_cast<std::byte>(rank)};
    say.seconds = rank;
    REQUIRE(relay.pass_up(rank, say, 1, out).empty());
  }
  CHECK(out.empty());
  CHECK(relay.holds_messages());
  relay.tick(1 + Relay::hold_seconds / 2, out);
  CHECK(out.empty());
  SECTION("The last of them comes in time") {
    say.payload = {std::byte{5}};
    REQUIRE(relay.pass_up(5, say, 1, out).empty());
    REQUIRE(out.size() == 1);
    CHECK(out[0].message.ranks == RankSet{4, 5, 6});
    CHECK(out[0].message.parts ==
          std::vector<Payload>{{std::byte{4}}, {std::byte{5}}, {std::byte{6}}});
    CHECK(out[0].message.seconds == 4);
  }
  SECTION("It does not") {
    relay.tick(1 + Relay::hold_seconds, out);
    REQUIRE(out.size() == 1);
    CHECK(out[0].message.ranks == RankSet{4, 6});
    // The hub waits for this one, which goes on at once.
    REQUIRE(relay.pass_up(5, say, 2, out).empty());
    REQUIRE(out.size() == 2);
    CHECK(out[1].message.ranks == RankSet{5});
  }
  SECTION("It is lost") {
    relay.detach(5, out);
    REQUIRE(out.size() == 1);
    CHECK(out[0].message.ranks == RankSet{4, 6});
  }
  CHECK_FALSE(relay.holds_messages());
}

TEST_CASE("A relay passes nothing on that a rank has to say itself, or says for others",
          "[relay]") {
  Relay relay(4, spans);
  relay.attach(5);
  Outbox out;
  CHECK(mentions(relay.pass_up(5, about(all_ranks, MessageType::Withdraw), 0, out), "hub itself"));
  CHECK(
      mentions(relay.pass_up(5, about(topic_without(5), MessageType::Vote), 0, out), "for others"));
  Message of_two = about(all_ranks, MessageType::Vote);
  of_two.ranks = {5, 6};
  CHECK(mentions(relay.pass_up(5, of_two, 0, out), "for others"));
  CHECK(mentions(relay.pass_down(of_two, out), "only members send"));
  CHECK(out.empty());
}

TEST_CASE("A process that may end with its answer is told last, on relays and on rank 0",
          "[relay]") {
  Message verdict = about(all_ranks, MessageType::Verdict);
  Relay relay(4, spans);
  relay.attach(5);
  relay.attach(6);
  verdict.ranks = {4, 5, 6};
  Outbox out;
  REQUIRE(relay.pass_down(verdict, out).empty());
  CHECK(out.size() == 3);
  CHECK(out.back().to == 4);

  RelayRoutes routes(num_ranks, spans);
  routes.attach(5);
  verdict.ranks = all_ranks.ranks;
  std::vector<std::uint32_t> told;
  routes.pass_down(
      {0, verdict}, [](std::uint32_t) { return true; },
      [&](std::uint32_t rank, const Message&) { told.push_back(rank); });
  // Relay 4 tells rank 5, and all others are told themselves.
  CHECK(told == std::vector<std::uint32_t>{1, 2, 3, 4, 6, 7, 8, 9, 10, 0});
}

TEST_CASE("A relay speaks for those of its span that have not left it", "[relay]") {
  RelayRoutes routes(num_ranks, spans);
  CHECK(routes.spoken_for(4, {3, 4, 5, 6, 8}) == RankSet{4, 5, 6});
  routes.attach(5);
  routes.detach(5);
  routes.attach(5);
  CHECK(routes.spoken_for(4, {4, 5, 6}) == RankSet{4, 6});
}
