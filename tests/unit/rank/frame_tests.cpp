#include "rank/wire/frame.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "catch.hpp"
#include "mentions.hpp"
#include "rank/wire/message.hpp"

using contextune::Topic;
using namespace contextune::rank;

namespace {

const FrameOrigin origin{{0x0706050403020100U, 0x0f0e0d0c0b0a0908U}, 77, 2};

Message part() {
  Message message;
  message.type = MessageType::Say;
  message.topic = Topic{5, 9, {0, 2, 3}};
  message.kind = 4;
  message.seconds = 1.5;
  message.payload = {std::byte{1}, std::byte{2}, std::byte{3}};
  return message;
}

std::vector<std::byte> sealed(const Message& message, const FrameOrigin& from = origin) {
  return FrameWriter(from).seal(static_cast<std::uint16_t>(message.type), encode(message));
}

std::string error_of(const std::vector<std::byte>& bytes, const FrameOrigin& expected = origin) {
  FrameReader reader(expected);
  reader.feed(bytes);
  Frame frame;
  CHECK_FALSE(reader.next(frame));
  return reader.error();
}

std::vector<std::byte> changed(std::vector<std::byte> bytes, std::size_t at) {
  bytes[at] ^= std::byte{1};
  return bytes;
}

std::string fault_of_body(MessageType type, const std::vector<std::byte>& body) {
  Message message;
  std::string error;
  CHECK_FALSE(decode({static_cast<std::uint16_t>(type), body}, 4, message, error));
  return error;
}

}  // namespace

TEST_CASE("A message comes out of a frame as it went in, whatever the pieces", "[frame]") {
  const auto bytes = sealed(part());
  const std::size_t piece = GENERATE(1U, 7U, 1000U);
  FrameReader reader(origin);
  Frame frame;
  bool whole = false;
  for (std::size_t at = 0; at < bytes.size(); at += piece) {
    CHECK_FALSE(whole);
    reader.feed(std::span(bytes).subspan(at, std::min(piece, bytes.size() - at)));
    whole = reader.next(frame);
  }
  REQUIRE(whole);
  Message message;
  std::string error;
  REQUIRE(decode(frame, 4, message, error));
  CHECK(message.type == MessageType::Say);
  CHECK(message.topic == part().topic);
  CHECK(message.kind == 4);
  CHECK(message.seconds == 1.5);
  CHECK(message.payload == part().payload);
}

TEST_CASE("Seconds that are no duration are sent as one that others take", "[frame]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const MessageType type : {MessageType::Say, MessageType::Propose, MessageType::Occupied}) {
    for (const double seconds : {-1.0, -infinity, infinity, std::nan("")}) {
      Message message = part();
      message.type = type;
      message.seconds = seconds;
      Message back;
      std::string error;
      CHECK(decode({static_cast<std::uint16_t>(type), encode(message)}, 4, back, error));
      CHECK(back.seconds == (seconds > 0 ? std::numeric_limits<double>::max() : 0.0));
    }
  }
}

TEST_CASE("Messages of every type come out as they went in", "[frame]") {
  for (auto type = 1; type <= static_cast<int>(last_message_type); ++type) {
    Message message = part();
    message.type = static_cast<MessageType>(type);
    message.why = "because";
    message.culprit = 3;
    message.committed = true;
    message.epoch = 0x123456789abcdef0U;
    message.knowledge = Knowledge::Lost;
    const bool all = message.type == MessageType::Peers;
    message.addresses.assign(all ? message.topic.ranks.size() : 1, "unix:x");
    Message back;
    std::string error;
    CAPTURE(type);
    REQUIRE(decode({static_cast<std::uint16_t>(type), encode(message)}, 4, back, error));
    CHECK(encode(back) == encode(message));
  }
}

TEST_CASE("Messages of several ranks come out as they went in, where a relay passes them on",
          "[frame]") {
  for (auto type = 1; type <= static_cast<int>(last_message_type); ++type) {
    Message message = part();
    message.type = static_cast<MessageType>(type);
    message.ranks = {message.topic.ranks.front(), message.topic.ranks.back()};
    message.parts = {{std::byte{1}}, {}};
    message.waits = {1.5, 0};
    message.addresses.assign(message.type == MessageType::Peers ? message.topic.ranks.size() : 1,
                             "unix:x");
    Message back;
    std::string error;
    CAPTURE(type);
    const bool is_read = decode({frame_type_of(message), encode(message)}, 4, back, error);
    CHECK(is_read == (is_relayed_up(message.type) || is_relayed_down(message.type)));
    if (!is_read) continue;
    CHECK(back.ranks == message.ranks);
    CHECK(encode(back) == encode(message));
    const Message second = one_of(back, 1);
    CHECK(second.ranks.empty());
    if (message.type == MessageType::Say) CHECK(second.payload.empty());
    if (message.type == MessageType::Propose) CHECK(second.seconds == 0);
    CHECK(some_of(back, {message.ranks.front()}).ranks ==
          contextune::RankSet{message.ranks.front()});
  }
}

TEST_CASE("A message of ranks that are not its topic's is refused", "[frame]") {
  Message message = part();
  message.type = MessageType::Vote;
  message.topic.ranks = {0, 2};
  message.ranks = {0, 1};
  Message back;
  std::string error;
  CHECK_FALSE(decode({frame_type_of(message), encode(message)}, 4, back, error));
  CHECK(mentions(error, "rank 1 is not one of the topic's ranks"));
}

TEST_CASE("A frame cut off at any byte is not a frame yet, and no error", "[frame]") {
  const auto bytes = sealed(part());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK(error_of({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)}).empty());
}

TEST_CASE("A frame of which any bit is changed is refused", "[frame]") {
  const auto bytes = sealed(part());
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    CAPTURE(at);
    FrameReader reader(origin);
    Frame frame;
    reader.feed(changed(bytes, at));
    // A greater length waits for more, and finds out then.
    reader.feed(std::vector<std::byte>(std::size_t{1} << 17U));
    const bool taken = reader.next(frame);
    CHECK_FALSE(taken);
    if (at >= 3) CHECK_FALSE(reader.error().empty());
  }
}

TEST_CASE("What is wrong with a frame is said", "[frame]") {
  const auto bytes = sealed(part());
  CHECK(mentions(error_of(changed(bytes, 4)), "magic"));
  CHECK(mentions(error_of(changed(bytes, 8)), "version " + std::to_string(frame_version ^ 1U)));
  CHECK(mentions(error_of(changed(bytes, 3)), "more than"));
  CHECK(mentions(error_of(changed(bytes, 40)), "tag"));
  FrameOrigin other = origin;
  other.job = 78;
  CHECK(mentions(error_of(bytes, other), "another job"));
  other = origin;
  other.sender = 3;
  CHECK(mentions(error_of(bytes, other), "rank 2 from rank 3"));
  other = origin;
  other.key.low ^= 1U;
  CHECK(mentions(error_of(bytes, other), "tag"));
}

TEST_CASE("A length past the limit is refused before anything of it is there", "[frame]") {
  auto bytes = sealed(part());
  bytes.resize(frame_header_bytes);
  bytes[0] = bytes[1] = bytes[2] = bytes[3] = std::byte{0xff};
  CHECK(mentions(error_of(bytes), "4294967295"));
}

TEST_CASE("A frame that comes twice, or after one that is missing, is refused", "[frame]") {
  FrameWriter writer(origin);
  const auto first = writer.seal(1, {});
  const auto second = writer.seal(1, {});
  Frame frame;
  SECTION("twice") {
    FrameReader reader(origin);
    reader.feed(first);
    reader.feed(first);
    CHECK(reader.next(frame));
    CHECK_FALSE(reader.next(frame));
    CHECK(mentions(reader.error(), "frame 0 instead of 1"));
  }
  SECTION("one is missing") {
    FrameReader reader(origin);
    reader.feed(second);
    CHECK_FALSE(reader.next(frame));
    CHECK(mentions(reader.error(), "frame 1 instead of 0"));
  }
}

TEST_CASE("A body cut off at any byte, or with one too many, is refused", "[frame]") {
  for (auto type = 2; type <= static_cast<int>(last_message_type); ++type) {
    Message message = part();
    message.type = static_cast<MessageType>(type);
    message.why = "because";
    message.addresses.assign(message.type == MessageType::Peers ? message.topic.ranks.size() : 1,
                             "unix:x");
    auto body = encode(message);
    CAPTURE(type);
    for (std::size_t size = 0; size < body.size(); ++size) {
      CHECK_FALSE(fault_of_body(message.type,
                                {body.begin(), body.begin() + static_cast<std::ptrdiff_t>(size)})
                      .empty());
    }
    body.push_back({});
    CHECK(mentions(fault_of_body(message.type, body), "left over"));
  }
}

TEST_CASE("Fields that make no sense are named", "[frame]") {
  Message message = part();
  message.topic.ranks = {};
  CHECK(mentions(fault_of_body(message.type, encode(message)), "without ranks"));
  message.topic.ranks = {2, 2};
  CHECK(mentions(fault_of_body(message.type, encode(message)), "ascend"));
  message.topic.ranks = {1, 4};
  CHECK(mentions(fault_of_body(message.type, encode(message)), "rank 4 of 4"));
  message.topic.ranks = contextune::RankSet::all_of(4'000'000'000U);
  CHECK(mentions(fault_of_body(message.type, encode(message)), "rank 3999999999 of 4"));
  message = part();
  std::vector<std::byte> body = encode(message);
  const auto seconds = std::bit_cast<std::array<std::byte, sizeof(double)>>(message.seconds);
  const auto place = std::search(body.begin(), body.end(), seconds.begin(), seconds.end());
  REQUIRE(place != body.end());
  place[sizeof(double) - 1] ^= std::byte{0x80};  // its sign
  CHECK(mentions(fault_of_body(message.type, body), "duration"));
  message = part();
  message.type = MessageType::Verdict;
  message.culprit = 4;
  CHECK(mentions(fault_of_body(message.type, encode(message)), "culprit"));
  CHECK(mentions(fault_of_body(static_cast<MessageType>(99), {}), "none of that number"));
  CHECK(mentions(fault_of_body(static_cast<MessageType>(0), {}), "none of that number"));
}

TEST_CASE("Any bytes may come", "[frame]") {
  std::mt19937_64 random(GENERATE(1U, 2U, 3U));
  for (int round = 0; round < 300; ++round) {
    // A true beginning makes it reach further.
    std::vector<std::byte> bytes = sealed(part());
    bytes.resize(random() % bytes.size());
    for (std::size_t more = random() % 200; more > 0; --more)
      bytes.push_back(static_cast<std::byte>(random()));
    FrameReader reader(origin);
    reader.feed(bytes);
    Frame frame;
    CHECK_FALSE(reader.next(frame));

    std::vector<std::byte> body = encode(part());
    for (int change = 0; change < 3; ++change)
      body[random() % body.size()] = static_cast<std::byte>(random());
    Message message;
    std::string error;
    const auto type = static_cast<std::uint16_t>(random() % 14);
    const bool good = decode({type, body}, 4, message, error);
    CHECK(good == error.empty());
  }
}
