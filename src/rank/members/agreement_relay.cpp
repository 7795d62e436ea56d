#include "rank/members/agreement_relay.hpp"

#include <algorithm>
#include <utility>

namespace contextune::rank {
namespace {

// Beyond that, parts go on before those of all ranks are there: a frame holds no more than some.
constexpr std::size_t most_held_bytes = max_body_bytes / 4;

}  // namespace

std::string Relay::pass_up(std::uint32_t from, Message message, double now, Outbox& out) {
  if (!is_relayed_up(message.type))
    return name_of(from) + " has a relay pass on what goes to the hub itself";
  if (!message.ranks.empty() || !has_rank(message.topic, from))
    return name_of(from) + " speaks for others";
  const Topic topic = std::move(message.topic);
  if (topics_.size() >= max_open_topics && !topics_.contains(topic)) {
    if (message.type == MessageType::Say) message.parts = {std::exchange(message.payload, {})};
    message.topic = topic;
    message.ranks = {from};
    out.push_back({0, std::move(message)});
    return {};
  }
  ByType& by_type = topics_[topic];
  // The hub hears what a rank says in its order.
  for (auto& [type, before] : by_type)
    if (type < message.type && before.held.contains(from)) pass(topic, type, before, out);
  Kept& kept = by_type[message.type];
  if (!kept.held.empty() &&
      (kept.kind != message.kind || kept.bytes + message.payload.size() > most_held_bytes))
    pass(topic, message.type, kept, out);
  if (kept.held.empty()) {
    kept.since = now;
    kept.kind = message.kind;
    kept.seconds = message.seconds;
  }
  kept.seconds = std::min(kept.seconds, message.seconds);
  kept.bytes += message.payload.size();
  if (kept.held.try_emplace(from, std::move(message.payload)).second) ++num_held_;
  if (is_complete(topic, kept)) pass(topic, message.type, kept, out);
  return {};
}

bool Relay::is_complete(const Topic& topic, const Kept& kept) const {
  const auto is_there = [&](std::uint32_t rank) {
    return !has_rank(topic, rank) || kept.held.contains(rank) || kept.passed.contains(rank);
  };
  return is_there(rank_) && std::all_of(attached_.begin(), attached_.end(), is_there);
}

void Relay::pass(const Topic& topic, MessageType type, Kept& kept, Outbox& out) {
  if (kept.held.empty()) return;
  num_held_ -= kept.held.size();
  Message message;
  message.type = type;
  message.topic = topic;
  message.kind = kept.kind;
  message.seconds = kept.seconds;
  for (auto& [rank, part] : kept.held) {
    message.ranks.push_back(rank);
    if (type == MessageType::Say) message.parts.push_back(std::move(part));
    kept.passed.insert(rank);
  }
  kept.held.clear();
  kept.bytes = 0;
  out.push_back({0, std::move(message)});
}

std::string Relay::pass_down(const Message& message, Outbox& out) {
  if (!is_relayed_down(message.type)) return "the coordinating rank sent what only members send";
  for (std::size_t place = 0; const std::uint32_t rank : message.ranks) {
    // A rank that is no longer attached hears it from the hub.
    if (attached_.contains(rank)) out.push_back({rank, one_of(message, place)});
    ++place;
  }
  // Last: as soon as this process has its answer it may end.
  if (const std::size_t place = message.ranks.place_of(rank_); place != RankSet::no_place)
    out.push_back({rank_, one_of(message, place)});
  // What was said before is of no use any more, and will not be said again.
  if (message.type == MessageType::Verdict) forget(message.topic, MessageType::Vote);
  if (message.type == MessageType::Done) forget(message.topic, MessageType::Acknowledge);
  return {};
}

void Relay::forget(const Topic& topic, MessageType until) {
  const auto place = topics_.find(topic);
  if (place == topics_.end()) return;
  std::erase_if(place->second, [&](const auto& one) {
    if (one.first > until) return false;
    num_held_ -= one.second.held.size();
    return true;
  });
  if (place->second.empty()) topics_.erase(place);
}

void Relay::detach(std::uint32_t rank, Outbox& out) {
  if (attached_.erase(rank) == 0) return;
  for (auto& [topic, by_type] : topics_) {
    for (auto& [type, kept] : by_type) {
      // It repeats it to the hub.
      num_held_ -= kept.held.erase(rank);
      if (is_complete(topic, kept)) pass(topic, type, kept, out);
    }
  }
  // Nobody is left for whom a verdict would come through here.
  std::erase_if(topics_, [&](const auto& one) {
    return std::none_of(one.first.ranks.begin(), one.first.ranks.end(),
                        [&](std::uint32_t other) { return is_mine(other); });
  });
}

void Relay::tick(double now, Outbox& out) {
  if (num_held_ == 0) return;
  for (auto& [topic, by_type] : topics_) {
    for (auto& [type, kept] : by_type)
      if (!kept.held.empty() && now >= kept.since + hold_seconds) pass(topic, type, kept, out);
  }
}

}  // namespace contextune::rank
