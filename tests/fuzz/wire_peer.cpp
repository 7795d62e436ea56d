#include "wire_peer.hpp"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "core/value/byte_stream.hpp"

namespace contextune::fuzz {
namespace {

constexpr std::chrono::seconds patience{20};

/// Until the other end has taken what was sent, or is gone.
void wait_until_taken(int socket) {
  int left = 0;
  while (ioctl(socket, SIOCOUTQ, &left) == 0 && left != 0) {
    pollfd state{socket, 0, 0};
    if (poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR)) != 0) return;
    sched_yield();
  }
}

}  // namespace

bool becomes_readable(int socket) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + patience;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    pollfd wait{socket, POLLIN, 0};
    const int ready = poll(&wait, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    // The engine's own timer interrupts it now and then.
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

void broken(const char* rule) {
  std::fprintf(stderr, "Broken: %s\n", rule);
  std::abort();
}

WirePeer::WirePeer(int socket, const Job& job) : socket_(socket), job_(job) {
  fcntl(socket_, F_SETFL, fcntl(socket_, F_GETFL) & ~O_NONBLOCK);
}

WirePeer::~WirePeer() {
  close(socket_);
}

std::vector<std::byte> WirePeer::read_exactly(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t got = 0; got < size;) {
    if (!becomes_readable(socket_)) broken("a connection is answered or closed");
    const ssize_t some = recv(socket_, bytes.data() + got, size - got, 0);
    if (some <= 0) return {};
    got += static_cast<std::size_t>(some);
  }
  return bytes;
}

void WirePeer::open(const rank::Nonce& listener, const rank::Nonce& caller, bool is_caller,
                    std::uint32_t peer) {
  const rank::SessionKeys keys = rank::session_keys(job_.key, listener, caller);
  origin_ = {is_caller ? keys.to_listener : keys.to_caller, job_.number, own_rank_};
  writer_.emplace(origin_);
  reader_.emplace(
      rank::FrameOrigin{is_caller ? keys.to_caller : keys.to_listener, job_.number, peer});
}

bool WirePeer::prove(const rank::Claim& claim, std::uint32_t peer) {
  rank::Nonce listener{};
  std::string error;
  const std::vector<std::byte> challenge = read_exactly(rank::challenge_bytes);
  if (challenge.empty() || !rank::read_challenge(challenge, listener, error)) return false;
  send(rank::make_proof(job_.key, listener, claim), 0);
  const std::vector<std::byte> welcome = read_exactly(rank::welcome_bytes);
  if (welcome.empty()) return false;
  rank::Admission admission = rank::Admission::NotHere;
  if (!rank::read_welcome(job_.key, listener, claim.nonce, welcome, admission))
    broken("who is called proves that it knows the secret");
  if (admission != rank::Admission::Welcome) return false;
  if (claim.job != job_.number || claim.rank >= job_.num_ranks)
    broken("only ranks of the job are welcome");
  own_rank_ = claim.rank;
  open(listener, claim.nonce, true, peer);
  return true;
}

void WirePeer::prove_nothing(std::span<const std::byte> bytes) {
  static_cast<void>(read_exactly(rank::challenge_bytes));
  send(bytes, 0);
}

bool WirePeer::answer(std::uint32_t own_rank, rank::Admission admission) {
  own_rank_ = own_rank;
  const rank::Nonce nonce{std::byte{7}};
  send(rank::make_challenge(nonce), 0);
  const std::vector<std::byte> proof = read_exactly(rank::proof_bytes);
  rank::Claim claim;
  if (proof.empty()) return false;
  if (!rank::read_proof(job_.key, nonce, proof, claim) || claim.job != job_.number)
    broken("who calls proves that it is of the job");
  send(rank::make_welcome(job_.key, nonce, claim.nonce, admission), 0);
  if (admission != rank::Admission::Welcome) return false;
  open(nonce, claim.nonce, false, claim.rank);
  return true;
}

void WirePeer::send(std::span<const std::byte> bytes, std::size_t piece) {
  const std::size_t most = piece == 0 ? bytes.size() : piece;
  while (!bytes.empty()) {
    const auto now = bytes.first(std::min(most, bytes.size()));
    const ssize_t sent = ::send(socket_, now.data(), now.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
    wait_until_taken(socket_);
  }
}

void WirePeer::send(std::uint16_t type, std::span<const std::byte> body, std::size_t piece,
                    Untruth untruth) {
  if (!writer_) return;
  using Field = Untruth::Field;
  std::vector<std::byte> bytes = writer_->seal(type, body);
  ++sequence_;
  if (untruth.field != Field::Nothing) {
    const auto value_of = [&](Field field, auto truth) {
      return untruth.field == field ? static_cast<decltype(truth)>(untruth.value) : truth;
    };
    bytes.clear();
    ByteWriter to(bytes);
    to.number(value_of(Field::Length, static_cast<std::uint32_t>(body.size())));
    to.number(value_of(Field::Magic, rank::frame_magic));
    to.number(value_of(Field::Version, rank::frame_version));
    to.number(type);
    to.number(value_of(Field::Sender, origin_.sender));
    to.number(value_of(Field::Job, origin_.job));
    to.number(value_of(Field::Sequence, sequence_ - 1));
    to.raw(body);
    to.number(value_of(Field::Tag, rank::siphash(origin_.key, bytes)));
  }
  send(bytes, piece);
}

void WirePeer::send(const rank::Message& message, std::size_t piece) {
  send(static_cast<std::uint16_t>(message.type), rank::encode(message), piece);
}

void WirePeer::hang_up() {
  shutdown(socket_, SHUT_WR);
}

std::vector<rank::Message> WirePeer::received() {
  std::vector<rank::Message> messages;
  std::array<std::byte, 4096> piece;
  for (;;) {
    const ssize_t got = recv(socket_, piece.data(), piece.size(), MSG_DONTWAIT);
    if (got <= 0 || !reader_) return messages;
    reader_->feed(std::span(piece).first(static_cast<std::size_t>(got)));
    rank::Frame frame;
    while (reader_->next(frame)) {
      rank::Message message;
      std::string error;
      if (!rank::decode(frame, job_.num_ranks, message, error))
        broken("what is sent can be read by every rank");
      messages.push_back(std::move(message));
    }
    if (!reader_->error().empty()) broken("what is sent are frames in their order");
  }
}

}  // namespace contextune::fuzz
