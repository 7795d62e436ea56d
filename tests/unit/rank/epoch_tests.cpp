#include <asio.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "mentions.hpp"
#include "rank/wire/connection.hpp"
#include "rank/wire/endpoint.hpp"
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

/// A rank, played by hand.
class ByHand final : public ConnectionOwner {
 public:
  explicit ByHand(const SocketSettings& settings, std::uint32_t rank = 1)
      : settings_(settings),
        self_{key_of_secret(settings.secret), number_of_job(settings.job), rank,
              settings.num_ranks} {}

  std::shared_ptr<Connection> call(Purpose purpose) {
    Endpoint endpoint;
    std::string error;
    REQUIRE(find_endpoint(settings_.address, endpoint, error));
    int socket = -1;
    while (socket < 0) socket = start_connecting(endpoint, error);
    auto connection = std::make_shared<Connection>(loop_, socket, self_, *this);
    connection->call(0, purpose);
    run_until([&] { return connection->is_open() || end_; });
    REQUIRE_FALSE(end_);
    return connection;
  }
  /// The next message of the type; nothing: the connection ended before.
  std::optional<Message> next(MessageType type) {
    last_.reset();
    run_until([&] { return end_ || (last_ && last_->type == type); });
    return end_ ? std::nullopt : last_;
  }
  void forget_end() { end_ = false; }

  Admission admit(const Claim&) override { return Admission::NotHere; }
  void opened(Connection&) override {}
  void received(Connection&, Message message) override {
    if (message.type == MessageType::Peers) {
      epoch = message.epoch;
      introductions.push_back(message);
    }
    last_ = std::move(message);
  }
  void closed(Connection&, const std::string&) override { end_ = true; }

  std::uint64_t epoch = 0;
  std::vector<Message> introductions;

 private:
  void run_until(const std::function<bool()>& is_done) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!is_done() && std::chrono::steady_clock::now() < until)
      loop_.run_one_for(std::chrono::milliseconds(20));
    REQUIRE(is_done());
  }

  SocketSettings settings_;
  Identity self_;
  asio::io_context loop_;
  std::optional<Message> last_;
  bool end_ = false;
};

}  // namespace

// What a process that took the place of a lost rank 0 does not know, the lost one may have
// committed: its "not that I know" must not pass for "aborted".
TEST_CASE("Rank 0 answers those only who ask about its own time", "[epoch]") {
  const SocketSettings settings = test_settings(2);
  SocketCoordinator hub(of_rank(settings, 0), test_deciders());
  ByHand rank_1(settings);
  const auto joined = rank_1.call(Purpose::Join);
  Message listening;
  listening.type = MessageType::Listening;
  listening.addresses = {"unix:nowhere"};
  joined->send(listening);
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
    Message listening;
    listening.type = MessageType::Listening;
    listening.addresses = {address};
    joined->send(listening);
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
