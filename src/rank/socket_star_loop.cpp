// The loop of the control thread, which passes messages on and looks at the clock.
#include <algorithm>
#include <thread>

#include "rank/endpoint.hpp"
#include "rank/socket_star.hpp"

namespace contextune::rank {
namespace {

constexpr double busy_tick_seconds = 0.02;
// For a caller to prove who it is.
constexpr double proof_seconds = 1;

}  // namespace

void SocketStar::run_loop() {
  Clock::time_point last = Clock::now();
  while (!loop_.stopped()) {
    const bool spins = may_spin_ && waiting_.load(std::memory_order_relaxed) > 0 &&
                       Clock::now() - last < spin_time;
    if (spins) doorbell_.answer();
    if ((spins ? loop_.poll() : loop_.run_one()) > 0) {
      last = Clock::now();
    } else {
      std::this_thread::yield();
    }
  }
}

void SocketStar::dispatch(Outbox from_member, Outbox from_hub) {
  std::size_t next_of_member = 0;
  std::size_t next_of_hub = 0;
  // Each may add to the other's.
  while (next_of_member < from_member.size() || next_of_hub < from_hub.size()) {
    if (next_of_member < from_member.size()) {
      deliver_to_hub(std::move(from_member[next_of_member++]), from_hub);
    } else {
      deliver_to_member(std::move(from_hub[next_of_hub++]), from_member);
    }
  }
  tell_waiting();
  arm_tick();
}

void SocketStar::deliver_to_hub(Outgoing outgoing, Outbox& from_hub) {
  Message& message = outgoing.message;
  if (message.type == MessageType::Ask) {
    message.epoch = epoch_;
    peer_calls_.ask(outgoing.to, addresses_[outgoing.to], message);
  } else if (is_lost_) {
    return;
  } else if (hub_) {
    // The member is ours: what it sends is right.
    static_cast<void>(hub_->receive(0, std::move(outgoing.message), now(), from_hub));
  } else if (to_hub_ != nullptr && to_hub_->is_open()) {
    to_hub_->send(message);
  } else {
    to_send_.push_back(std::move(outgoing.message));
  }
}

void SocketStar::deliver_to_member(Outgoing outgoing, Outbox& from_member) {
  if (outgoing.to == 0) {
    const std::lock_guard lock(mutex_);
    static_cast<void>(member_.receive(std::move(outgoing.message), from_member));
    return;
  }
  // Before anybody votes, all know where to ask.
  if (peers_changed_ && outgoing.message.type == MessageType::Propose) send_peers();
  const auto joined = joined_.find(outgoing.to);
  if (joined != joined_.end()) joined->second->send(outgoing.message);
}

void SocketStar::send_peers() {
  peers_changed_ = false;
  Message peers;
  peers.type = MessageType::Peers;
  peers.epoch = epoch_;
  peers.addresses = addresses_;
  for (const auto& [rank, connection] : joined_) connection->send(peers);
}

void SocketStar::arm_tick() {
  if (stopping_) return;
  const double idle = std::min(settings_.heartbeat_seconds, settings_.silence_seconds / 4);
  const double time = now();
  const double at = time + (is_busy() ? std::min(busy_tick_seconds, idle) : idle);
  // A tick that comes soon enough stays.
  if (next_tick_ > time && next_tick_ <= at) return;
  next_tick_ = at;
  timer_.expires_at(started_ +
                    std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(at)));
  timer_.async_wait([this](asio::error_code error) {
    if (!error) tick();
  });
}

bool SocketStar::is_busy() {
  if (hub_ && hub_->has_open_topics()) return true;
  if (num_strangers() > 0) return true;
  if (!hub_ && !is_lost_ && (to_hub_ == nullptr || !to_hub_->is_open())) return true;
  const std::lock_guard lock(mutex_);
  return member_.is_asking();
}

void SocketStar::tick() {
  const double time = now();
  // This process was stopped itself: the silence was its own.
  if (time > next_tick_ + settings_.silence_seconds / 2) {
    for (const auto& [rank, connection] : joined_) connection->last_heard = time;
    if (to_hub_ != nullptr) to_hub_->last_heard = time;
  }
  next_tick_ = 0;
  Outbox from_hub;
  Outbox from_member;
  if (hub_) hub_->tick(time, from_hub);
  {
    const std::lock_guard lock(mutex_);
    member_.tick(time, from_member);
  }
  dispatch(std::move(from_member), std::move(from_hub));
  check_connections(time);
  if (!hub_ && !is_lost_ && to_hub_ == nullptr) {
    if (time > settings_.join_seconds) {
      lose(absence());
    } else if (time >= join_again_) {
      try_to_join();
    }
  }
  accept_next();
  arm_tick();
}

void SocketStar::check_connections(double time) {
  const bool beat = time >= next_heartbeat_;
  if (beat) next_heartbeat_ = time + settings_.heartbeat_seconds;
  const auto check = [&](Connection& connection) {
    if (time > connection.last_heard + settings_.silence_seconds)
      return connection.close("it was not heard of");
    if (beat) connection.send(Message{});
  };
  if (to_hub_ != nullptr) check(*to_hub_);
  for (const auto& [rank, connection] : joined_) check(*connection);
  for (const auto& [caller, connection] : callers_) {
    if (!connection->is_open() && time > connection->last_heard + proof_seconds)
      connection->close("it did not say who it is");
  }
}

void SocketStar::close_all() {
  Outbox out;
  if (hub_) hub_->stop("rank 0 stops agreeing", out);
  dispatch({}, std::move(out));
  stopping_ = true;
  asio::error_code ignored;
  timer_.cancel();
  listener_.close(ignored);
  if (hub_ && listens_) remove_listener(settings_.address);
  peer_calls_.close_all();
  if (to_hub_ != nullptr) to_hub_->close("this process stops");
  for (const auto& [rank, connection] : joined_) connection->close("this process stops");
  for (const auto& [caller, connection] : callers_) connection->close("this process stops");
}

}  // namespace contextune::rank
