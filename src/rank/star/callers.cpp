#include "rank/star/callers.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "rank/wire/endpoint.hpp"
#include "rank/wire/free_descriptors.hpp"

namespace contextune::rank {
namespace {

// At a time, that have not proved anything. Others wait in the system's queue, where they take
// nothing from the program.
constexpr std::size_t max_callers = 8;
// No caller is turned away for another before this time: a real rank answers sooner.
constexpr double least_caller_seconds = 0.02;
// For a caller to prove who it is.
constexpr double proof_seconds = 1;

}  // namespace

Callers::Callers(asio::io_context& loop, const Identity& self, ConnectionOwner& owner,
                 const TickTimer& clock, std::function<void()> descriptors_changed,
                 std::function<void()> came)
    : loop_(loop),
      self_(self),
      owner_(owner),
      clock_(clock),
      descriptors_changed_(std::move(descriptors_changed)),
      came_(std::move(came)),
      listener_(loop) {}

void Callers::listen(int socket) {
  listener_.assign(socket);
}

std::string Callers::address() {
  return address_of_listener(listener_.native_handle());
}

void Callers::accept_next() {
  if (accepting_ || !listener_.is_open()) return;
  accepting_ = true;
  listener_.async_wait(asio::posix::descriptor_base::wait_read, [this](asio::error_code error) {
    accepting_ = false;
    if (error || !listener_.is_open()) return;
    note_descriptors();
    // The next tick tries again.
    if (lacks_descriptors_ || !has_room()) return came_();
    const int socket = accept_caller(listener_.native_handle());
    if (socket >= 0) {
      auto connection = std::make_shared<Connection>(loop_, socket, self_, owner_);
      connection->last_heard = clock_.now();
      callers_[connection.get()] = connection;
      connection->answer();
    } else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
      return;  // no descriptor is left: the next tick tries again
    }
    accept_next();
    came_();
  });
}

bool Callers::stop_listening() {
  const bool listened = listener_.is_open();
  asio::error_code ignored;
  listener_.close(ignored);
  return listened;
}

void Callers::note_descriptors() {
  const bool lacks = !leaves_descriptors_to_program();
  if (std::exchange(lacks_descriptors_, lacks) != lacks) descriptors_changed_();
}

std::size_t Callers::num_strangers() const {
  return static_cast<std::size_t>(std::count_if(
      callers_.begin(), callers_.end(), [](const auto& one) { return one.first->is_starting(); }));
}

// Whoever has waited longest without a proof makes room for the next: a rank that is one proves it
// at once, and must get in however many strangers there are.
bool Callers::has_room() {
  if (num_strangers() < max_callers) return true;
  Connection* oldest = nullptr;
  for (const auto& [caller, connection] : callers_) {
    if (caller->is_starting() && !caller->has_input() &&
        clock_.now() > caller->last_heard + least_caller_seconds &&
        (oldest == nullptr || caller->last_heard < oldest->last_heard))
      oldest = caller;
  }
  if (oldest == nullptr) return false;
  oldest->close("too many callers");
  return true;
}

std::shared_ptr<Connection> Callers::take(Connection& connection) {
  const auto place = callers_.find(&connection);
  std::shared_ptr<Connection> taken = std::move(place->second);
  callers_.erase(place);
  return taken;
}

void Callers::check(double time) {
  for (const auto& [caller, connection] : callers_) {
    if (!connection->is_open() && time > connection->last_heard + proof_seconds)
      connection->close("it did not say who it is");
  }
}

void Callers::close_all(const std::string& why) {
  for (const auto& [caller, connection] : callers_) connection->close(why);
}

}  // namespace contextune::rank
