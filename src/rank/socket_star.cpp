#include "rank/socket_star.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <limits>
#include <thread>

#include "rank/endpoint.hpp"
#include "rank/free_descriptors.hpp"

namespace contextune::rank {
namespace {

constexpr double join_interval_seconds = 0.05;
// At a time, that have not proved anything. Others wait in the system's queue, where they take
// nothing from the program.
constexpr std::size_t max_callers = 8;
// No caller is turned away for another before this time: a real rank answers sooner.
constexpr double least_caller_seconds = 0.02;
// In a row, of a listener that may have turned this rank away before it could prove itself.
constexpr int most_silent_ends = 8;

std::chrono::steady_clock::duration to_duration(double seconds) {
  // NaN and the negative are no time at all.
  const double sane = seconds > 0 ? std::min(seconds, 1e8) : 0;
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(sane));
}

}  // namespace

SocketStar::SocketStar(const SocketSettings& settings, Deciders deciders, bool own_descriptors)
    : settings_(settings),
      self_{key_of_secret(settings.secret), number_of_job(settings.job), settings.rank,
            settings.num_ranks},
      own_descriptors_(own_descriptors),
      may_spin_(settings.may_spin),
      member_(settings.rank, settings.num_ranks, settings.recovery_seconds),
      peer_calls_(
          loop_, self_,
          [this](std::uint32_t peer, const Message& answer) {
            {
              const std::lock_guard lock(mutex_);
              member_.told(peer, answer);
            }
            tell_waiting();
          },
          [this](std::uint32_t peer) {
            {
              const std::lock_guard lock(mutex_);
              member_.unreachable(peer);
            }
            tell_waiting();
          }),
      addresses_(settings.num_ranks) {
  if (settings.rank == 0) hub_.emplace(std::move(deciders), settings.vote_seconds);
}

double SocketStar::now() const {
  return std::chrono::duration<double>(Clock::now() - started_).count();
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
    Outbox out;
    if (!stopping_) close_all();  // those that are connected need not wait for a sign of life
    const std::lock_guard lock(mutex_);
    member_.lose_hub(why, 0, out);
    // Nobody is left to ask for this one.
    member_.tick(std::numeric_limits<double>::infinity(), out);
    ended_ = true;
  } catch (...) {
    ended_ = true;
  }
  doorbell_.stop();
  tell_waiting();
}

void SocketStar::post(Outbox out) {
  if (ended_) return;
  have_done([this, out = std::move(out)]() mutable { dispatch(std::move(out), {}); });
}

void SocketStar::have_done(std::function<void()> work) {
  if (own_descriptors_) return doorbell_.ring(std::move(work));
  asio::post(loop_, std::move(work));
}

void SocketStar::wait_for(const Topic& topic, double seconds) {
  const Clock::time_point until = Clock::now() + to_duration(seconds);
  ++waiting_;
  std::unique_lock lock(mutex_);
  while (!ended_ && !member_.is_settled(topic) && !member_.has_patience(topic)) {
    const std::uint32_t seen = changes_.load();
    if (may_spin_) {
      lock.unlock();
      const Clock::time_point enough = std::min(until, Clock::now() + spin_time);
      while (changes_.load() == seen && Clock::now() < enough) std::this_thread::yield();
      lock.lock();
    }
    if (!changed_.wait_until(lock, until, [&] { return changes_.load() != seen; })) break;
  }
  --waiting_;
}

void SocketStar::tell_waiting() noexcept {
  {
    const std::lock_guard lock(mutex_);
    ++changes_;
  }
  changed_.notify_all();
}

bool SocketStar::stop(double seconds) noexcept {
  try {
    std::unique_lock lock(mutex_);
    if (ended_) return true;
    have_done([this] { close_all(); });
    return changed_.wait_until(lock, Clock::now() + to_duration(seconds), [&] { return ended_; });
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
    listener_.assign(socket);
    listens_ = true;
    if (hub_) {
      const std::optional<Nonce> drawn = random_nonce();
      std::memcpy(&epoch_, drawn.value().data(), sizeof(epoch_));
    }
    addresses_[0] = settings_.address;
    accept_next();
    hub_ ? note_joined() : try_to_join();
  }
  arm_tick();
}

void SocketStar::accept_next() {
  if (stopping_ || accepting_ || !listener_.is_open()) return;
  accepting_ = true;
  listener_.async_wait(asio::posix::descriptor_base::wait_read, [this](asio::error_code error) {
    accepting_ = false;
    if (error || stopping_) return;
    note_descriptors();
    // The next tick tries again.
    if (lacks_descriptors_ || !has_room()) return arm_tick();
    const int socket = accept_caller(listener_.native_handle());
    if (socket >= 0) {
      auto connection = std::make_shared<Connection>(loop_, socket, self_, *this);
      connection->last_heard = now();
      callers_[connection.get()] = connection;
      connection->answer();
    } else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
      return;  // no descriptor is left: the next tick tries again
    }
    accept_next();
    arm_tick();
  });
}

void SocketStar::note_descriptors() {
  const bool lacks = !leaves_descriptors_to_program();
  if (std::exchange(lacks_descriptors_, lacks) != lacks && hub_) note_joined();
}

std::size_t SocketStar::num_strangers() const {
  return static_cast<std::size_t>(std::count_if(
      callers_.begin(), callers_.end(), [](const auto& one) { return one.first->is_starting(); }));
}

// Whoever has waited longest without a proof makes room for the next: a rank that is one proves it
// at once, and must get in however many strangers there are.
bool SocketStar::has_room() {
  if (num_strangers() < max_callers) return true;
  Connection* oldest = nullptr;
  for (const auto& [caller, connection] : callers_) {
    if (caller->is_starting() && !caller->has_input() &&
        now() > caller->last_heard + least_caller_seconds &&
        (oldest == nullptr || caller->last_heard < oldest->last_heard))
      oldest = caller;
  }
  if (oldest == nullptr) return false;
  oldest->close("too many callers");
  return true;
}

void SocketStar::try_to_join() {
  Endpoint endpoint;
  std::string error;
  int socket = -1;
  if (find_endpoint(settings_.address, endpoint, error, join_attempts_++))
    socket = start_connecting(endpoint, error);
  join_again_ = now() + join_interval_seconds;
  note_unreached(error);
  if (socket < 0) return;
  to_hub_ = std::make_shared<Connection>(loop_, socket, self_, *this);
  to_hub_->last_heard = now();
  to_hub_->call(0, Purpose::Join);
}

void SocketStar::note_unreached(const std::string& why) {
  const std::lock_guard lock(mutex_);
  absence_ = "rank 0 was not reached at " + settings_.address;
  if (!why.empty()) absence_ += " (" + why + ")";
}

void SocketStar::note_joined() {
  const std::size_t here = hub_ ? 1 + seen_.size() : settings_.num_ranks;
  const std::lock_guard lock(mutex_);
  absence_.clear();
  if (here < settings_.num_ranks)
    absence_ = "only " + std::to_string(here) + " of " + std::to_string(settings_.num_ranks) +
               " ranks have come to " + settings_.address;
  if (here < settings_.num_ranks && lacks_descriptors_)
    absence_ += ", and rank 0 leaves the few descriptors that it has to its program";
}

std::string SocketStar::absence() {
  const std::lock_guard lock(mutex_);
  return absence_;
}

Admission SocketStar::admit(const Claim& claim) {
  if (claim.purpose == Purpose::Ask) return Admission::Welcome;
  if (!hub_) return Admission::NotHere;
  return seen_.insert(claim.rank).second ? Admission::Welcome : Admission::RankTaken;
}

void SocketStar::opened(Connection& connection) {
  connection.last_heard = now();
  silent_ends_ = 0;
  if (&connection == to_hub_.get()) {
    Message listening;
    listening.type = MessageType::Listening;
    listening.addresses = {address_of_listener(listener_.native_handle())};
    connection.send(listening);
    for (const Message& message : to_send_) connection.send(message);
    to_send_.clear();
    note_joined();
  } else if (connection.purpose() == Purpose::Join) {
    const auto place = callers_.find(&connection);
    joined_[connection.peer()] = place->second;
    callers_.erase(place);
    note_joined();
  }
}

void SocketStar::received(Connection& connection, Message message) {
  connection.last_heard = now();
  if (message.type == MessageType::Heartbeat) return;
  if (&connection == to_hub_.get()) return take_from_hub(connection, std::move(message));
  if (connection.purpose() == Purpose::Join)
    return take_from_member(connection, std::move(message));
  if (message.type != MessageType::Ask || !has_rank(message.topic, connection.peer()) ||
      !(hub_ || has_rank(message.topic, self_.rank)))
    return connection.close("it may only ask about topics of its own and of this rank");
  // A process that took the place of one that is gone does not know what that one knew.
  if (epoch_ == 0 || message.epoch != epoch_)
    return connection.close("it asks about a time before this process");
  answer(connection, message.topic);
}

void SocketStar::take_from_hub(Connection& connection, Message message) {
  if (message.type == MessageType::Peers) {
    epoch_ = message.epoch;
    addresses_ = std::move(message.addresses);
    return;
  }
  Outbox out;
  std::string fault;
  {
    const std::lock_guard lock(mutex_);
    fault = member_.receive(std::move(message), out);
  }
  dispatch(std::move(out), {});
  if (!fault.empty()) connection.close(fault);
}

void SocketStar::take_from_member(Connection& connection, Message message) {
  if (message.type == MessageType::Listening) {
    addresses_[connection.peer()] = as_seen_from(connection.socket(), message.addresses.front());
    peers_changed_ = true;
    return;
  }
  Outbox out;
  const std::string fault = hub_->receive(connection.peer(), std::move(message), now(), out);
  dispatch({}, std::move(out));
  if (!fault.empty()) connection.close(fault);
}

void SocketStar::answer(Connection& connection, const Topic& topic) {
  Outbox out;
  if (hub_) {
    connection.send(hub_->asked(connection.peer(), topic, out));
    return dispatch({}, std::move(out));
  }
  Message tell;
  {
    const std::lock_guard lock(mutex_);
    tell = member_.asked(connection.peer(), topic, out);
  }
  connection.send(tell);
  dispatch(std::move(out), {});
}

void SocketStar::closed(Connection& connection, const std::string& why) {
  if (&connection == to_hub_.get()) {
    const std::string hub = "rank 0 at " + settings_.address;
    if (connection.was_open()) {
      lose(hub + " is lost: " + why);
    } else if (connection.was_refused()) {
      lose(hub + ": " + why);
    } else if (connection.has_proved() && ++silent_ends_ >= most_silent_ends) {
      lose(hub +
           " hung up without a word: it has ended, or the secret is not the same on all ranks");
    } else {
      note_unreached(why);
    }
    to_hub_ = nullptr;  // if it never answered, the next tick tries again
    return;
  }
  const auto joined = joined_.find(connection.peer());
  if (joined != joined_.end() && joined->second.get() == &connection) {
    const std::uint32_t rank = connection.peer();
    joined_.erase(joined);
    Outbox out;
    if (!stopping_) hub_->lose(rank, name_of(rank) + " is lost: " + why, out);
    dispatch({}, std::move(out));
    return;
  }
  callers_.erase(&connection);
}

void SocketStar::lose(const std::string& why) {
  if (is_lost_) return;
  is_lost_ = true;
  to_send_.clear();
  Outbox out;
  {
    const std::lock_guard lock(mutex_);
    member_.lose_hub(why, now(), out);
  }
  dispatch(std::move(out), {});
}

}  // namespace contextune::rank
