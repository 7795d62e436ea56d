// The loop of the control thread, which passes messages on and looks at the clock.
#include <algorithm>
#include <thread>

#include "rank/star/socket_star.hpp"
#include "rank/wire/endpoint.hpp"

namespace contextune::rank {
namespace {

constexpr double busy_tick_seconds = 0.02;

}  // namespace

void SocketStar::run_loop() {
  using Clock = SharedMember::Clock;
  Clock::time_point last = Clock::now();
  while (!loop_.stopped()) {
    const bool spins = member_.spins() && Clock::now() - last < SharedMember::spin_time;
    if (spins) doorbell_.answer();
    if ((spins ? loop_.poll() : loop_.run_one()) > 0) {
      last = Clock::now();
    } else {
      std::this_thread::yield();
    }
  }
}

void SocketStar::dispatch(Outbox from_member, Outbox from_hub, bool member_changed) {
  std::size_t next_of_member = 0;
  std::size_t next_of_hub = 0;
  // Each may add to the other's.
  while (next_of_member < from_member.size() || next_of_hub < from_hub.size()) {
    if (next_of_member < from_member.size()) {
      deliver_to_hub(std::move(from_member[next_of_member++]), from_hub);
    } else {
      deliver_of_hub(std::move(from_hub[next_of_hub++]), from_member, member_changed);
    }
  }
  // Waking a thread up takes longer than a message.
  if (member_changed) member_.tell_waiting();
  arm_tick();
}

void SocketStar::deliver_to_hub(Outgoing outgoing, Outbox& from_hub) {
  Message& message = outgoing.message;
  if (message.type == MessageType::Ask) {
    message.epoch = roster_.epoch();
    peer_calls_.ask(outgoing.to, roster_.address_of(outgoing.to), message);
  } else if (is_lost_) {
    return;
  } else if (hub_) {
    // The member is ours: what it sends is right.
    static_cast<void>(hub_->receive(0, std::move(outgoing.message), ticks_.now(), from_hub));
  } else {
    send_up(std::move(message));
  }
}

void SocketStar::deliver_of_hub(Outgoing outgoing, Outbox& from_member, bool& member_changed) {
  const auto send = [&](std::uint32_t to, Message message) {
    if (to == 0) {
      member_changed = true;
      return member_.with([&](Member& member) {
        static_cast<void>(member.receive(std::move(message), from_member));
      });
    }
    // Before a rank votes, it knows where to ask.
    if (message.type == MessageType::Propose) roster_.introduce(message.topic, to, message.ranks);
    roster_.send_to(to, message);
  };
  routes_.pass_down(
      std::move(outgoing), [&](std::uint32_t relay) { return roster_.has_joined(relay); }, send);
}

void SocketStar::arm_tick() {
  if (stopping_) return;
  if (relay_ && relay_->holds_messages()) return ticks_.arm(Relay::hold_seconds);
  const double idle = std::min(settings_.heartbeat_seconds, settings_.silence_seconds / 4);
  ticks_.arm(is_busy() ? std::min(busy_tick_seconds, idle) : idle);
}

bool SocketStar::is_busy() {
  if (hub_ && hub_->has_open_topics()) return true;
  if (callers_.num_strangers() > 0) return true;
  if (!hub_ && !is_lost_ && !to_hub_.is_open()) return true;
  return member_.with([](Member& member) { return member.is_asking(); });
}

void SocketStar::tick() {
  const double time = ticks_.now();
  // This process was stopped itself: the silence was its own.
  if (ticks_.begin(time) > settings_.silence_seconds / 2) {
    for (const auto& [rank, connection] : roster_.joined()) connection->last_heard = time;
    if (to_hub_.get() != nullptr) to_hub_.get()->last_heard = time;
    links_.check_each([&](Connection& connection) { connection.last_heard = time; });
  }
  Outbox from_hub;
  Outbox from_member;
  if (hub_) hub_->tick(time, from_hub);
  member_.with([&](Member& member) { member.tick(time, from_member); });
  if (relay_) {
    Outbox of_relay;
    relay_->tick(time, of_relay);
    send_all_up(of_relay);
  }
  dispatch(std::move(from_member), std::move(from_hub));
  check_connections(time);
  if (!hub_ && !is_lost_ && to_hub_.get() == nullptr) {
    if (time > settings_.join_seconds) {
      lose(absence());
    } else if (to_hub_.is_to_call(time)) {
      try_to_join();
    }
  }
  callers_.accept_next();
  arm_tick();
}

void SocketStar::check_connections(double time) {
  const bool beat = ticks_.heartbeat_is_due(time, settings_.heartbeat_seconds);
  const auto check = [&](Connection& connection) {
    if (time > connection.last_heard + settings_.silence_seconds)
      return connection.close("it was not heard of");
    if (beat) connection.send(Message{});
  };
  if (to_hub_.get() != nullptr) check(*to_hub_.get());
  for (const auto& [rank, connection] : roster_.joined()) check(*connection);
  links_.check_each(check);
  callers_.check(time);
}

void SocketStar::close_all() {
  Outbox out;
  if (hub_) hub_->stop("rank 0 stops agreeing", out);
  dispatch({}, std::move(out));
  stopping_ = true;
  ticks_.cancel();
  if (callers_.stop_listening() && hub_) remove_listener(settings_.address);
  peer_calls_.close_all();
  links_.close_all("this process stops");
  if (to_hub_.get() != nullptr) to_hub_.get()->close("this process stops");
  for (const auto& [rank, connection] : roster_.joined()) connection->close("this process stops");
  callers_.close_all("this process stops");
}

}  // namespace contextune::rank
