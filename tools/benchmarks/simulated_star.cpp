#include "simulated_star.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace bench {
namespace {

using contextune::Agreement;
using contextune::Payload;
using contextune::Topic;
using contextune::Verdict;
using contextune::rank::Deciders;
using contextune::rank::Frame;
using contextune::rank::FrameOrigin;
using contextune::rank::FrameReader;
using contextune::rank::Member;
using contextune::rank::Message;
using contextune::rank::MessageType;
using contextune::rank::Outbox;
using contextune::rank::Outgoing;
using contextune::rank::Relay;

constexpr double vote_seconds = 5;
constexpr double recovery_seconds = 600;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Of reading that clock, of which each measured part contains one.
double cpu_seconds_of_clock() {
  constexpr int times = 1000;
  const double begin = cpu_seconds();
  for (int i = 0; i < times; ++i) static_cast<void>(cpu_seconds());
  return (cpu_seconds() - begin) / (times + 1);
}

/// Adds what a scope takes to a sum.
class CpuTime {
 public:
  explicit CpuTime(double& sum) : sum_(sum), begin_(cpu_seconds()) {}
  CpuTime(const CpuTime&) = delete;
  CpuTime& operator=(const CpuTime&) = delete;
  ~CpuTime() {
    static const double clock = cpu_seconds_of_clock();
    sum_ += std::max(0.0, cpu_seconds() - begin_ - clock);
  }

 private:
  double& sum_;
  double begin_;
};

FrameOrigin origin_of(std::uint32_t rank, std::uint32_t sender) {
  return {{rank + 1ULL, 2}, 3, sender};
}

}  // namespace

SimulatedStar::Rank::Rank(std::uint32_t rank, std::uint32_t num_ranks)
    : member(rank, num_ranks, recovery_seconds),
      to_hub(origin_of(rank, rank)),
      from_hub(origin_of(rank, 0)),
      to_relay(origin_of(rank, rank)),
      from_relay(origin_of(rank, 0)) {}

SimulatedStar::SimulatedStar(std::uint32_t num_ranks, const NetworkModel& model, Deciders deciders,
                             std::uint64_t seed)
    : model_(model),
      random_(seed),
      spans_(num_ranks, model.fewest_relayed_ranks),
      routes_(num_ranks, spans_),
      hub_(std::move(deciders), vote_seconds, num_ranks) {
  ranks_.reserve(num_ranks);
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank) {
    ranks_.emplace_back(rank, num_ranks);
    const std::uint32_t relay = spans_.relay_of(rank);
    if (relay == rank && rank != 0) ranks_[rank].relay.emplace(rank, spans_);
    if (relay == 0 || relay == rank) continue;
    ranks_[relay].relay->attach(rank);
    ranks_[rank].is_attached = true;
    routes_.attach(rank);
  }
}

void SimulatedStar::say(double at, std::uint32_t rank, const Topic& topic, Payload part,
                        double seconds) {
  Event event;
  event.at = at;
  event.number = num_events_++;
  event.kind = Kind::Says;
  event.rank = rank;
  event.says = [this, rank, topic, part = std::move(part), seconds](Member& member, Outbox& out) {
    ranks_[rank].asked.push_back(topic);
    member.say(topic, 1, part, seconds, out);
  };
  events_.push(std::move(event));
}

void SimulatedStar::occupied(std::uint32_t rank, const Topic& topic, double seconds) {
  ranks_[rank].member.occupied(topic, seconds, "is building");
}

void SimulatedStar::kill(double at, std::uint32_t rank) {
  schedule(at, Kind::Dies, rank);
}

void SimulatedStar::stand_still(double at, std::uint32_t rank) {
  schedule(at, Kind::Stops, rank);
}

void SimulatedStar::schedule(double at, Kind kind, std::uint32_t rank,
                             std::vector<std::byte> frame) {
  Event event;
  event.at = at;
  event.number = num_events_++;
  event.kind = kind;
  event.rank = rank;
  event.frame = std::move(frame);
  events_.push(std::move(event));
}

// As SocketStar::arm_tick does while something is open.
void SimulatedStar::schedule_tick(double after) {
  if (is_tick_scheduled_ || !hub_.has_open_topics()) return;
  is_tick_scheduled_ = true;
  schedule(after + model_.tick_seconds, Kind::Tick, 0);
}

void SimulatedStar::run_until(double end) {
  while (!events_.empty() && events_.top().at <= end) {
    // The queue shows its first element as constant only, and is about to drop it.
    Event event = std::move(const_cast<Event&>(events_.top()));
    events_.pop();
    now_ = event.at;
    happen(std::move(event));
  }
  if (std::isfinite(end)) now_ = std::max(now_, end);
}

void SimulatedStar::run() {
  run_until(std::numeric_limits<double>::infinity());
}

void SimulatedStar::happen(Event event) {
  Rank& rank = ranks_[event.rank];
  switch (event.kind) {
    case Kind::Says: {
      if (!rank.is_alive) return;
      Outbox out;
      event.says(rank.member, out);
      if (event.rank == 0) {
        hub_free_at_ = std::max(hub_free_at_, event.at);
        return dispatch(std::move(out), {});
      }
      rank.free_at = std::max(rank.free_at, event.at);
      send_up(event.rank, std::move(out));
      return look(event.rank, rank.free_at);
    }
    case Kind::ReachesHub:
      return reach_hub(event);
    case Kind::ReachesMember:
      return reach_member(event);
    case Kind::ReachesRelay:
      return reach_relay(event);
    case Kind::ReachesServed:
      return reach_served(event);
    case Kind::RelaySeesEnd: {
      const std::uint32_t relay = spans_.relay_of(event.rank);
      if (!ranks_[relay].is_alive) return;
      Outbox out;
      ranks_[relay].relay->detach(event.rank, out);
      return send_of_relay(relay, std::move(out));
    }
    case Kind::SeesEndOfRelay:
      return leave_relay(event.rank);
    case Kind::RelayTicks: {
      rank.relay_ticks = false;
      if (!rank.is_alive) return;
      rank.free_at = std::max(rank.free_at, event.at);
      Outbox out;
      rank.relay->tick(event.at, out);
      return send_of_relay(event.rank, std::move(out));
    }
    case Kind::Dies:
      return die(event);
    case Kind::Stops:
      rank.is_alive = false;
      return;
    case Kind::HubSeesEnd: {
      rank.is_connected = false;
      hub_free_at_ = std::max(hub_free_at_, event.at);
      Outbox out;
      {
        const CpuTime taken(traffic_.hub_cpu_seconds);
        hub_.lose(event.rank, contextune::rank::name_of(event.rank) + " is lost", out);
      }
      return dispatch({}, std::move(out));
    }
    case Kind::Tick: {
      is_tick_scheduled_ = false;
      hub_free_at_ = std::max(hub_free_at_, event.at);
      Outbox out;
      {
        const CpuTime taken(traffic_.hub_cpu_seconds);
        hub_.tick(hub_free_at_, out);
      }
      return dispatch({}, std::move(out));
    }
  }
}

void SimulatedStar::die(const Event& event) {
  Rank& rank = ranks_[event.rank];
  rank.is_alive = false;
  const auto after = [&](const Link& link, std::uint32_t other) {
    return std::max(event.at + latency_between(event.rank, other), link.last_arrival);
  };
  schedule(after(rank.to_hub, 0), Kind::HubSeesEnd, event.rank);
  if (rank.is_attached)
    schedule(after(rank.to_relay, spans_.relay_of(event.rank)), Kind::RelaySeesEnd, event.rank);
  for (std::uint32_t other = event.rank + 1; rank.relay && other < ranks_.size(); ++other) {
    if (spans_.relay_of(other) != event.rank) break;
    if (ranks_[other].is_attached)
      schedule(after(ranks_[other].from_relay, other), Kind::SeesEndOfRelay, other);
  }
}

void SimulatedStar::reach_hub(const Event& event) {
  const std::size_t bytes = event.frame.size();
  const bool is_near = share_host(event.rank, 0);
  if (!is_near)
    link_in_free_at_ =
        std::max(link_in_free_at_, event.at) + static_cast<double>(bytes) / model_.bytes_per_second;
  const double here = is_near ? event.at : link_in_free_at_;
  hub_free_at_ = std::max(hub_free_at_, here) + handling_of(bytes);
  traffic_.rank_0_busy_seconds += handling_of(bytes);
  ++traffic_.messages;
  traffic_.bytes += bytes;
  Message message;
  {
    const CpuTime taken(traffic_.wire_cpu_seconds);
    message = open(ranks_[event.rank].to_hub, event.frame);
  }
  Outbox out;
  std::string fault;
  {
    const CpuTime taken(traffic_.hub_cpu_seconds);
    if (message.type == MessageType::Detach) {
      routes_.detach(event.rank);
      hub_.repeat(event.rank, out);
    } else {
      if (!message.ranks.empty()) {
        const auto ranks = routes_.spoken_for(event.rank, message.ranks);
        if (ranks.empty()) return;
        if (ranks != message.ranks) message = some_of(message, ranks);
      }
      fault = hub_.receive(event.rank, std::move(message), hub_free_at_, out);
    }
  }
  if (!fault.empty()) throw std::runtime_error("the hub refused a message: " + fault);
  dispatch({}, std::move(out));
}

void SimulatedStar::reach_member(const Event& event) {
  Rank& rank = ranks_[event.rank];
  if (!rank.is_alive) return;
  rank.free_at = std::max(rank.free_at, event.at) + handling_of(event.frame.size());
  Message message = open(rank.from_hub, event.frame);
  if (message.type == MessageType::Inquire && rank.is_attached && spans_.carry(message.topic) &&
      rank.member.waits_for_answer(message.topic))
    leave_relay(event.rank);
  if (message.ranks.empty()) return give(event.rank, std::move(message));
  Outbox out;
  const std::string fault = rank.relay->pass_down(message, out);
  if (!fault.empty()) throw std::runtime_error("a relay refused a message: " + fault);
  for (Outgoing& outgoing : out) {
    if (outgoing.to == event.rank) {
      give(event.rank, std::move(outgoing.message));
    } else {
      send(event.rank, ranks_[outgoing.to].from_relay, Kind::ReachesServed, outgoing.to,
           outgoing.message);
    }
  }
}

void SimulatedStar::reach_relay(const Event& event) {
  const std::uint32_t relay = spans_.relay_of(event.rank);
  Rank& there = ranks_[relay];
  if (!there.is_alive) return;
  there.free_at = std::max(there.free_at, event.at) + handling_of(event.frame.size());
  ++traffic_.passed_on;
  Outbox out;
  const std::string fault = there.relay->pass_up(
      event.rank, open(ranks_[event.rank].to_relay, event.frame), there.free_at, out);
  if (!fault.empty()) throw std::runtime_error("a relay refused a message: " + fault);
  send_of_relay(relay, std::move(out));
}

void SimulatedStar::reach_served(const Event& event) {
  Rank& rank = ranks_[event.rank];
  if (!rank.is_alive || !rank.is_attached) return;
  rank.free_at = std::max(rank.free_at, event.at) + handling_of(event.frame.size());
  ++traffic_.passed_on;
  give(event.rank, open(rank.from_relay, event.frame));
}

void SimulatedStar::leave_relay(std::uint32_t rank) {
  if (!std::exchange(ranks_[rank].is_attached, false) || !ranks_[rank].is_alive) return;
  schedule(ranks_[rank].free_at + latency_between(rank, spans_.relay_of(rank)), Kind::RelaySeesEnd,
           rank);
  Message message;
  message.type = MessageType::Detach;
  send_to_hub(rank, message);
  Outbox out;
  ranks_[rank].member.repeat(out);
  send_up(rank, std::move(out));
}

void SimulatedStar::give(std::uint32_t rank, Message message) {
  Outbox out;
  const std::string fault = ranks_[rank].member.receive(std::move(message), out);
  if (!fault.empty()) throw std::runtime_error("a member refused a message: " + fault);
  look(rank, ranks_[rank].free_at);
  send_up(rank, std::move(out));
}

// As SocketStar::dispatch does: rank 0's own messages take no socket.
void SimulatedStar::dispatch(Outbox from_member, Outbox from_hub) {
  std::size_t next_of_member = 0;
  std::size_t next_of_hub = 0;
  while (next_of_member < from_member.size() || next_of_hub < from_hub.size()) {
    if (next_of_member < from_member.size()) {
      const CpuTime taken(traffic_.hub_cpu_seconds);
      static_cast<void>(hub_.receive(0, std::move(from_member[next_of_member++].message),
                                     hub_free_at_, from_hub));
      continue;
    }
    routes_.pass_down(
        std::move(from_hub[next_of_hub++]),
        [&](std::uint32_t relay) { return ranks_[relay].is_connected; },
        [&](std::uint32_t to, Message message) {
          if (to != 0) {
            send_to_member(to, message);
          } else if (ranks_[0].is_alive) {
            static_cast<void>(ranks_[0].member.receive(std::move(message), from_member));
          }
        });
  }
  look(0, hub_free_at_);
  schedule_tick(hub_free_at_);
}

void SimulatedStar::send_up(std::uint32_t from, Outbox out) {
  Rank& rank = ranks_[from];
  for (Outgoing& outgoing : out) {
    Message& message = outgoing.message;
    const bool is_carried =
        contextune::rank::is_relayed_up(message.type) && spans_.carry(message.topic);
    if (is_carried && rank.is_attached) {
      send(from, rank.to_relay, Kind::ReachesRelay, from, message);
    } else if (is_carried && rank.relay) {
      Outbox of_relay;
      static_cast<void>(rank.relay->pass_up(from, std::move(message), rank.free_at, of_relay));
      send_of_relay(from, std::move(of_relay));
    } else {
      send_to_hub(from, message);
    }
  }
}

void SimulatedStar::send_of_relay(std::uint32_t relay, Outbox out) {
  Rank& rank = ranks_[relay];
  for (const Outgoing& outgoing : out) send_to_hub(relay, outgoing.message);
  if (!rank.relay->holds_messages() || std::exchange(rank.relay_ticks, true)) return;
  schedule(rank.free_at + Relay::hold_seconds, Kind::RelayTicks, relay);
}

void SimulatedStar::send_to_hub(std::uint32_t from, const Message& message) {
  send(from, ranks_[from].to_hub, Kind::ReachesHub, from, message);
}

void SimulatedStar::send(std::uint32_t sender, Link& link, Kind kind, std::uint32_t rank,
                         const Message& message) {
  std::vector<std::byte> frame = link.writer.seal(frame_type_of(message), encode(message));
  double& free_at = ranks_[sender].free_at;
  free_at += handling_of(frame.size());
  const std::uint32_t receiver = kind == Kind::ReachesHub     ? 0
                                 : kind == Kind::ReachesRelay ? spans_.relay_of(rank)
                                                              : rank;
  link.last_arrival = std::max(free_at + latency_between(sender, receiver), link.last_arrival);
  schedule(link.last_arrival, kind, rank, std::move(frame));
}

void SimulatedStar::send_to_member(std::uint32_t to, const Message& message) {
  Rank& rank = ranks_[to];
  if (!rank.is_connected) return;
  std::vector<std::byte> frame;
  {
    const CpuTime taken(traffic_.wire_cpu_seconds);
    frame = rank.from_hub.writer.seal(frame_type_of(message), encode(message));
  }
  hub_free_at_ += handling_of(frame.size());
  traffic_.rank_0_busy_seconds += handling_of(frame.size());
  ++traffic_.messages;
  traffic_.bytes += frame.size();
  double leaves = hub_free_at_;
  if (!share_host(to, 0)) {
    link_out_free_at_ = std::max(link_out_free_at_, leaves) +
                        static_cast<double>(frame.size()) / model_.bytes_per_second;
    leaves = link_out_free_at_;
  }
  rank.from_hub.last_arrival =
      std::max(leaves + latency_between(0, to), rank.from_hub.last_arrival);
  schedule(rank.from_hub.last_arrival, Kind::ReachesMember, to, std::move(frame));
}

void SimulatedStar::look(std::uint32_t rank, double now) {
  std::erase_if(ranks_[rank].asked, [&](const Topic& topic) {
    const Agreement agreement = ranks_[rank].member.poll(topic);
    if (agreement.verdict == Verdict::Open) return false;
    if (told_) told_(rank, topic, now, agreement);
    return true;
  });
}

Message SimulatedStar::open(Link& link, const std::vector<std::byte>& sealed) const {
  FrameReader& reader = link.reader;
  reader.feed(sealed);
  Frame frame;
  Message message;
  std::string error = "a frame that is not whole";
  if (!reader.next(frame) ||
      !decode(frame, static_cast<std::uint32_t>(ranks_.size()), message, error))
    throw std::runtime_error(reader.error().empty() ? error : reader.error());
  return message;
}

bool SimulatedStar::share_host(std::uint32_t a, std::uint32_t b) const noexcept {
  return a / model_.ranks_per_host == b / model_.ranks_per_host;
}

double SimulatedStar::latency_between(std::uint32_t a, std::uint32_t b) {
  // The standard library's distributions differ from one to another.
  const double uniform = (static_cast<double>(random_() >> 11U) + 1) * 0x1p-53;
  return (share_host(a, b) ? model_.host_seconds : model_.network_seconds) -
         model_.jitter_seconds * std::log(uniform);
}

double SimulatedStar::handling_of(std::size_t bytes) const noexcept {
  return model_.message_seconds + model_.kib_seconds * static_cast<double>(bytes) / 1024;
}

}  // namespace bench
