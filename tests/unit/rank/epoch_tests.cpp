#include <optional>
#include <string>
#include <vector>

#include "by_hand.hpp"
#include "catch.hpp"
#include "mentions.hpp"
#include "several_ranks.hpp"

using contextune::Topic;
using contextune::Verdict;
using namespace contextune::rank;

namespace {

const Topic first_question{1, 1, {0, 1}};

Message about(MessageType type, const Topic& topic) {
  Message message;
  message.type = type;
  message.topic = topic;
  return message;
}

}  // namespace

// What a process that took the place of a lost rank 0 does not know, the lost one may have
// committed: its "not that I know" must not pass for "aborted".
TEST_CASE("Rank 0 answers those only who ask about its own time", "[epoch]") {
  const SocketSettings settings = test_settings(2);
  SocketCoordinator hub(of_rank(settings, 0), test_deciders());
  ByHand rank_1(settings);
  const auto joined = rank_1.call(Purpose::Join);
  rank_1.tell_address(*joined, "unix:nowhere");
  Message say = about(MessageType::Say, first_question);
  say.kind = join_parts;
  say.seconds = long_enough;
  say.payload = bytes_of("y");
  joined->send(say);
  hub.say(first_question, join_parts, bytes_of("x"), long_enough);
  REQUIRE(rank_1.next(MessageType::Propose));
  REQUIRE(rank_1.epoch != 0);

  const bool same_time = GENERATE(false, true);
  const auto asking = rank_1.call(Purpose::Ask);
  Message ask = about(MessageType::Ask, first_question);
  ask.epoch = rank_1.epoch + (same_time ? 0 : 1);
  asking->send(ask);
  const std::optional<Message> answer = rank_1.next(MessageType::Tell);
  CHECK(answer.has_value() == same_time);
  // Who was refused changes nothing.
  if (!same_time) {
    rank_1.forget_end();
    joined->send(about(MessageType::Vote, first_question));
    CHECK(hub.wait(first_question, long_enough).verdict == Verdict::Committed);
  } else {
    CHECK(answer->knowledge == Knowledge::Aborted);
    CHECK(hub.wait(first_question, long_enough).verdict == Verdict::Aborted);
  }
  joined->close("the test is over");
}

TEST_CASE("A rank hears once where those listen that it agrees with, whoever joins meanwhile",
          "[epoch]") {
  const SocketSettings settings = test_settings(3);
  SocketCoordinator hub(of_rank(settings, 0), test_deciders());
  ByHand rank_1(settings);
  ByHand rank_2(settings, 2);
  const auto agree = [&](ByHand& rank, const std::shared_ptr<Connection>& joined,
                         const Topic& topic) {
    Message say = about(MessageType::Say, topic);
    say.kind = join_parts;
    say.seconds = long_enough;
    joined->send(say);
    hub.say(topic, join_parts, bytes_of("x"), long_enough);
    REQUIRE(rank.next(MessageType::Propose));
    joined->send(about(MessageType::Vote, topic));
    REQUIRE(rank.next(MessageType::Verdict));
    CHECK(hub.wait(topic, long_enough).verdict == Verdict::Committed);
  };
  const auto join = [](ByHand& rank, const std::string& address) {
    auto joined = rank.call(Purpose::Join);
    rank.tell_address(*joined, address);
    return joined;
  };
  const auto joined_1 = join(rank_1, "unix:first");
  agree(rank_1, joined_1, first_question);
  const auto joined_2 = join(rank_2, "unix:second");
  agree(rank_2, joined_2, {2, 1, {0, 2}});
  agree(rank_1, joined_1, {1, 2, {0, 1}});
  REQUIRE(rank_1.introductions.size() == 1);
  CHECK(rank_1.introductions[0].topic.ranks == contextune::RankSet{0, 1});
  CHECK(rank_1.introductions[0].addresses ==
        std::vector<std::string>{settings.address, "unix:first"});
  REQUIRE(rank_2.introductions.size() == 1);
  CHECK(rank_2.introductions[0].addresses ==
        std::vector<std::string>{settings.address, "unix:second"});
  joined_1->close("the test is over");
  joined_2->close("the test is over");
}
