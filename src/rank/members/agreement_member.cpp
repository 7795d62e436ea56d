#include "rank/members/agreement_member.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace contextune::rank {
namespace {

// Between two questions to a rank that may hear the verdict any moment.
constexpr double ask_interval_seconds = 0.05;
// Asked at once, twice as many after each interval. The first who knows ends it, and most do where
// rank 0 is lost: thousands of ranks must not all call all others.
constexpr std::size_t first_asked = 16;
// For which others wait at most for a rank that is engaged. They are told when it no longer is, and
// what it does has deadlines of its own.
constexpr double engaged_seconds = 600;

}  // namespace

void Member::say(const Topic& topic, std::uint32_t kind, Payload part, double seconds,
                 Outbox& out) {
  occupations_.erase(topic.group);
  inquiries_.erase(topic);
  const auto [place, is_new] = entries_.try_emplace(topic);
  Entry& entry = place->second;
  if (entry.said) return;
  entry.said = true;
  if (!is_new) return;  // decided already, without this rank
  std::string fault = lost_.empty() ? fault_of(topic, num_ranks_) : lost_;
  if (fault.empty() && !has_rank(topic, rank_)) fault = "this rank is not one of the topic's";
  if (fault.empty() && part.size() > max_body_bytes / 2)
    fault = "this rank has more to say than can be sent";
  if (!fault.empty()) return abort(entry, std::move(fault), rank_);
  Message message;
  message.type = MessageType::Say;
  message.topic = topic;
  message.kind = kind;
  // NaN and the infinite are no deadline.
  message.seconds = seconds > 0 && seconds < 1e9 ? seconds : 0;
  message.payload = std::move(part);
  entry.say = message;
  out.push_back({0, std::move(message)});
}

void Member::repeat(Outbox& out) {
  for (const auto& [topic, entry] : entries_) {
    if (entry.acknowledged) {
      if (!entry.done) send_hub(MessageType::Acknowledge, topic, out);
    } else if (entry.state == State::Said) {
      if (entry.said) out.push_back({0, entry.say});
    } else if (entry.state == State::Voted) {
      send_hub(MessageType::Vote, topic, out);
    }
  }
}

bool Member::waits_for_answer(const Topic& topic) const {
  const auto place = entries_.find(topic);
  return place != entries_.end() && place->second.said && !is_final(place->second);
}

void Member::occupied(const Topic& topic, double seconds, std::string why) {
  occupations_[topic.group] = {topic, seconds, short_why(std::move(why))};
}

void Member::engage(const RankSet& ranks, std::string why, Outbox& out) {
  Engaged& engaged = engaged_[ranks];
  if (engaged.times++ == 0) engaged.why = short_why(std::move(why));
  for (auto& [topic, waits] : inquiries_) {
    if (waits || topic.ranks == ranks) continue;
    waits = true;
    send_occupied(topic, engaged_seconds, engaged.why, out);
  }
}

void Member::disengage(const RankSet& ranks, Outbox& out) {
  const auto engaged = engaged_.find(ranks);
  if (engaged == engaged_.end() || --engaged->second.times > 0) return;
  engaged_.erase(engaged);
  for (auto& [topic, waits] : inquiries_) {
    if (!waits || engaged_elsewhere(topic) != nullptr) continue;
    waits = false;
    send_occupied(topic, 0, {}, out);
  }
}

// Those that it is with see for themselves what it is at, and two that are at the same must not
// keep each other waiting.
const std::string* Member::engaged_elsewhere(const Topic& topic) const {
  for (const auto& [ranks, engaged] : engaged_)
    if (ranks != topic.ranks) return &engaged.why;
  return nullptr;
}

void Member::send_occupied(const Topic& topic, double seconds, const std::string& why,
                           Outbox& out) {
  Message answer;
  answer.type = MessageType::Occupied;
  answer.topic = topic;
  answer.seconds = seconds;
  answer.why = why;
  out.push_back({0, std::move(answer)});
}

void Member::withdraw(const Topic& topic, std::string why, Outbox& out) {
  Entry& entry = entries_[topic];
  if (entry.state != State::Said) return;
  entry.said = true;
  abort(entry, short_why(std::move(why)), rank_);
  if (fault_of(topic, num_ranks_).empty() && has_rank(topic, rank_))
    send_hub(MessageType::Withdraw, topic, out, entry.why);
}

Agreement Member::poll(const Topic& topic) {
  Agreement agreement;
  const auto place = entries_.find(topic);
  if (place == entries_.end() || !place->second.said || place->second.fetched) {
    agreement.why = "this rank waits for no answer on this topic";
    return agreement;
  }
  Entry& entry = place->second;
  if (!is_final(entry)) {
    agreement.granted_seconds = std::exchange(entry.granted_seconds, 0);
    return agreement;
  }
  agreement.verdict = entry.state == State::Committed ? Verdict::Committed
                      : entry.state == State::Aborted ? Verdict::Aborted
                                                      : Verdict::Unknown;
  if (entry.state == State::Committed) agreement.decision = std::move(entry.decision);
  agreement.why = entry.why;
  agreement.culprit = entry.culprit;
  agreement.waited_seconds = entry.waited_seconds;
  agreement.others_seconds = entry.others_seconds;
  entry.fetched = true;
  entry.decision = {};
  if (entry.done) entries_.erase(place);
  return agreement;
}

bool Member::is_settled(const Topic& topic) const {
  const auto place = entries_.find(topic);
  return place == entries_.end() || !place->second.said || place->second.fetched ||
         is_final(place->second);
}

bool Member::has_patience(const Topic& topic) const {
  const auto place = entries_.find(topic);
  return place != entries_.end() && place->second.granted_seconds > 0;
}

void Member::add_waited(const Topic& topic, double seconds) {
  const auto place = entries_.find(topic);
  if (place != entries_.end()) place->second.waited_seconds += seconds;
}

std::string Member::receive(Message message, Outbox& out) {
  switch (message.type) {
    case MessageType::Propose: {
      const auto [place, is_new] = entries_.try_emplace(message.topic);
      Entry& entry = place->second;
      if (is_new) abort(entry, "a decision was proposed that this rank had no part in", rank_);
      if (entry.state == State::Said) {
        entry.state = State::Voted;
        entry.say = {};
        entry.decision = std::move(message.payload);
        entry.others_seconds = message.seconds;
        send_hub(MessageType::Vote, message.topic, out);
      } else if (is_new) {
        send_hub(MessageType::Withdraw, message.topic, out, entry.why);
      }
      return {};
    }
    case MessageType::Verdict:
      return take_verdict(message, out);
    case MessageType::Inquire: {
      const auto at = occupations_.find(message.topic.group);
      if (at != occupations_.end() && at->second.topic == message.topic) {
        send_occupied(message.topic, at->second.seconds, at->second.why, out);
        return {};
      }
      const auto place = entries_.find(message.topic);
      if (place != entries_.end() && place->second.said) return {};  // they have crossed
      if (inquiries_.size() >= max_open_topics && !inquiries_.contains(message.topic)) return {};
      const std::string* const elsewhere = engaged_elsewhere(message.topic);
      inquiries_[message.topic] = elsewhere != nullptr;
      if (elsewhere != nullptr) send_occupied(message.topic, engaged_seconds, *elsewhere, out);
      return {};
    }
    case MessageType::Occupied: {
      const auto place = entries_.find(message.topic);
      if (place != entries_.end() && place->second.state == State::Said)
        place->second.granted_seconds = message.seconds;
      return {};
    }
    case MessageType::Done: {
      const auto place = entries_.find(message.topic);
      if (place == entries_.end()) return {};
      if (!is_final(place->second)) return "a topic is done that has no verdict";
      place->second.done = true;
      if (place->second.fetched) entries_.erase(place);
      return {};
    }
    default:
      return "the coordinating rank sent what only members send";
  }
}

std::string Member::take_verdict(const Message& message, Outbox& out) {
  inquiries_.erase(message.topic);
  Entry& entry = entries_[message.topic];
  if (message.committed) {
    if (entry.state == State::Said || entry.state == State::Aborted)
      return "something was committed that this rank has not voted for";
    if (entry.state == State::Voted) commit(entry);
  } else {
    if (entry.state == State::Committed) return "what was committed was aborted";
    if (!is_final(entry)) abort(entry, message.why, message.culprit);
  }
  entry.acknowledged = true;
  send_hub(MessageType::Acknowledge, message.topic, out);
  return {};
}

void Member::lose_hub(std::string why, double now, Outbox& out, const RelaySpans* relayed) {
  if (!lost_.empty()) return;
  lost_ = short_why(std::move(why));
  for (auto& [topic, entry] : entries_) {
    if (entry.state == State::Said) abort(entry, lost_, 0);
    if (entry.state == State::Voted)
      start_asking(topic, entry, now, relayed != nullptr && relayed->carry(topic), out);
  }
}

void Member::start_asking(const Topic& topic, Entry& entry, double now, bool may_hear,
                          Outbox& out) {
  entry.why = lost_;
  entry.culprit = 0;
  entry.ask_until = now + recovery_seconds_;
  entry.ask_again = now + ask_interval_seconds;
  entry.num_to_ask = first_asked;
  for (const std::uint32_t peer : topic.ranks) entry.answers[peer] = Answer::NotAsked;
  entry.answers[0] = Answer::NotAsked;
  entry.answers.erase(rank_);
  if (may_hear) entry.answers[relay_stream] = Answer::Outstanding;
  ask_more(topic, entry, out);
  settle_if_nobody_knows(entry);
}

void Member::ask_more(const Topic& topic, Entry& entry, Outbox& out) const {
  std::size_t left = std::exchange(entry.num_to_ask, 2 * entry.num_to_ask);
  const auto ask = [&](auto begin, auto end) {
    for (auto one = begin; one != end && left > 0; ++one) {
      if (one->second != Answer::NotAsked) continue;
      one->second = Answer::Outstanding;
      --left;
      Message question;
      question.type = MessageType::Ask;
      question.topic = topic;
      out.push_back({one->first, std::move(question)});
    }
  };
  auto& answers = entry.answers;
  // Rank 0's process may well be there, and know best. Each rank goes on with those behind it, so
  // that not all call the same.
  if (!answers.empty() && answers.begin()->first == 0)
    ask(answers.begin(), std::next(answers.begin()));
  ask(answers.upper_bound(rank_), answers.end());
  ask(answers.begin(), answers.end());
}

Message Member::asked(std::uint32_t by, const Topic& topic, Outbox& out) {
  const auto [place, is_new] = entries_.try_emplace(topic);
  Entry& entry = place->second;
  if (entry.state == State::Said) {
    // Never to vote from now on is what makes the answer true.
    abort(entry, name_of(by) + " had lost the coordinating rank before this one had voted", by);
    send_hub(MessageType::Withdraw, topic, out, entry.why);
  }
  Message tell;
  tell.type = MessageType::Tell;
  tell.topic = topic;
  if (entry.state == State::Committed) {
    tell.knowledge = Knowledge::Committed;
  } else if (entry.state == State::Aborted) {
    tell.knowledge = Knowledge::Aborted;
    tell.why = entry.why;
    tell.culprit = entry.culprit;
  } else {
    tell.knowledge = lost_.empty() ? Knowledge::Waiting : Knowledge::Lost;
  }
  return tell;
}

void Member::told(std::uint32_t by, const Message& answer) {
  const auto place = entries_.find(answer.topic);
  if (place == entries_.end()) return;
  Entry& entry = place->second;
  const auto expected = entry.answers.find(by);
  if (entry.state != State::Voted || expected == entry.answers.end()) return;
  switch (answer.knowledge) {
    case Knowledge::Committed:
      commit(entry);
      break;
    case Knowledge::Aborted:
      abort(entry, answer.why, answer.culprit);
      break;
    case Knowledge::Waiting:
      expected->second = Answer::Waiting;
      break;
    case Knowledge::Lost:
      expected->second = Answer::None;
      break;
  }
  settle_if_nobody_knows(entry);
}

void Member::unreachable(std::uint32_t peer) {
  for (auto& [topic, entry] : entries_) {
    const auto expected = entry.answers.find(peer);
    if (entry.state != State::Voted || expected == entry.answers.end()) continue;
    expected->second = Answer::None;
    settle_if_nobody_knows(entry);
  }
}

void Member::tick(double now, Outbox& out) {
  if (lost_.empty()) return;
  for (auto& [topic, entry] : entries_) {
    if (entry.state != State::Voted) continue;
    if (now >= entry.ask_until) {
      for (auto& [peer, answer] : entry.answers) answer = Answer::None;
      settle_if_nobody_knows(entry);
      continue;
    }
    if (now < entry.ask_again) continue;
    entry.ask_again = now + ask_interval_seconds;
    for (auto& [peer, answer] : entry.answers) {
      if (answer != Answer::Waiting) continue;
      answer = Answer::Outstanding;
      Message ask;
      ask.type = MessageType::Ask;
      ask.topic = topic;
      out.push_back({peer, std::move(ask)});
    }
    ask_more(topic, entry, out);
  }
}

bool Member::is_asking() const noexcept {
  return !lost_.empty() && std::any_of(entries_.begin(), entries_.end(), [](const auto& entry) {
    return entry.second.state == State::Voted;
  });
}

void Member::settle_if_nobody_knows(Entry& entry) {
  if (entry.state != State::Voted) return;
  if (!std::all_of(entry.answers.begin(), entry.answers.end(),
                   [](const auto& answer) { return answer.second == Answer::None; }))
    return;
  entry.state = State::Unknown;
  entry.why += "; no rank that could be asked knows what was decided";
  entry.decision = {};
}

void Member::commit(Entry& entry) {
  entry.state = State::Committed;
  entry.why.clear();
  entry.culprit = Agreement::no_rank;
}

void Member::abort(Entry& entry, std::string why, std::uint32_t culprit) {
  entry.state = State::Aborted;
  entry.why = why.empty() ? "no reason was given" : std::move(why);
  entry.culprit = culprit;
  entry.say = {};
  entry.decision = {};
}

void Member::send_hub(MessageType type, const Topic& topic, Outbox& out, std::string why) {
  if (!lost_.empty()) return;
  Message message;
  message.type = type;
  message.topic = topic;
  message.why = std::move(why);
  out.push_back({0, std::move(message)});
}

}  // namespace contextune::rank
