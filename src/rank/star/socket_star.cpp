#include "rank/star/socket_star.hpp"

#include <cstring>
#include <exception>

#include "rank/wire/endpoint.hpp"

namespace contextune::rank {

SocketStar::SocketStar(const SocketSettings& settings, Deciders deciders, bool own_descriptors)
    : settings_(settings),
      self_{key_of_secret(settings.secret), number_of_job(settings.job), settings.rank,
            settings.num_ranks},
      own_descriptors_(own_descriptors),
      ticks_(loop_, [this] { tick(); }),
      member_(Member(settings.rank, settings.num_ranks, settings.recovery_seconds),
              settings.may_spin),
      roster_(settings.num_ranks),
      callers_(
          loop_, self_, *this, ticks_,
          [this] {
            if (hub_) note_joined();
          },
          [this] { arm_tick(); }),
      peer_calls_(
          loop_, self_,
          [this](std::uint32_t peer, const Message& answer) {
            member_.with([&](Member& member) { member.told(peer, answer); });
            member_.tell_waiting();
          },
          [this](std::uint32_t peer) {
            member_.with([&](Member& member) { member.unreachable(peer); });
            member_.tell_waiting();
          }),
      to_hub_(loop_, self_, settings_.address, *this, ticks_),
      spans_(settings.num_ranks, settings.fewest_relayed_ranks),
      routes_(settings.num_ranks, spans_),
      links_(loop_, self_, *this, ticks_) {
  if (settings.rank == 0)
    hub_.emplace(std::move(deciders), settings.vote_seconds, settings.num_ranks);
  if (spans_.is_relay(settings.rank)) relay_.emplace(settings.rank, spans_);
}

void SocketStar::run() noexcept {
  std::string why = "this process stopped agreeing";
  try {
    if (own_descriptors_) doorbell_.start();
    start();
    run_loop();
  } catch (const std::exception& error) {
    why = std::string("agreeing failed: ") + error.what();
  } catch (...) {
    why = "agreeing failed";
  }
  try {
    if (!stopping_) close_all();  // those that are connected need not wait for a sign of life
  } catch (...) {
    // No memory: they hear nothing more of this one.
  }
  member_.end(why);
  doorbell_.stop();
  member_.tell_waiting();
}

void SocketStar::post(Outbox out) {
  if (member_.has_ended()) return;
  have_done([this, out = std::move(out)]() mutable { dispatch(std::move(out), {}); });
}

void SocketStar::have_done(std::function<void()> work) {
  if (own_descriptors_) return doorbell_.ring(std::move(work));
  asio::post(loop_, std::move(work));
}

bool SocketStar::stop(double seconds) noexcept {
  try {
    return member_.wait_for_end(seconds, [this] { have_done([this] { close_all(); }); });
  } catch (...) {
    return false;
  }
}

std::string SocketStar::fault_of_settings() const {
  if (settings_.rank >= settings_.num_ranks)
    return name_of(settings_.rank) + " of " + std::to_string(settings_.num_ranks) +
           " does not exist";
  if (!is_local_address(settings_.address) && settings_.secret.size() < min_secret_bytes)
    return "ranks on several hosts agree only with a shared secret of at least " +
           std::to_string(min_secret_bytes) + " characters";
  return {};
}

void SocketStar::start() {
  std::string fault = fault_of_settings();
  int socket = -1;
  if (fault.empty()) {
    const std::string anywhere = is_local_address(settings_.address) ? "unix:" : "tcp:";
    socket = settings_.listener ? settings_.listener->take()
                                : listen_at(hub_ ? settings_.address : anywhere, fault);
  }
  if (socket < 0) {
    lose(fault);
  } else {
    callers_.listen(socket);
    if (hub_) {
      const std::optional<Nonce> drawn = random_nonce();
      std::uint64_t epoch = 0;
      std::memcpy(&epoch, drawn.value().data(), sizeof(epoch));
      roster_.set_epoch(epoch);
    }
    roster_.set_hub_address(settings_.address);
    callers_.accept_next();
    hub_ ? note_joined() : try_to_join();
  }
  arm_tick();
}

void SocketStar::try_to_join() {
  note_unreached(to_hub_.call());
}

void SocketStar::note_unreached(const std::string& why) {
  std::string absence = "rank 0 was not reached at " + settings_.address;
  if (!why.empty()) absence += " (" + why + ")";
  member_.set_absence(std::move(absence));
}

void SocketStar::note_joined() {
  const std::size_t here = hub_ ? 1 + roster_.num_seen() : settings_.num_ranks;
  std::string absence;
  if (here < settings_.num_ranks)
    absence = "only " + std::to_string(here) + " of " + std::to_string(settings_.num_ranks) +
              " ranks have come to " + settings_.address;
  if (here < settings_.num_ranks && callers_.lacks_descriptors())
    absence += ", and rank 0 leaves the few descriptors that it has to its program";
  member_.set_absence(std::move(absence));
}

Admission SocketStar::admit(const Claim& claim) {
  if (claim.purpose == Purpose::Ask) return Admission::Welcome;
  if (claim.purpose == Purpose::Relay) {
    const bool is_served = relay_ && !is_lost_ && relay_->serves(claim.rank);
    return is_served && !links_.serves(claim.rank) ? Admission::Welcome : Admission::NotHere;
  }
  if (!hub_) return Admission::NotHere;
  return roster_.see(claim.rank) ? Admission::Welcome : Admission::RankTaken;
}

void SocketStar::opened(Connection& connection) {
  connection.last_heard = ticks_.now();
  to_hub_.note_proof();
  if (&connection == to_hub_.get()) {
    Message listening;
    listening.type = MessageType::Listening;
    listening.addresses = {callers_.address()};
    to_hub_.opened(listening);
    note_joined();
  } else if (connection.purpose() == Purpose::Join) {
    roster_.join(callers_.take(connection));
    note_joined();
  } else if (links_.is_relay(connection)) {
    Message attach;
    attach.type = MessageType::Attach;
    to_hub_.send(std::move(attach));
    has_relay_.store(true, std::memory_order_relaxed);
  } else if (connection.purpose() == Purpose::Relay) {
    links_.serve(callers_.take(connection));
    relay_->attach(connection.peer());
  }
}

void SocketStar::received(Connection& connection, Message message) {
  connection.last_heard = ticks_.now();
  if (message.type == MessageType::Heartbeat) return;
  if (&connection == to_hub_.get()) return take_from_hub(connection, std::move(message));
  if (connection.purpose() == Purpose::Join)
    return take_from_member(connection, std::move(message));
  if (links_.is_relay(connection)) return take_from_relay(connection, std::move(message));
  if (connection.purpose() == Purpose::Relay)
    return take_from_served(connection, std::move(message));
  if (message.type != MessageType::Ask || !has_rank(message.topic, connection.peer()) ||
      !(hub_ || has_rank(message.topic, self_.rank)))
    return connection.close("it may only ask about topics of its own and of this rank");
  // A process that took the place of one that is gone does not know what that one knew.
  if (roster_.epoch() == 0 || message.epoch != roster_.epoch())
    return connection.close("it asks about a time before this process");
  answer(connection, message.topic);
}

void SocketStar::take_from_hub(Connection& connection, Message message) {
  if (message.type == MessageType::Relay) {
    if (const std::uint32_t relay = spans_.relay_of(self_.rank); relay != 0 && !relay_)
      links_.call_relay(relay, message.addresses.front());
    return;
  }
  // It has said something that the hub does not have: the relay stands still.
  if (message.type == MessageType::Inquire && links_.is_attached() && spans_.carry(message.topic) &&
      member_.with([&](Member& member) { return member.waits_for_answer(message.topic); }))
    leave_relay("it passes nothing on");
  const std::string fault =
      message.ranks.empty() ? give_member(std::move(message)) : pass_down(message);
  if (!fault.empty()) connection.close(fault);
}

std::string SocketStar::give_member(Message message) {
  if (message.type == MessageType::Peers) {
    roster_.take(std::move(message));
    return {};
  }
  Outbox out;
  std::string fault =
      member_.with([&](Member& member) { return member.receive(std::move(message), out); });
  dispatch(std::move(out), {});
  return fault;
}

void SocketStar::take_from_member(Connection& connection, Message message) {
  Outbox out;
  std::string fault;
  if (message.type == MessageType::Listening) {
    roster_.set_address(connection.peer(),
                        as_seen_from(connection.socket(), message.addresses.front()));
    return tell_relay(connection.peer());
  }
  if (message.type == MessageType::Attach) return routes_.attach(connection.peer());
  if (message.type == MessageType::Detach) {
    routes_.detach(connection.peer());
    roster_.forget_introductions(connection.peer());
    hub_->repeat(connection.peer(), out);
  } else if (!message.ranks.empty()) {
    fault = take_of_several(connection, std::move(message), out);
  } else {
    fault = hub_->receive(connection.peer(), std::move(message), ticks_.now(), out);
  }
  dispatch({}, std::move(out), false);
  if (!fault.empty()) connection.close(fault);
}

void SocketStar::answer(Connection& connection, const Topic& topic) {
  Outbox out;
  if (hub_) {
    connection.send(hub_->asked(connection.peer(), topic, out));
    return dispatch({}, std::move(out));
  }
  connection.send(
      member_.with([&](Member& member) { return member.asked(connection.peer(), topic, out); }));
  dispatch(std::move(out), {});
}

void SocketStar::closed(Connection& connection, const std::string& why) {
  if (&connection == to_hub_.get()) {
    const std::string loss = to_hub_.closed(why);
    // If it never answered, the next tick tries again.
    return loss.empty() ? note_unreached(why) : lose(loss);
  }
  if (roster_.leave(connection)) {
    Outbox out;
    if (!stopping_)
      hub_->lose(connection.peer(), name_of(connection.peer()) + " is lost: " + why, out);
    return dispatch({}, std::move(out));
  }
  if (links_.is_relay(connection)) return leave_relay(why);
  if (links_.stop_serving(connection)) return stop_serving(connection.peer());
  callers_.forget(connection);
}

void SocketStar::lose(const std::string& why) {
  if (is_lost_) return;
  is_lost_ = true;
  to_hub_.drop_unsent();
  // All that came from there was passed on before. This rank's relay may do so yet.
  links_.close_served("the relay lost rank 0");
  Outbox out;
  const RelaySpans* const relayed = links_.is_attached() ? &spans_ : nullptr;
  member_.with([&](Member& member) { member.lose_hub(why, ticks_.now(), out, relayed); });
  dispatch(std::move(out), {});
}

}  // namespace contextune::rank
