#include "wire_script.hpp"

#include <algorithm>
#include <array>
#include <limits>

namespace contextune::fuzz {
namespace {

constexpr std::array<double, 6> known_seconds{0,
                                              0.001,
                                              10,
                                              1e300,
                                              std::numeric_limits<double>::infinity(),
                                              std::numeric_limits<double>::quiet_NaN()};
static_assert(known_seconds[no_time] == 0 && known_seconds[long_time] == 10);

std::vector<std::byte> copy(std::span<const std::uint8_t> bytes) {
  const auto taken = std::as_bytes(bytes);
  return {taken.begin(), taken.end()};
}

std::string text_of(const std::vector<std::byte>& bytes) {
  std::string text;
  for (const std::byte one : bytes) text.push_back(static_cast<char>(one));
  return text;
}

}  // namespace

std::uint8_t ScriptReader::byte() {
  if (left_.empty()) return 0;
  const std::uint8_t value = left_.front();
  left_ = left_.subspan(1);
  return value;
}

std::uint32_t ScriptReader::word() {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= static_cast<std::uint32_t>(byte()) << (8 * i);
  return value;
}

std::vector<std::byte> ScriptReader::bytes() {
  std::size_t size = byte();
  size += 256 * std::size_t{byte()};
  size = std::min(size, left_.size());
  auto taken = copy(left_.first(size));
  left_ = left_.subspan(size);
  return taken;
}

std::vector<std::byte> ScriptReader::rest() {
  auto taken = copy(left_);
  left_ = {};
  return taken;
}

double ScriptReader::seconds() {
  return known_seconds[byte() % known_seconds.size()];
}

RankSet ScriptReader::ranks(std::uint32_t num_ranks) {
  const std::uint8_t chosen = byte();
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank)
    if ((chosen >> rank) % 2 != 0) ranks.push_back(rank);
  if (chosen >= 0x80) std::reverse(ranks.begin(), ranks.end());
  return ranks;
}

Topic ScriptReader::topic(std::uint32_t num_ranks) {
  Topic topic;
  topic.group = byte();
  topic.question = byte();
  topic.ranks = ranks(num_ranks);
  return topic;
}

rank::Message ScriptReader::message(std::uint32_t num_ranks, std::uint64_t epoch,
                                    const std::vector<std::string>& addresses) {
  using rank::MessageType;
  rank::Message message;
  constexpr auto num_types = static_cast<std::uint8_t>(rank::last_message_type);
  const std::uint8_t type = byte();
  message.type = static_cast<MessageType>(1 + type % of_several % num_types);
  switch (message.type) {
    case MessageType::Heartbeat:
    case MessageType::Attach:
    case MessageType::Detach:
      return message;
    case MessageType::Relay:
      message.addresses = {addresses.back()};
      return message;
    default:
      break;
  }
  if (message.type == MessageType::Listening) {
    message.addresses = {text_of(bytes())};
    return message;
  }
  if (message.type == MessageType::Peers) {
    message.epoch = epoch;
    message.topic.ranks = RankSet::all_of(num_ranks);
    message.addresses = addresses;
    return message;
  }
  message.topic = topic(num_ranks);
  if (type >= of_several) message.ranks = ranks(num_ranks);
  const bool of_one = message.ranks.empty();
  switch (message.type) {
    case MessageType::Say:
      message.kind = byte();
      message.seconds = seconds();
      message.payload = bytes();
      if (!of_one) message.parts.assign(message.ranks.size(), message.payload);
      break;
    case MessageType::Propose:
      message.seconds = seconds();
      message.payload = bytes();
      if (!of_one) message.waits.assign(message.ranks.size(), message.seconds);
      break;
    case MessageType::Occupied:
      message.seconds = seconds();
      message.why = text_of(bytes());
      break;
    case MessageType::Withdraw:
      message.why = text_of(bytes());
      break;
    case MessageType::Verdict:
    case MessageType::Tell: {
      const std::uint8_t how = byte();
      message.committed = how % 2 != 0;
      message.knowledge = static_cast<rank::Knowledge>(how % 4);
      if (how < 0x80) message.culprit = (how >> 2U) % (num_ranks + 1);
      break;
    }
    case MessageType::Ask:
      message.epoch = byte() % 8 != 0 ? epoch : epoch + 1;
      break;
    default:
      break;
  }
  return message;
}

ScriptWriter::ScriptWriter(Tested tested, std::uint8_t num_ranks) {
  byte(static_cast<std::uint8_t>(tested)).byte(static_cast<std::uint8_t>(num_ranks - 2));
}

ScriptWriter& ScriptWriter::byte(std::uint8_t value) {
  text_.push_back(static_cast<char>(value));
  return *this;
}

ScriptWriter& ScriptWriter::bytes(std::span<const std::byte> bytes) {
  byte(static_cast<std::uint8_t>(bytes.size() % 256));
  byte(static_cast<std::uint8_t>(bytes.size() / 256));
  for (const std::byte one : bytes) text_.push_back(static_cast<char>(one));
  return *this;
}

ScriptWriter& ScriptWriter::topic(std::uint8_t group, std::uint8_t question, std::uint8_t ranks) {
  return byte(group).byte(question).byte(ranks);
}

ScriptWriter& ScriptWriter::call(std::uint8_t rank, rank::Purpose purpose) {
  return act(Act::Call).byte(rank).byte(static_cast<std::uint8_t>(purpose)).byte(0);
}

ScriptWriter& ScriptWriter::message(std::uint8_t connection, rank::MessageType type) {
  return act(Act::Message).byte(connection).byte(0).byte(static_cast<std::uint8_t>(type) - 1);
}

ScriptWriter& ScriptWriter::message_of_several(std::uint8_t connection, rank::MessageType type) {
  message(connection, type);
  text_.back() = static_cast<char>(static_cast<std::uint8_t>(text_.back()) | of_several);
  return *this;
}

}  // namespace contextune::fuzz
