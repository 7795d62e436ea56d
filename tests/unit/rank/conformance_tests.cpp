#include <string>
#include <thread>

#include "catch.hpp"
#include "mentions.hpp"
#include "rank/members/local_coordinator.hpp"
#include "several_ranks.hpp"

using contextune::Agreement;
using contextune::Topic;
using contextune::Verdict;
using contextune::rank::LocalCoordinator;

namespace {

enum class Kind { Local, TwoOnOneHost, FourThatSpin, ThreeOverTcp, ThreeGathered, EightWithRelays };

// Only one test of this process at a time listens there.
int free_port() {
  static int port =
      23000 + static_cast<int>(std::hash<std::thread::id>()(std::this_thread::get_id()) % 4000);
  return ++port;
}

Ranks make(Kind kind) {
  if (kind == Kind::Local) {
    Ranks ranks;
    ranks.push_back(std::make_unique<LocalCoordinator>(test_deciders()));
    return ranks;
  }
  if (kind == Kind::ThreeGathered) return make_gathered_ranks();
  if (kind == Kind::EightWithRelays) return make_relayed_ranks(8);
  auto settings = test_settings(kind == Kind::TwoOnOneHost   ? 2
                                : kind == Kind::FourThatSpin ? 4
                                                             : 3);
  settings.may_spin = kind == Kind::FourThatSpin;
  if (kind == Kind::ThreeOverTcp) settings.address = "tcp:127.0.0.1:" + std::to_string(free_port());
  return make_ranks(settings);
}

Kind any_kind() {
  return GENERATE(Kind::Local, Kind::TwoOnOneHost, Kind::FourThatSpin, Kind::ThreeOverTcp,
                  Kind::ThreeGathered, Kind::EightWithRelays);
}

Topic topic_of_all(const Ranks& ranks, std::uint64_t question = 1) {
  return {3, question, contextune::RankSet::all_of(static_cast<std::uint32_t>(ranks.size()))};
}

std::string part_of(std::size_t rank) {
  return "part " + std::to_string(rank) + ";";
}

void all_say(Ranks& ranks, const Topic& topic, std::uint32_t kind) {
  for (const auto& rank : ranks)
    rank->say(topic, kind, bytes_of(part_of(rank->rank())), long_enough);
}

}  // namespace

TEST_CASE("Every rank gets the decision, made from all parts in the order of ranks",
          "[conformance]") {
  Ranks ranks = make(any_kind());
  const Topic topic = topic_of_all(ranks);
  all_say(ranks, topic, join_parts);
  std::string expected;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) expected += part_of(rank);
  for (const auto& rank : ranks) {
    const Agreement agreement = rank->wait(topic, long_enough);
    REQUIRE(agreement.verdict == Verdict::Committed);
    CHECK(agreement.decision == bytes_of(expected));
    CHECK(agreement.why.empty());
    CHECK(rank->num_ranks() == ranks.size());
    CHECK(rank->lost().empty());
  }
}

TEST_CASE("What is refused aborts on every rank, with the reason", "[conformance]") {
  Ranks ranks = make(any_kind());
  const auto [kind, reason] = GENERATE(table<std::uint32_t, std::string>(
      {{refuse_all, "not today"}, {throw_error, "broken"}, {99, "kind 99"}}));
  const Topic topic = topic_of_all(ranks);
  all_say(ranks, topic, kind);
  for (const auto& rank : ranks) {
    const Agreement agreement = rank->wait(topic, long_enough);
    CHECK(agreement.verdict == Verdict::Aborted);
    CHECK(agreement.decision.empty());
    CHECK(mentions(agreement.why, reason));
  }
}

TEST_CASE("An answer is given once", "[conformance]") {
  Ranks ranks = make(any_kind());
  const Topic topic = topic_of_all(ranks);
  all_say(ranks, topic, join_parts);
  for (const auto& rank : ranks) {
    CHECK(rank->wait(topic, long_enough).verdict == Verdict::Committed);
    CHECK(rank->poll(topic).verdict == Verdict::Open);
  }
}

TEST_CASE("Nobody waits for an answer to what he has not said", "[conformance]") {
  Ranks ranks = make(any_kind());
  CHECK(ranks[0]->wait(topic_of_all(ranks), long_enough).verdict == Verdict::Open);
}

TEST_CASE("A topic that makes no sense is aborted where it is said", "[conformance]") {
  Ranks ranks = make(any_kind());
  const auto last = static_cast<std::uint32_t>(ranks.size());
  const std::vector<std::uint32_t> members =
      GENERATE_COPY(std::vector<std::uint32_t>{}, std::vector<std::uint32_t>{0, 0},
                    std::vector<std::uint32_t>{last});
  const Topic topic{3, 1, members};
  ranks[0]->say(topic, join_parts, {}, 1);
  const Agreement agreement = ranks[0]->wait(topic, long_enough);
  CHECK(agreement.verdict == Verdict::Aborted);
  CHECK_FALSE(agreement.why.empty());
}

TEST_CASE("Whoever withdraws aborts, and may give no reason", "[conformance]") {
  Ranks ranks = make(any_kind());
  const Topic topic = topic_of_all(ranks);
  ranks.back()->withdraw(topic, GENERATE("", "changed its mind"));
  all_say(ranks, topic, join_parts);
  for (const auto& rank : ranks) {
    const Agreement agreement = rank->wait(topic, long_enough);
    CHECK(agreement.verdict == Verdict::Aborted);
    CHECK_FALSE(agreement.why.empty());
    CHECK(agreement.culprit == ranks.back()->rank());
  }
}

TEST_CASE("Many topics are agreed on at once, from many threads", "[conformance]") {
  Ranks ranks = make(any_kind());
  constexpr std::uint64_t questions = 50;
  std::vector<std::uint64_t> committed(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    threads.emplace_back([&, at] {
      // Each in another order.
      for (std::uint64_t i = 0; i < questions; ++i)
        ranks[at]->say(topic_of_all(ranks, (i * 7 + at) % questions), join_parts,
                       bytes_of(part_of(at)), long_enough);
      for (std::uint64_t i = 0; i < questions; ++i) {
        const Agreement agreement = ranks[at]->wait(topic_of_all(ranks, i), long_enough);
        if (agreement.verdict == Verdict::Committed) ++committed[at];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(committed == std::vector<std::uint64_t>(ranks.size(), questions));
}

TEST_CASE("A part of a mebibyte is no trouble", "[conformance]") {
  Ranks ranks = make(any_kind());
  const Topic topic = topic_of_all(ranks);
  for (const auto& rank : ranks)
    rank->say(topic, join_parts, bytes_of(std::string(1U << 20U, 'x')), long_enough);
  for (const auto& rank : ranks)
    CHECK(rank->wait(topic, long_enough).decision.size() == ranks.size() << 20U);
}

TEST_CASE("What cannot be sent is aborted, on all ranks", "[conformance]") {
  Ranks ranks = make(
      GENERATE(Kind::TwoOnOneHost, Kind::ThreeOverTcp, Kind::ThreeGathered, Kind::EightWithRelays));
  const Topic topic = topic_of_all(ranks);
  ranks[0]->say(topic, join_parts, bytes_of("x"), 0.2);
  ranks[1]->say(topic, join_parts, contextune::Payload(std::size_t{9} << 20U), 0.2);
  CHECK(ranks[1]->wait(topic, long_enough).verdict == Verdict::Aborted);
  CHECK(ranks[0]->wait(topic, long_enough).verdict == Verdict::Aborted);
}

TEST_CASE("A group agrees without those that are not in it", "[conformance]") {
  Ranks ranks = make(Kind::FourThatSpin);
  const Topic topic{3, 1, {1, 3}};
  ranks[1]->say(topic, join_parts, bytes_of("a"), long_enough);
  ranks[3]->say(topic, join_parts, bytes_of("b"), long_enough);
  CHECK(ranks[1]->wait(topic, long_enough).decision == bytes_of("ab"));
  CHECK(ranks[3]->wait(topic, long_enough).decision == bytes_of("ab"));
}

TEST_CASE("Who does not come in time is named, and hears the same when he comes", "[conformance]") {
  Ranks ranks = make(GENERATE(Kind::TwoOnOneHost, Kind::FourThatSpin, Kind::ThreeOverTcp,
                              Kind::ThreeGathered, Kind::EightWithRelays));
  // Once they all know each other, nobody else is late.
  const Topic met = topic_of_all(ranks, 1);
  for (const auto& rank : ranks) rank->say(met, join_parts, bytes_of("x"), long_enough);
  for (const auto& rank : ranks)
    REQUIRE(rank->wait(met, long_enough).verdict == Verdict::Committed);
  const Topic topic = topic_of_all(ranks, 2);
  for (std::size_t at = 0; at + 1 < ranks.size(); ++at)
    ranks[at]->say(topic, join_parts, bytes_of("x"), 0.5);
  for (std::size_t at = 0; at + 1 < ranks.size(); ++at) {
    const Agreement agreement = ranks[at]->wait(topic, long_enough);
    CHECK(agreement.verdict == Verdict::Aborted);
    CHECK(agreement.culprit == ranks.back()->rank());
    CHECK(mentions(agreement.why, "0.5 s"));
  }
  ranks.back()->say(topic, join_parts, bytes_of("x"), 0.5);
  CHECK(ranks.back()->wait(topic, long_enough).verdict == Verdict::Aborted);
}

TEST_CASE("A wait ends when it is told to, and the answer still comes", "[conformance]") {
  Ranks ranks = make(GENERATE(Kind::TwoOnOneHost, Kind::ThreeOverTcp, Kind::ThreeGathered));
  const Topic topic = topic_of_all(ranks);
  ranks[0]->say(topic, join_parts, bytes_of("x"), long_enough);
  CHECK(ranks[0]->wait(topic, 0.05).verdict == Verdict::Open);
  for (std::size_t at = 1; at < ranks.size(); ++at)
    ranks[at]->say(topic, join_parts, bytes_of("x"), long_enough);
  const Agreement agreement = ranks[0]->wait(topic, long_enough);
  CHECK(agreement.verdict == Verdict::Committed);
  CHECK(agreement.waited_seconds >= 0.05);
}
