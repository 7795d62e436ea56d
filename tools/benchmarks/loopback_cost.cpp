#include "loopback_cost.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <asio.hpp>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "rank/wire/connection.hpp"

namespace bench {
namespace {

using contextune::Payload;
using contextune::rank::Admission;
using contextune::rank::Claim;
using contextune::rank::Connection;
using contextune::rank::ConnectionOwner;
using contextune::rank::Identity;
using contextune::rank::Message;
using contextune::rank::MessageType;
using contextune::rank::Purpose;

constexpr std::uint32_t peers = 64;
constexpr int rounds = 200;

double cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e6 * static_cast<double>(now.tv_sec) + 1e-3 * static_cast<double>(now.tv_nsec);
}

void require(bool holds) {
  if (!holds) throw std::runtime_error("the system has no sockets to measure with");
}

using Pair = std::array<int, 2>;

Pair unix_pair() {
  Pair pair{};
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair.data()) == 0);
  return pair;
}

Pair tcp_pair() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(place);
  auto* const address = reinterpret_cast<sockaddr*>(&place);
  require(listener >= 0 && bind(listener, address, size) == 0 && listen(listener, 1) == 0 &&
          getsockname(listener, address, &size) == 0);
  const Pair pair{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), -1};
  require(pair[0] >= 0 && connect(pair[0], address, size) == 0);
  const Pair connected{pair[0], accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)};
  require(connected[1] >= 0);
  close(listener);
  for (const int one : connected) {
    const int on = 1;
    setsockopt(one, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  }
  return connected;
}

/// One side of all connections.
class Side final : public ConnectionOwner {
 public:
  Side(std::uint32_t rank, bool answers) : answers_(answers) {
    self_.key = {1, 2};
    self_.job = 3;
    self_.rank = rank;
    self_.num_ranks = peers + 1;
  }

  Connection& add(asio::io_context& loop, int socket, std::uint32_t rank) {
    Identity self = self_;
    self.rank = rank;
    connections_.push_back(std::make_shared<Connection>(loop, socket, self, *this));
    return *connections_.back();
  }
  void send_to_all(const Message& message) {
    for (const auto& connection : connections_) connection->send(message);
  }
  void close_all() {
    for (const auto& connection : connections_) connection->close("measured");
  }

  [[nodiscard]] Admission admit(const Claim&) override { return Admission::Welcome; }
  void opened(Connection&) override { ++num_open; }
  void received(Connection& connection, Message message) override {
    ++num_received;
    if (answers_) connection.send(message);
  }
  void closed(Connection&, const std::string&) override {}

  std::uint64_t num_open = 0;
  std::uint64_t num_received = 0;

 private:
  Identity self_;
  bool answers_;
  std::vector<std::shared_ptr<Connection>> connections_;
};

}  // namespace

LoopbackCost measure_loopback(Loopback kind, std::size_t payload_bytes) {
  asio::io_context loop(1);
  asio::io_context loop_of_peers(1);
  Side hub(0, false);
  Side others(0, true);
  for (std::uint32_t peer = 1; peer <= peers; ++peer) {
    const auto [here, there] = kind == Loopback::Unix ? unix_pair() : tcp_pair();
    hub.add(loop, here, 0).answer();
    others.add(loop_of_peers, there, peer).call(0, Purpose::Join);
  }
  std::thread thread([&] { loop_of_peers.run(); });
  while (hub.num_open < peers && loop.run_one() > 0) {
  }
  Message message;
  message.type = MessageType::Propose;
  message.topic = {1, 1, {0, 1}};
  message.payload = Payload(payload_bytes, std::byte{1});
  double sending = 0;
  double receiving = 0;
  for (int round = 0; round < rounds; ++round) {
    const double begin = cpu_us();
    hub.send_to_all(message);
    const double sent = cpu_us();
    const std::uint64_t all = std::uint64_t{peers} * static_cast<std::uint64_t>(round + 1);
    while (hub.num_received < all && loop.run_one() > 0) {
    }
    sending += sent - begin;
    receiving += cpu_us() - sent;
  }
  hub.close_all();
  loop.run();
  thread.join();
  require(hub.num_received == std::uint64_t{peers} * rounds);
  return {sending / (peers * rounds), receiving / (peers * rounds)};
}

}  // namespace bench
