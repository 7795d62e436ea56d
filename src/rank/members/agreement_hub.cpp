#include "rank/members/agreement_hub.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

namespace contextune::rank {
namespace {

// The control thread of a late rank says at once what the rank is at. A short time gives half.
constexpr double inquiry_seconds = 0.5;
// So much earlier the last verdict is given, for it to arrive in the time stated. A short time
// gives a quarter.
constexpr double answer_seconds = 0.25;
constexpr double most_patience_seconds = 3600;

double inquiry_of(double seconds) {
  return std::min(seconds / 2, inquiry_seconds);
}

double answer_of(double seconds) {
  return std::min(seconds / 4, answer_seconds);
}

// Seconds of the stated time until late ranks are asked what they are at.
double until_inquiry(double seconds) {
  return seconds - answer_of(seconds) - inquiry_of(seconds);
}

std::string in_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g s", seconds);
  return text;
}

// "ranks 0, 1, 5": no more of them than a reader looks at.
std::string list_of(const RankSet& ranks) {
  constexpr std::size_t most = 16;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  std::size_t listed = 0;
  for (const std::uint32_t rank : ranks) {
    if (listed == most) break;
    text += (listed++ == 0 ? "" : ", ") + std::to_string(rank);
  }
  if (ranks.size() > most) text += ", ... (" + std::to_string(ranks.size()) + " in all)";
  return text;
}

void send(const RankSet& to, Message message, Outbox& out) {
  if (to.empty()) return;
  message.ranks = to;
  if (to.size() == 1) message = one_of(message, 0);
  out.push_back({to.front(), std::move(message)});
}

Message about(const Topic& topic, MessageType type) {
  Message message;
  message.type = type;
  message.topic = topic;
  return message;
}

}  // namespace

Payload decide(const Deciders& deciders, std::uint32_t kind, const Topic& topic,
               std::span<const Payload> said, std::string& why) noexcept {
  try {
    const auto decider = deciders.find(kind);
    if (decider == deciders.end() || !decider->second) {
      why = "there is nothing that decides questions of kind " + std::to_string(kind);
      return {};
    }
    Payload decision = decider->second(topic, said, why);
    if (decision.empty() && why.empty()) why = "there was no decision";
    if (decision.size() > max_body_bytes / 2) {
      why = "the decision is longer than can be sent";
      return {};
    }
    return decision;
  } catch (const std::exception& error) {
    why = std::string("deciding failed: ") + error.what();
  } catch (...) {
    why = "deciding failed";
  }
  return {};
}

std::string Hub::receive(std::uint32_t from, Message message, double now, Outbox& out) {
  now_ = now;
  const bool of_one = message.ranks.empty();
  RankSet ranks = of_one ? RankSet{from} : std::move(message.ranks);
  message.ranks = {};
  if (of_one && !has_rank(message.topic, from))
    return name_of(from) + " is not one of the topic's ranks";
  if (gone_.contains(from)) return name_of(from) + " is gone";
  if (!of_one && !gone_.empty())
    ranks = ranks.filtered([&](std::uint32_t rank) { return !gone_.contains(rank); });
  if (ranks.empty()) return {};
  switch (message.type) {
    case MessageType::Say:
      if (of_one) message.parts.push_back(std::move(message.payload));
      take_parts(ranks, std::move(message), now, out);
      return {};
    case MessageType::Vote:
      take_votes(ranks, message.topic, out);
      return {};
    case MessageType::Acknowledge:
      return take_acknowledgements(ranks, message.topic, out);
    default:
      break;
  }
  if (!of_one) return name_of(from) + " sent for others what each sends itself";
  switch (message.type) {
    case MessageType::Withdraw: {
      if (is_full_without(message.topic)) return {};
      const auto place = open_topic(message.topic);
      Entry& entry = place->second;
      if (is_open(entry) && !entry.voted[message.topic.ranks.place_of(from)])
        abort(message.topic, entry, name_of(from) + " withdrew: " + message.why, from, out);
      return {};
    }
    case MessageType::Occupied:
      be_patient(from, message, now, out);
      return {};
    default:
      return name_of(from) + " sent what only the coordinating rank sends";
  }
}

bool Hub::is_full_without(const Topic& topic) const {
  return entries_.size() >= most_topics_ && !entries_.contains(topic);
}

Hub::Entries::iterator Hub::open_topic(const Topic& topic) {
  const auto [place, is_new] = entries_.try_emplace(topic);
  if (!is_new) return place;
  ++num_open_;
  Entry& entry = place->second;
  const std::size_t size = topic.ranks.size();
  entry.parts.resize(size);
  entry.said_at.assign(size, not_said);
  entry.voted.assign(size, false);
  entry.aware.assign(size, false);
  return place;
}

bool Hub::has_said(const Topic& topic, const Entry& entry, std::uint32_t rank) {
  return entry.said_at[topic.ranks.place_of(rank)] != not_said;
}

// Those of the topic's ranks that are not gone.
RankSet Hub::present(const Topic& topic) const {
  if (gone_.empty()) return topic.ranks;
  return topic.ranks.filtered([&](std::uint32_t rank) { return !gone_.contains(rank); });
}

// The same question of the same group, but of other ranks: those would wait for one another in
// vain. Such entries are neighbours.
Hub::Entries::iterator Hub::same_question(Entries::iterator place) {
  const auto is_same = [&](const Entries::iterator& other) {
    return other->first.group == place->first.group &&
           other->first.question == place->first.question;
  };
  if (const auto next = std::next(place); next != entries_.end() && is_same(next)) return next;
  if (place != entries_.begin() && is_same(std::prev(place))) return std::prev(place);
  return entries_.end();
}

void Hub::take_parts(const RankSet& from, Message&& message, double now, Outbox& out) {
  if (is_full_without(message.topic)) {
    Entry refused;
    refused.state = State::Aborted;
    refused.why = "too many topics are open";
    return send(from, verdict_of(message.topic, refused), out);
  }
  const auto place = open_topic(message.topic);
  const Topic& topic = place->first;
  Entry& entry = place->second;
  const std::uint32_t first = from.front();
  // The verdict may have been given before these could be reached.
  if (entry.state != State::Collecting) return say_again(from, topic, entry, out);
  const bool is_new = entry.num_said == 0;
  const double inquiry_at = now + until_inquiry(message.seconds);
  if (is_new) {
    if (const auto other = same_question(place); other != entries_.end()) {
      const std::string why = "the ranks of the group differ: " + name_of(first) +
                              " takes it for " + list_of(topic.ranks) + ", others for " +
                              list_of(other->first.ranks);
      if (is_open(other->second)) abort(other->first, other->second, why, first, out);
      return abort(topic, entry, why, first, out);
    }
    entry.kind = message.kind;
  }
  if (is_new || (!entry.inquired && inquiry_at < entry.deadline)) {
    // Whoever is in a greater hurry.
    entry.seconds = message.seconds;
    entry.deadline = inquiry_at;
    entry.until = now + message.seconds;
  } else if (!entry.occupied.empty() && entry.deadline > now) {
    send(from, patience_of(topic, entry.deadline - now), out);
  }
  if (entry.kind != message.kind)
    return abort(topic, entry, name_of(first) + " asks another kind of question", first, out);
  for (std::size_t i = 0; const std::uint32_t rank : from) {
    const std::size_t at = topic.ranks.place_of(rank);
    Payload& part = message.parts[i++];
    if (entry.said_at[at] != not_said) continue;
    entry.said_at[at] = now;
    entry.parts[at] = std::move(part);
    ++entry.num_said;
    if (entry.occupied.contains(rank)) --entry.num_silent_occupied;
  }
  // Whoever goes later aborts what is open.
  if (is_new)
    for (const auto& [rank, why] : gone_)
      if (has_rank(topic, rank)) return abort(topic, entry, why, rank, out);
  if (entry.num_said == topic.ranks.size()) return propose(topic, entry, now, out);
  // Who is still missing has asked for nothing.
  if (!entry.occupied.empty() && entry.num_silent_occupied == 0)
    entry.deadline = std::min(entry.deadline, now + entry.seconds);
}

void Hub::say_again(const RankSet& to, const Topic& topic, const Entry& entry, Outbox& out) {
  if (entry.state == State::Collecting) return;
  const auto lacking = [&](const std::vector<bool>& has) {
    return to.filtered([&](std::uint32_t rank) { return !has[topic.ranks.place_of(rank)]; });
  };
  if (is_open(entry)) {
    const RankSet voting = lacking(entry.voted);
    send(voting, proposal_of(topic, entry, voting), out);
  } else {
    send(lacking(entry.aware), verdict_of(topic, entry), out);
  }
}

void Hub::repeat(std::uint32_t rank, Outbox& out) {
  for (const auto& [topic, entry] : entries_)
    if (has_rank(topic, rank)) say_again({rank}, topic, entry, out);
}

// Those that still have to say something, or to vote.
RankSet Hub::late_ranks(const Topic& topic, const Entry& entry) {
  return topic.ranks.filtered([&](std::uint32_t rank) {
    const std::size_t at = topic.ranks.place_of(rank);
    return entry.state == State::Collecting ? entry.said_at[at] == not_said : !entry.voted[at];
  });
}

// Asks them what keeps them.
void Hub::inquire(const Topic& topic, const Entry& entry, Outbox& out) {
  send(late_ranks(topic, entry), about(topic, MessageType::Inquire), out);
}

void Hub::be_patient(std::uint32_t from, const Message& message, double now, Outbox& out) {
  const auto place = entries_.find(message.topic);
  if (place == entries_.end() || place->second.state != State::Collecting) return;
  Entry& entry = place->second;
  if (has_said(place->first, entry, from)) return;
  if (message.seconds <= 0) {
    // It is free again, and has the usual time to come, or to be at something else.
    if (entry.occupied.erase(from) == 0) return;
    --entry.num_silent_occupied;
    entry.inquired = false;
    entry.deadline = std::min(entry.deadline, now + entry.seconds);
    return;
  }
  // Once, and then until it says that it is free: nobody puts the others off for ever.
  if (entry.inquired_at <= 0 || !entry.occupied.try_emplace(from, message.why).second) return;
  ++entry.num_silent_occupied;
  entry.inquired = true;  // it may have been free in between
  const double known = entry.deadline;
  entry.deadline = std::max(
      entry.deadline, std::min(now + message.seconds, entry.inquired_at + most_patience_seconds));
  // The others hear of the first at once, and of those that follow together, at the next tick:
  // where half of the ranks are occupied, each of them would tell the other half.
  if (entry.occupied.size() > 1) {
    entry.owes_patience = entry.owes_patience || entry.deadline > known;
  } else {
    tell_patience(place->first, entry, now, out);
  }
}

void Hub::tell_patience(const Topic& topic, Entry& entry, double now, Outbox& out) {
  entry.owes_patience = false;
  send(topic.ranks.filtered([&](std::uint32_t rank) { return has_said(topic, entry, rank); }),
       patience_of(topic, entry.deadline - now), out);
}

// It is free again, and has the usual time to come, or to be at something else.
bool Hub::has_just_waited(std::uint32_t rank, const Entry& elsewhere) const {
  return waited_[rank] >= elsewhere.inquired_at && now_ < waited_[rank] + elsewhere.seconds;
}

// Those whose missing ranks all wait on other topics for ranks that are occupied, directly or over
// others, or that still have their time; or did so a short time ago. Ranks that wait for one
// another in a circle are not among them.
std::set<const Hub::Entry*> Hub::held_up() const {
  std::set<const Entry*> held;
  std::set<std::uint32_t> excused;
  const auto excuse = [&](const Topic& topic, const Entry& entry) {
    // Whoever has so much time goes on with the program meanwhile.
    if (entry.seconds >= most_patience_seconds) return;
    for (const std::uint32_t rank : topic.ranks)
      if (has_said(topic, entry, rank)) excused.insert(rank);
  };
  std::vector<std::pair<const Topic*, const Entry*>> late;
  for (const auto& [topic, entry] : entries_) {
    if (!is_open(entry)) continue;
    if (entry.state == State::Collecting && entry.inquired && now_ >= entry.answers_due) {
      late.emplace_back(&topic, &entry);
    } else {
      excuse(topic, entry);
    }
  }
  // Each round but the last excuses another rank.
  for (std::size_t before = excused.size() + 1; before != excused.size();) {
    before = excused.size();
    std::erase_if(late, [&](const auto& one) {
      const auto& ranks = one.first->ranks;
      const Entry& entry = *one.second;
      if (!std::all_of(ranks.begin(), ranks.end(), [&](std::uint32_t rank) {
            return has_said(*one.first, entry, rank) || entry.occupied.contains(rank) ||
                   excused.contains(rank) || has_just_waited(rank, entry);
          }))
        return false;
      held.insert(&entry);
      excuse(*one.first, entry);
      return true;
    });
  }
  return held;
}

Message Hub::patience_of(const Topic& topic, double seconds) {
  Message message = about(topic, MessageType::Occupied);
  message.seconds = seconds;
  return message;
}

void Hub::propose(const Topic& topic, Entry& entry, double now, Outbox& out) {
  const std::vector<Payload> said = std::exchange(entry.parts, {});
  std::string why;
  entry.decision = decide(deciders_, entry.kind, topic, said, why);
  if (entry.decision.empty()) return abort(topic, entry, std::move(why), Agreement::no_rank, out);
  entry.state = State::Voting;
  entry.spoken_at = now;
  // Control threads alone vote: of the time that was stated, a quarter is enough.
  entry.vote_seconds = std::min(
      vote_seconds_, std::max(entry.until - now - answer_of(entry.seconds), entry.seconds / 4));
  entry.deadline = now + entry.vote_seconds;
  entry.vote_inquiry = now + entry.vote_seconds / 2;
  send(topic.ranks, proposal_of(topic, entry, topic.ranks), out);
}

Message Hub::proposal_of(const Topic& topic, const Entry& entry, const RankSet& to) {
  Message message = about(topic, MessageType::Propose);
  message.payload = entry.decision;
  message.waits.reserve(to.size());
  for (const std::uint32_t rank : to)
    message.waits.push_back(
        std::max(0.0, entry.spoken_at - entry.said_at[topic.ranks.place_of(rank)]));
  return message;
}

void Hub::take_votes(const RankSet& from, const Topic& topic, Outbox& out) {
  const auto place = entries_.find(topic);
  if (place == entries_.end() || place->second.state != State::Voting) return;
  Entry& entry = place->second;
  for (const std::uint32_t rank : from) {
    const std::size_t at = topic.ranks.place_of(rank);
    if (entry.voted[at]) continue;
    entry.voted[at] = true;
    ++entry.num_voted;
  }
  if (entry.num_voted == topic.ranks.size())
    give_verdict(place->first, entry, State::Committed, out);
}

std::string Hub::take_acknowledgements(const RankSet& from, const Topic& topic, Outbox& out) {
  const auto place = entries_.find(topic);
  if (place == entries_.end()) {
    // Those repeat it, and have not heard that all have the verdict.
    send(from, about(topic, MessageType::Done), out);
    return {};
  }
  Entry& entry = place->second;
  if (is_open(entry)) return name_of(from.front()) + " acknowledged what has no verdict";
  for (const std::uint32_t rank : from) {
    const std::size_t at = topic.ranks.place_of(rank);
    if (entry.aware[at]) continue;
    entry.aware[at] = true;
    --entry.num_unaware;
  }
  forget_if_known(place, out);
  return {};
}

void Hub::lose(std::uint32_t rank, const std::string& why, Outbox& out) {
  if (!gone_.try_emplace(rank, short_why(why)).second) return;
  for (auto place = entries_.begin(); place != entries_.end();) {
    const auto next = std::next(place);
    Entry& entry = place->second;
    if (has_rank(place->first, rank)) {
      if (is_open(entry)) {
        abort(place->first, entry, why, rank, out);
      } else if (entry.state == State::Aborted && !entry.aware[place->first.ranks.place_of(rank)]) {
        --entry.num_unaware;
      }
      forget_if_known(place, out);
    }
    place = next;
  }
}

Message Hub::asked(std::uint32_t by, const Topic& topic, Outbox& out) {
  Message tell;
  tell.type = MessageType::Tell;
  tell.topic = topic;
  tell.knowledge = Knowledge::Aborted;
  const auto place = entries_.find(topic);
  if (place == entries_.end()) {
    tell.why = "it was not committed";
    return tell;
  }
  Entry& entry = place->second;
  if (is_open(entry)) abort(place->first, entry, name_of(by) + " lost its connection", by, out);
  if (entry.state == State::Committed) {
    tell.knowledge = Knowledge::Committed;
  } else {
    tell.why = entry.why;
    tell.culprit = entry.culprit;
  }
  return tell;
}

void Hub::tick(double now, Outbox& out) {
  now_ = now;
  std::optional<std::set<const Entry*>> held;
  for (auto& [topic, entry] : entries_) {
    if (!is_open(entry)) continue;
    if (now < entry.deadline) {
      // A relay may keep the proposal back, or the vote.
      if (entry.state == State::Voting && entry.vote_inquiry > 0 && now >= entry.vote_inquiry) {
        entry.vote_inquiry = 0;
        inquire(topic, entry, out);
      }
      if (entry.owes_patience && entry.state == State::Collecting)
        tell_patience(topic, entry, now, out);
      continue;
    }
    const bool collecting = entry.state == State::Collecting;
    if (collecting && !entry.inquired) {
      entry.inquired = true;
      if (entry.inquired_at <= 0) entry.inquired_at = now;
      entry.deadline = entry.answers_due = now + inquiry_of(entry.seconds);
      inquire(topic, entry, out);
      continue;
    }
    if (collecting && !held) held = held_up();
    if (collecting && entry.occupied.empty() && now < entry.inquired_at + most_patience_seconds &&
        held->contains(&entry)) {
      // However short a time was stated: what holds it up is looked at no more often.
      entry.deadline = now + inquiry_seconds;
      tell_patience(topic, entry, now, out);
      continue;
    }
    const RankSet late = late_ranks(topic, entry);
    const std::uint32_t culprit = late.empty() ? Agreement::no_rank : late.front();
    abort(topic, entry,
          name_of(culprit) + (collecting ? " did not come within " : " did not vote within ") +
              in_seconds(collecting ? entry.seconds : entry.vote_seconds) +
              (entry.occupied.contains(culprit)
                   ? ", nor in the time that it asked for: it " + entry.occupied.at(culprit)
                   : ""),
          culprit, out);
  }
}

void Hub::stop(const std::string& why, Outbox& out) {
  for (auto& [topic, entry] : entries_) {
    if (is_open(entry)) abort(topic, entry, why, 0, out);
  }
}

void Hub::abort(const Topic& topic, Entry& entry, std::string why, std::uint32_t culprit,
                Outbox& out) {
  entry.why = short_why(std::move(why));
  entry.culprit = culprit;
  give_verdict(topic, entry, State::Aborted, out);
}

void Hub::give_verdict(const Topic& topic, Entry& entry, State state, Outbox& out) {
  entry.state = state;
  --num_open_;
  // A lost rank may still ask what came of its vote, but what is not known here counts as aborted.
  entry.num_unaware = topic.ranks.size();
  if (state == State::Aborted)
    for (const auto& [rank, gone] : gone_)
      if (has_rank(topic, rank)) --entry.num_unaware;
  // Whoever has so much time did not stand still.
  if (entry.seconds < most_patience_seconds)
    for (const std::uint32_t rank : topic.ranks)
      if (has_said(topic, entry, rank)) waited_[rank] = now_;
  entry.parts = {};
  entry.said_at = {};
  entry.decision = {};
  send(present(topic), verdict_of(topic, entry), out);
}

Message Hub::verdict_of(const Topic& topic, const Entry& entry) {
  Message message = about(topic, MessageType::Verdict);
  message.committed = entry.state == State::Committed;
  message.why = entry.why;
  message.culprit = entry.culprit;
  return message;
}

void Hub::forget_if_known(Entries::iterator place, Outbox& out) {
  if (place->second.num_unaware > 0) return;
  send(present(place->first), about(place->first, MessageType::Done), out);
  entries_.erase(place);
}

}  // namespace contextune::rank
