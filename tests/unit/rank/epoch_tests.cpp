#include <asio.hpp>
#include <functional>
#include <optional>

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

/// Rank 1, played by hand.
class ByHand final : public ConnectionOwner {
 public:
  explicit ByHand(const SocketSettings& settings)
      : settings_(settings),
        self_{key_of_secret(settings.secret), number_of_job(settings.job), 1, settings.num_ranks} {}

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
    if (message.type == MessageType::Peers) epoch = message.epoch;
    last_ = std::move(message);
  }
  void closed(Connection&, const std::string&) override { end_ = true; }

  std::uint64_t epoch = 0;

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
