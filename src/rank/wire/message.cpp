#include "rank/wire/message.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "core/value/byte_stream.hpp"

namespace contextune::rank {
namespace {

// In a frame's type: the message is of several ranks, or for them.
constexpr std::uint16_t of_several = 0x100;

bool has_topic(MessageType type) {
  switch (type) {
    case MessageType::Heartbeat:
    case MessageType::Listening:
    case MessageType::Relay:
    case MessageType::Attach:
    case MessageType::Detach:
      return false;
    default:
      return true;
  }
}

void write(ByteWriter& writer, const Topic& topic) {
  writer.number(topic.group);
  writer.number(topic.question);
  topic.ranks.write_to(writer);
}

// False: the ranks do not ascend, or are told in another way than they are written.
bool read_topic(ByteReader& reader, Topic& topic) {
  topic.group = reader.number<std::uint64_t>();
  topic.question = reader.number<std::uint64_t>();
  return topic.ranks.read_from(reader);
}

void read_payload(ByteReader& reader, Payload& payload) {
  const auto bytes = reader.block();
  payload.assign(bytes.begin(), bytes.end());
}

// As others take it: a deadline that has passed leaves no time, and none at all very much.
double duration_of(double seconds) {
  return seconds > 0 ? std::min(seconds, std::numeric_limits<double>::max()) : 0;
}

// False: it is no duration.
bool read_seconds(ByteReader& reader, double& seconds) {
  seconds = std::bit_cast<double>(reader.number<std::uint64_t>());
  return std::isfinite(seconds) && seconds >= 0;
}

void write_seconds(ByteWriter& writer, double seconds) {
  writer.number(std::bit_cast<std::uint64_t>(duration_of(seconds)));
}

// Reads the part of a message behind its topic and ranks, as its type has it.
std::string read_rest(ByteReader& reader, std::uint32_t num_ranks, Message& message) {
  bool is_duration = true;
  switch (message.type) {
    case MessageType::Say:
      message.kind = reader.number<std::uint32_t>();
      is_duration = read_seconds(reader, message.seconds);
      if (message.ranks.empty()) read_payload(reader, message.payload);
      while (message.parts.size() < message.ranks.size() && !reader.failed())
        read_payload(reader, message.parts.emplace_back());
      break;
    case MessageType::Propose:
      if (message.ranks.empty()) is_duration = read_seconds(reader, message.seconds);
      while (message.waits.size() < message.ranks.size() && !reader.failed() && is_duration)
        is_duration = read_seconds(reader, message.waits.emplace_back());
      read_payload(reader, message.payload);
      break;
    case MessageType::Withdraw:
      message.why = reader.text();
      break;
    case MessageType::Occupied:
      is_duration = read_seconds(reader, message.seconds);
      message.why = reader.text();
      break;
    case MessageType::Verdict: {
      const auto committed = reader.number<std::uint8_t>();
      message.culprit = reader.number<std::uint32_t>();
      message.why = reader.text();
      if (committed > 1) return "a verdict that is neither committed nor aborted";
      message.committed = committed == 1;
      break;
    }
    case MessageType::Tell: {
      const auto knowledge = reader.number<std::uint8_t>();
      message.culprit = reader.number<std::uint32_t>();
      message.why = reader.text();
      if (knowledge > static_cast<std::uint8_t>(Knowledge::Aborted))
        return "an answer that does not exist";
      message.knowledge = static_cast<Knowledge>(knowledge);
      break;
    }
    case MessageType::Listening:
    case MessageType::Relay:
      message.addresses.push_back(reader.text());
      break;
    case MessageType::Ask:
      message.epoch = reader.number<std::uint64_t>();
      break;
    case MessageType::Peers:
      message.epoch = reader.number<std::uint64_t>();
      while (reader.left() != 0 && message.addresses.size() < message.topic.ranks.size())
        message.addresses.push_back(reader.text());
      if (message.addresses.size() != message.topic.ranks.size())
        return "addresses of another number of ranks";
      break;
    default:
      break;
  }
  if (!is_duration) return "seconds are no duration";
  if (message.culprit != Agreement::no_rank && message.culprit >= num_ranks)
    return "a culprit that does not exist";
  if (message.why.size() > max_why_bytes) return "a reason that is too long";
  return {};
}

// What is wrong with the ranks that a message names beside its topic.
std::string read_ranks(ByteReader& reader, Message& message) {
  if (!is_relayed_up(message.type) && !is_relayed_down(message.type))
    return "no relay passes it on";
  if (!message.ranks.read_from(reader)) return "its ranks do not ascend";
  if (message.ranks.empty()) return "it is of no rank";
  for (const std::uint32_t rank : message.ranks)
    if (!has_rank(message.topic, rank)) return name_of(rank) + " is not one of the topic's ranks";
  return {};
}

}  // namespace

bool is_relayed_up(MessageType type) noexcept {
  return type == MessageType::Say || type == MessageType::Vote || type == MessageType::Acknowledge;
}

bool is_relayed_down(MessageType type) noexcept {
  switch (type) {
    case MessageType::Peers:
    case MessageType::Propose:
    case MessageType::Verdict:
    case MessageType::Done:
    case MessageType::Occupied:
      return true;
    default:
      return false;
  }
}

Message one_of(const Message& message, std::size_t place) {
  Message one;
  one.type = message.type;
  one.topic = message.topic;
  one.kind = message.kind;
  one.seconds = message.waits.empty() ? message.seconds : message.waits[place];
  one.payload = message.parts.empty() ? message.payload : message.parts[place];
  one.committed = message.committed;
  one.why = message.why;
  one.culprit = message.culprit;
  one.epoch = message.epoch;
  one.addresses = message.addresses;
  return one;
}

Message some_of(const Message& message, const RankSet& ranks) {
  Message some = one_of(message, 0);
  some.ranks = ranks;
  if (!message.parts.empty()) some.payload = {};
  for (const std::uint32_t rank : ranks) {
    const std::size_t place = message.ranks.place_of(rank);
    if (!message.parts.empty()) some.parts.push_back(message.parts[place]);
    if (!message.waits.empty()) some.waits.push_back(message.waits[place]);
  }
  return some;
}

std::uint16_t frame_type_of(const Message& message) noexcept {
  const auto type = static_cast<std::uint16_t>(message.type);
  return message.ranks.empty() ? type : static_cast<std::uint16_t>(type | of_several);
}

std::vector<std::byte> encode(const Message& message) {
  std::vector<std::byte> bytes;
  ByteWriter writer(bytes);
  if (has_topic(message.type)) write(writer, message.topic);
  const bool one = message.ranks.empty();
  if (!one) message.ranks.write_to(writer);
  switch (message.type) {
    case MessageType::Say:
      writer.number(message.kind);
      write_seconds(writer, message.seconds);
      if (one) writer.block(message.payload);
      for (const Payload& part : message.parts) writer.block(part);
      break;
    case MessageType::Propose:
      if (one) write_seconds(writer, message.seconds);
      for (const double seconds : message.waits) write_seconds(writer, seconds);
      writer.block(message.payload);
      break;
    case MessageType::Withdraw:
      writer.text(message.why);
      break;
    case MessageType::Occupied:
      write_seconds(writer, message.seconds);
      writer.text(message.why);
      break;
    case MessageType::Verdict:
      writer.number(static_cast<std::uint8_t>(message.committed ? 1 : 0));
      writer.number(message.culprit);
      writer.text(message.why);
      break;
    case MessageType::Tell:
      writer.number(static_cast<std::uint8_t>(message.knowledge));
      writer.number(message.culprit);
      writer.text(message.why);
      break;
    case MessageType::Ask:
      writer.number(message.epoch);
      break;
    case MessageType::Peers:
      writer.number(message.epoch);
      [[fallthrough]];
    case MessageType::Listening:
    case MessageType::Relay:
      for (const std::string& address : message.addresses) writer.text(address);
      break;
    default:
      break;
  }
  return bytes;
}

bool decode(const Frame& frame, std::uint32_t num_ranks, Message& message, std::string& error) {
  message = {};
  const auto wrong = [&](const std::string& what) {
    error = "message type " + std::to_string(frame.type) + ": " + what;
    return false;
  };
  const auto type = static_cast<std::uint16_t>(frame.type & ~of_several);
  if (type < static_cast<std::uint16_t>(MessageType::Heartbeat) ||
      type > static_cast<std::uint16_t>(last_message_type))
    return wrong("there is none of that number");
  message.type = static_cast<MessageType>(type);
  ByteReader reader(frame.body);
  if (has_topic(message.type)) {
    const bool ascends = read_topic(reader, message.topic);
    if (reader.failed()) return wrong("it ends within its topic");
    if (!ascends) return wrong("the ranks of a topic do not ascend");
    if (const std::string fault = fault_of(message.topic, num_ranks); !fault.empty())
      return wrong(fault);
  }
  if (type != frame.type) {
    if (const std::string fault = read_ranks(reader, message); !fault.empty()) return wrong(fault);
  }
  const std::string fault = read_rest(reader, num_ranks, message);
  if (reader.failed()) return wrong("it ends too soon");
  if (!fault.empty()) return wrong(fault);
  if (reader.left() != 0) return wrong(std::to_string(reader.left()) + " bytes are left over");
  return true;
}

std::string short_why(std::string why) {
  if (why.size() > max_why_bytes) why.resize(max_why_bytes);
  return why;
}

std::string name_of(std::uint32_t rank) {
  return "rank " + std::to_string(rank);
}

bool has_rank(const Topic& topic, std::uint32_t rank) noexcept {
  return topic.ranks.contains(rank);
}

std::string fault_of(const Topic& topic, std::uint32_t num_ranks) {
  if (topic.ranks.empty()) return "a topic without ranks";
  if (!topic.ranks.ascends()) return "the ranks of a topic do not ascend";
  if (topic.ranks.back() >= num_ranks)
    return "a topic names rank " + std::to_string(topic.ranks.back()) + " of " +
           std::to_string(num_ranks);
  return {};
}

bool TopicLess::operator()(const Topic& a, const Topic& b) const noexcept {
  return std::tie(a.group, a.question, a.ranks) < std::tie(b.group, b.question, b.ranks);
}

}  // namespace contextune::rank
