#include "simulated_ranks.hpp"

#include <cstddef>
#include <iterator>
#include <span>

#include "catch.hpp"

using contextune::Agreement;
using contextune::Payload;
using contextune::Topic;
using contextune::Verdict;
using namespace contextune::rank;

namespace {

Deciders joining() {
  return {{1, [](const Topic&, std::span<const Payload> said, std::string&) {
             Payload all;
             for (const Payload& part : said) all.insert(all.end(), part.begin(), part.end());
             return all;
           }}};
}

}  // namespace

SimulatedRanks::SimulatedRanks(std::uint32_t num_ranks, std::uint64_t seed,
                               std::uint32_t fewest_relayed)
    : random_(seed),
      spans_(num_ranks, fewest_relayed),
      routes_(num_ranks, spans_),
      relays_(num_ranks),
      attached_(num_ranks, false),
      has_called_relay_(num_ranks, false),
      hub_(joining(), 5, num_ranks),
      alive_(num_ranks, true),
      linked_(num_ranks, true),
      hidden_(num_ranks, false) {
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank) members_.emplace_back(rank, num_ranks, 5);
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank)
    if (spans_.is_relay(rank)) relays_[rank].emplace(rank, spans_);
}

void SimulatedRanks::attach(std::uint32_t rank) {
  const std::uint32_t relay = spans_.relay_of(rank);
  if (relay == 0 || relay == rank || has_called_relay_[rank] || !alive_[rank] || !alive_[relay] ||
      !linked_[rank] || !linked_[relay])
    return;
  has_called_relay_[rank] = attached_[rank] = true;
  relays_[relay]->attach(rank);
  Message message;
  message.type = MessageType::Attach;
  send_to_hub(rank, std::move(message));
}

void SimulatedRanks::cut_off_relay(std::uint32_t rank) {
  if (!attached_[rank]) return;
  break_link(Kind::ToRelay, rank, Kind::RelaySeesEnd);
  break_link(Kind::FromRelay, rank, Kind::SeesEndOfRelay);
}

void SimulatedRanks::say(std::uint32_t rank, const Topic& topic, double seconds) {
  asked_.emplace_back(rank, topic);
  if (!alive_[rank]) return;
  Outbox out;
  members_[rank].say(topic, 1, {static_cast<std::byte>(rank + 1)}, seconds, out);
  send(rank, std::move(out));
  look();
}

void SimulatedRanks::withdraw(std::uint32_t rank, const Topic& topic) {
  if (!alive_[rank]) return;
  Outbox out;
  members_[rank].withdraw(topic, "changed its mind", out);
  send(rank, std::move(out));
  look();
}

void SimulatedRanks::occupied(std::uint32_t rank, const Topic& topic, double seconds) {
  members_[rank].occupied(topic, seconds, "is building");
}

void SimulatedRanks::engage(std::uint32_t rank, const std::vector<std::uint32_t>& with) {
  Outbox out;
  members_[rank].engage(with, "is searching", out);
  send(rank, std::move(out));
}

void SimulatedRanks::disengage(std::uint32_t rank, const std::vector<std::uint32_t>& with) {
  Outbox out;
  members_[rank].disengage(with, out);
  send(rank, std::move(out));
}

bool SimulatedRanks::step() {
  std::erase_if(links_, [](const auto& link) { return link.second.empty(); });
  if (links_.empty()) return false;
  const auto place =
      std::next(links_.begin(), static_cast<std::ptrdiff_t>(random_() % links_.size()));
  const Link link = place->first;
  Item item = std::move(place->second.front());
  place->second.pop_front();
  ++num_messages_;
  deliver(link, std::move(item));
  look();
  return true;
}

void SimulatedRanks::steps(std::uint64_t count) {
  while (count-- > 0 && step()) {
  }
}

void SimulatedRanks::settle() {
  for (int round = 0; round < 60; ++round) {
    while (step()) {
    }
    pass_time(0.5);
  }
}

void SimulatedRanks::pass_time(double seconds) {
  now_ += seconds;
  if (alive_[0]) {
    Outbox out;
    hub_.tick(now_, out);
    send_of_hub(std::move(out));
  }
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank) {
    if (!alive_[rank]) continue;
    Outbox out;
    members_[rank].tick(now_, out);
    send(rank, std::move(out));
    Outbox of_relay;
    if (relays_[rank]) relays_[rank]->tick(now_, of_relay);
    send_of_relay(rank, std::move(of_relay));
  }
  look();
}

void SimulatedRanks::kill(std::uint32_t rank) {
  if (!alive_[rank]) return;
  alive_[rank] = false;
  end_links_of(rank);
}

void SimulatedRanks::leave(std::uint32_t rank) {
  loses_messages_ = false;
  kill(rank);
  loses_messages_ = true;
}

void SimulatedRanks::end_links_of(std::uint32_t rank) {
  if (attached_[rank]) break_link(Kind::ToRelay, rank, Kind::RelaySeesEnd);
  if (relays_[rank]) stop_relaying(rank);
  if (rank != 0) return break_link(Kind::ToHub, rank, Kind::HubSeesEnd);
  for (std::uint32_t other = 1; other < members_.size(); ++other)
    break_link(Kind::ToMember, other, Kind::MemberSeesEnd);
}

void SimulatedRanks::cut(std::uint32_t rank) {
  if (rank == 0 || !linked_[rank]) return;
  break_link(Kind::ToHub, rank, Kind::HubSeesEnd);
  break_link(Kind::ToMember, rank, Kind::MemberSeesEnd);
  linked_[rank] = false;
}

// Some of what was sent still arrives, then the end.
void SimulatedRanks::break_link(Kind kind, std::uint32_t rank, Kind end) {
  if ((kind == Kind::ToHub || kind == Kind::ToMember) && !linked_[rank]) return;
  auto& queue = links_[{kind, rank, 0}];
  if (loses_messages_) queue.resize(random_() % (queue.size() + 1));
  queue.push_back({end, {}});
}

void SimulatedRanks::stop_relaying(std::uint32_t relay) {
  for (std::uint32_t rank = 0; rank < members_.size(); ++rank)
    if (attached_[rank] && spans_.relay_of(rank) == relay)
      break_link(Kind::FromRelay, rank, Kind::SeesEndOfRelay);
}

void SimulatedRanks::send(std::uint32_t from_member, Outbox out) {
  for (Outgoing& outgoing : out) {
    Message& message = outgoing.message;
    if (message.type == MessageType::Ask) {
      links_[{Kind::Ask, from_member, outgoing.to}].push_back({Kind::Ask, std::move(message)});
    } else if (from_member == 0) {
      Outbox more;
      static_cast<void>(hub_.receive(0, std::move(message), now_, more));
      send_of_hub(std::move(more));
    } else if (!is_relayed_up(message.type) || !spans_.carry(message.topic)) {
      send_to_hub(from_member, std::move(message));
    } else if (attached_[from_member]) {
      links_[{Kind::ToRelay, from_member, 0}].push_back({Kind::ToRelay, std::move(message)});
    } else if (relays_[from_member]) {
      Outbox of_relay;
      static_cast<void>(
          relays_[from_member]->pass_up(from_member, std::move(message), now_, of_relay));
      send_of_relay(from_member, std::move(of_relay));
    } else {
      send_to_hub(from_member, std::move(message));
    }
  }
}

void SimulatedRanks::send_of_relay(std::uint32_t relay, Outbox out) {
  for (Outgoing& outgoing : out) send_to_hub(relay, std::move(outgoing.message));
}

void SimulatedRanks::send_to_hub(std::uint32_t from, Message message) {
  if (linked_[from]) links_[{Kind::ToHub, from, 0}].push_back({Kind::ToHub, std::move(message)});
}

void SimulatedRanks::send_of_hub(Outbox out) {
  for (Outgoing& outgoing : out) {
    routes_.pass_down(
        std::move(outgoing), [&](std::uint32_t relay) { return linked_[relay]; },
        [&](std::uint32_t to, Message message) {
          if (to == 0) return give(0, std::move(message));
          if (linked_[to])
            links_[{Kind::ToMember, to, 0}].push_back({Kind::ToMember, std::move(message)});
        });
  }
}

void SimulatedRanks::give(std::uint32_t at, Message message) {
  Outbox out;
  const std::string fault = members_[at].receive(std::move(message), out);
  REQUIRE(fault == "");
  send(at, std::move(out));
}

void SimulatedRanks::take_at_hub(std::uint32_t from, Message message) {
  Outbox out;
  std::string fault;
  if (message.type == MessageType::Attach) {
    routes_.attach(from);
  } else if (message.type == MessageType::Detach) {
    routes_.detach(from);
    hub_.repeat(from, out);
  } else if (message.ranks.empty()) {
    fault = hub_.receive(from, std::move(message), now_, out);
  } else if (const auto ranks = routes_.spoken_for(from, message.ranks); !ranks.empty()) {
    fault = hub_.receive(from, some_of(message, ranks), now_, out);
  }
  REQUIRE(fault == "");
  send_of_hub(std::move(out));
}

void SimulatedRanks::take_of_hub(std::uint32_t at, Message message) {
  if (message.type == MessageType::Inquire && attached_[at] && spans_.carry(message.topic) &&
      members_[at].waits_for_answer(message.topic))
    leave_relay(at);
  if (message.ranks.empty()) return give(at, std::move(message));
  Outbox out;
  REQUIRE(relays_[at]->pass_down(message, out) == "");
  for (Outgoing& outgoing : out) {
    if (outgoing.to == at) {
      give(at, std::move(outgoing.message));
    } else {
      links_[{Kind::FromRelay, outgoing.to, 0}].push_back(
          {Kind::FromRelay, std::move(outgoing.message)});
    }
  }
}

void SimulatedRanks::leave_relay(std::uint32_t rank) {
  if (!attached_[rank]) return;
  attached_[rank] = false;
  links_.erase({Kind::FromRelay, rank, 0});
  break_link(Kind::ToRelay, rank, Kind::RelaySeesEnd);
  if (!members_[rank].lost().empty()) return members_[rank].relay_ended();
  Message message;
  message.type = MessageType::Detach;
  send_to_hub(rank, std::move(message));
  Outbox out;
  members_[rank].repeat(out);
  send(rank, std::move(out));
}

void SimulatedRanks::deliver(const Link& link, Item item) {
  Outbox out;
  const bool to_hub = item.kind == Kind::ToHub || item.kind == Kind::HubSeesEnd;
  const std::uint32_t at = to_hub                       ? 0
                           : link.kind == Kind::Ask     ? link.b
                           : link.kind == Kind::ToRelay ? spans_.relay_of(link.a)
                                                        : link.a;
  if (link.kind == Kind::Ask && (!alive_[at] || hidden_[at])) {
    links_[{Kind::Tell, link.a, link.b}].push_back({Kind::Unreachable, {}});
    return;
  }
  if (!alive_[at]) return;
  if (to_hub || item.kind == Kind::ToMember) ++num_hub_messages_;
  switch (item.kind) {
    case Kind::ToHub:
      return take_at_hub(link.a, std::move(item.message));
    case Kind::HubSeesEnd:
      hub_.lose(link.a, "lost", out);
      return send_of_hub(std::move(out));
    case Kind::ToMember:
      return take_of_hub(at, std::move(item.message));
    case Kind::MemberSeesEnd:
      members_[at].lose_hub("lost", now_, out, attached_[at] ? &spans_ : nullptr);
      // Its relay may still pass on what it was told before.
      if (relays_[at]) stop_relaying(at);
      return send(at, std::move(out));
    case Kind::ToRelay:
      REQUIRE(relays_[at]->pass_up(link.a, std::move(item.message), now_, out) == "");
      return send_of_relay(at, std::move(out));
    case Kind::RelaySeesEnd:
      relays_[at]->detach(link.a, out);
      return send_of_relay(at, std::move(out));
    case Kind::FromRelay:
      // Nothing is read any more of a connection that this end has closed.
      return attached_[at] ? give(at, std::move(item.message)) : void();
    case Kind::SeesEndOfRelay:
      return leave_relay(at);
    case Kind::Ask: {
      Message tell = at == 0 ? hub_.asked(link.a, item.message.topic, out)
                             : members_[at].asked(link.a, item.message.topic, out);
      links_[{Kind::Tell, link.a, link.b}].push_back({Kind::Tell, std::move(tell)});
      return at == 0 ? send_of_hub(std::move(out)) : send(at, std::move(out));
    }
    case Kind::Tell:
      return members_[at].told(link.b, item.message);
    case Kind::Unreachable:
      return members_[at].unreachable(link.b);
  }
}

// Every rank looks all the time, so that what one saw before it died counts.
void SimulatedRanks::look() {
  for (const auto& [rank, topic] : asked_) {
    if (!alive_[rank]) continue;
    Agreement agreement = members_[rank].poll(topic);
    if (agreement.verdict == Verdict::Committed && !agreement.why.empty()) FAIL(agreement.why);
    if (agreement.verdict != Verdict::Open) seen_[{rank, topic.question}] = std::move(agreement);
  }
}

Agreement SimulatedRanks::seen(std::uint32_t rank, const Topic& topic) const {
  const auto place = seen_.find({rank, topic.question});
  return place == seen_.end() ? Agreement{} : place->second;
}

std::set<Verdict> SimulatedRanks::verdicts(const Topic& topic) const {
  std::set<Verdict> all;
  for (const std::uint32_t rank : topic.ranks) all.insert(seen(rank, topic).verdict);
  return all;
}

std::size_t SimulatedRanks::num_topics_at_members() const {
  std::size_t sum = 0;
  for (const Member& member : members_) sum += member.num_topics();
  return sum;
}

bool SimulatedRanks::keeps_promise(const Topic& topic) const {
  const std::set<Verdict> all = verdicts(topic);
  return !(all.contains(Verdict::Committed) && all.contains(Verdict::Aborted));
}
