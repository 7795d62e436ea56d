#include "simulated_ranks.hpp"

#include <cstddef>
#include <iterator>
#include <span>

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

SimulatedRanks::SimulatedRanks(std::uint32_t num_ranks, std::uint64_t seed)
    : random_(seed),
      hub_(joining(), 5, num_ranks),
      alive_(num_ranks, true),
      linked_(num_ranks, true),
      hidden_(num_ranks, false) {
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank) members_.emplace_back(rank, num_ranks, 5);
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
  }
  look();
}

void SimulatedRanks::kill(std::uint32_t rank) {
  if (!alive_[rank]) return;
  alive_[rank] = false;
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
  if (!linked_[rank]) return;
  auto& queue = links_[{kind, rank, 0}];
  queue.resize(random_() % (queue.size() + 1));
  queue.push_back({end, {}});
}

void SimulatedRanks::send(std::uint32_t from_member, Outbox out) {
  for (Outgoing& outgoing : out) {
    if (outgoing.message.type == MessageType::Ask) {
      links_[{Kind::Ask, from_member, outgoing.to}].push_back(
          {Kind::Ask, std::move(outgoing.message)});
    } else if (from_member == 0) {
      Outbox more;
      static_cast<void>(hub_.receive(0, std::move(outgoing.message), now_, more));
      send_of_hub(std::move(more));
    } else if (linked_[from_member]) {
      links_[{Kind::ToHub, from_member, 0}].push_back({Kind::ToHub, std::move(outgoing.message)});
    }
  }
}

void SimulatedRanks::send_of_hub(Outbox out) {
  for (Outgoing& outgoing : out) {
    if (outgoing.to == 0) {
      Outbox more;
      static_cast<void>(members_[0].receive(std::move(outgoing.message), more));
      send(0, std::move(more));
    } else if (linked_[outgoing.to]) {
      links_[{Kind::ToMember, outgoing.to, 0}].push_back(
          {Kind::ToMember, std::move(outgoing.message)});
    }
  }
}

void SimulatedRanks::deliver(const Link& link, Item item) {
  Outbox out;
  const bool to_hub = item.kind == Kind::ToHub || item.kind == Kind::HubSeesEnd;
  const std::uint32_t at = to_hub ? 0 : link.kind == Kind::Ask ? link.b : link.a;
  if (link.kind == Kind::Ask && (!alive_[at] || hidden_[at])) {
    links_[{Kind::Tell, link.a, link.b}].push_back({Kind::Unreachable, {}});
    return;
  }
  if (!alive_[at]) return;
  switch (item.kind) {
    case Kind::ToHub:
      static_cast<void>(hub_.receive(link.a, std::move(item.message), now_, out));
      return send_of_hub(std::move(out));
    case Kind::HubSeesEnd:
      hub_.lose(link.a, "lost", out);
      return send_of_hub(std::move(out));
    case Kind::ToMember:
      static_cast<void>(members_[at].receive(std::move(item.message), out));
      return send(at, std::move(out));
    case Kind::MemberSeesEnd:
      members_[at].lose_hub("lost", now_, out);
      return send(at, std::move(out));
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
