#include "rank/wire/connection.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "rank/wire/endpoint.hpp"

namespace contextune::rank {
namespace {

constexpr std::size_t piece_bytes = std::size_t{64} << 10U;
// A peer that leaves more bytes than this untaken counts as gone.
constexpr std::size_t max_output_bytes = std::size_t{64} << 20U;

int family_of(int socket) {
  int family = AF_UNIX;
  socklen_t size = sizeof(family);
  static_cast<void>(getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size));
  return family;
}

// By number alone: the category may be gone by now, and no call on a socket says ENOENT.
std::string text_of(const asio::error_code& error) {
  static_assert(asio::error::eof == ENOENT);
  return error.value() == asio::error::eof ? std::string("it closed the connection")
                                           : text_of_error(error.value());
}

template <std::size_t Size>
std::vector<std::byte> to_vector(const std::array<std::byte, Size>& bytes) {
  return {bytes.begin(), bytes.end()};
}

}  // namespace

Connection::Connection(asio::io_context& loop, int socket, const Identity& self,
                       ConnectionOwner& owner)
    : socket_(loop), self_(self), owner_(owner) {
  asio::error_code error;
  socket_.assign(asio::generic::stream_protocol(family_of(socket), 0), socket, error);
  if (error) {
    ::close(socket);
    return;
  }
  socket_.non_blocking(true, error);
}

int Connection::socket() {
  return socket_.is_open() ? socket_.native_handle() : -1;
}

bool Connection::has_input() {
  std::byte first{};
  return recv(socket(), &first, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

template <class Next>
void Connection::read_fixed(std::size_t size, Next next) {
  input_.resize(size);
  asio::async_read(socket_, asio::buffer(input_),
                   [self = shared_from_this(), next](const asio::error_code& error, std::size_t) {
                     if (self->state_ == State::Closed) return;
                     if (error) return self->close(text_of(error));
                     (self.get()->*next)();
                   });
}

void Connection::answer() {
  if (!socket_.is_open() || !is_same_user(socket())) return close("a process of another user");
  const std::optional<Nonce> nonce = random_nonce();
  if (!nonce) return close("the system has no random numbers");
  listener_nonce_ = *nonce;
  send_raw(to_vector(make_challenge(listener_nonce_)));
  read_fixed(proof_bytes, &Connection::take_proof);
}

void Connection::call(std::uint32_t peer, Purpose purpose) {
  peer_ = peer;
  purpose_ = purpose;
  if (!socket_.is_open()) return close("no socket");
  socket_.async_wait(asio::socket_base::wait_write,
                     [self = shared_from_this()](const asio::error_code& error) {
                       if (self->state_ == State::Closed) return;
                       if (error) return self->close(text_of(error));
                       if (const int code = connect_error(self->socket()); code != 0)
                         return self->close(text_of_error(code));
                       if (!is_same_user(self->socket()))
                         return self->close("a process of another user listens");
                       self->read_fixed(challenge_bytes, &Connection::take_challenge);
                     });
}

void Connection::take_proof() {
  Claim claim;
  if (!read_proof(self_.key, listener_nonce_, input_, claim))
    return close("a caller does not know the secret");
  Admission admission = Admission::Welcome;
  if (claim.job != self_.job) {
    admission = Admission::OtherJob;
  } else if (claim.rank >= self_.num_ranks || claim.rank == self_.rank) {
    admission = claim.rank == self_.rank ? Admission::RankTaken : Admission::NoSuchRank;
  } else {
    peer_ = claim.rank;
    purpose_ = claim.purpose;
    admission = owner_.admit(claim);
  }
  send_raw(to_vector(make_welcome(self_.key, listener_nonce_, claim.nonce, admission)));
  if (admission != Admission::Welcome) return close(std::string(reason_of(admission)));
  open(claim.nonce, false);
}

void Connection::take_challenge() {
  std::string error;
  if (!read_challenge(input_, listener_nonce_, error)) {
    refused_ = true;
    return close(error);
  }
  const std::optional<Nonce> nonce = random_nonce();
  if (!nonce) return close("the system has no random numbers");
  caller_nonce_ = *nonce;
  Claim claim;
  claim.nonce = caller_nonce_;
  claim.job = self_.job;
  claim.rank = self_.rank;
  claim.purpose = purpose_;
  send_raw(to_vector(make_proof(self_.key, listener_nonce_, claim)));
  proved_ = true;
  read_fixed(welcome_bytes, &Connection::take_welcome);
}

void Connection::take_welcome() {
  Admission admission = Admission::Welcome;
  refused_ = true;
  if (!read_welcome(self_.key, listener_nonce_, caller_nonce_, input_, admission))
    return close("the process that listens there does not know the secret");
  if (admission != Admission::Welcome)
    return close("it refused this process: " + std::string(reason_of(admission)));
  refused_ = false;
  open(caller_nonce_, true);
}

void Connection::open(const Nonce& caller, bool is_caller) {
  if (state_ == State::Closed) return;
  const SessionKeys keys = session_keys(self_.key, listener_nonce_, caller);
  writer_.emplace(
      FrameOrigin{is_caller ? keys.to_listener : keys.to_caller, self_.job, self_.rank});
  reader_.emplace(FrameOrigin{is_caller ? keys.to_caller : keys.to_listener, self_.job, peer_});
  state_ = State::Open;
  input_.resize(piece_bytes);
  owner_.opened(*this);
  read_frames();
}

void Connection::read_frames() {
  if (state_ != State::Open) return;
  socket_.async_read_some(
      asio::buffer(input_),
      [self = shared_from_this()](const asio::error_code& error, std::size_t size) {
        if (self->state_ != State::Open) return;
        if (error) {
          return self->close(text_of(error));
        }
        self->reader_->feed(std::span<const std::byte>(self->input_).first(size));
        Frame frame;
        while (self->state_ == State::Open && self->reader_->next(frame)) {
          Message message;
          std::string fault;
          if (!decode(frame, self->self_.num_ranks, message, fault)) return self->close(fault);
          self->owner_.received(*self, std::move(message));
        }
        if (!self->reader_->error().empty()) return self->close(self->reader_->error());
        self->read_frames();
      });
}

void Connection::send(const Message& message) {
  if (state_ != State::Open) return;
  send_raw(writer_->seal(frame_type_of(message), encode(message)));
}

void Connection::send_raw(std::vector<std::byte> bytes) {
  if (state_ == State::Closed) return;
  output_bytes_ += bytes.size();
  if (output_bytes_ > max_output_bytes) return close("it takes nothing any more");
  output_.push_back(std::move(bytes));
  if (output_.size() == 1) write_next();
}

// The bytes that fit go to the system at once, so that they arrive even if this process ends now.
void Connection::write_next() {
  asio::async_write(socket_, asio::buffer(output_.front()),
                    [self = shared_from_this()](const asio::error_code& error, std::size_t) {
                      if (self->state_ == State::Closed) return;
                      // Bytes that the peer sent before it went are still to be read, which ends in
                      // an error as well.
                      if (error)
                        return self->state_ == State::Open ? void() : self->close(text_of(error));
                      self->output_bytes_ -= self->output_.front().size();
                      self->output_.pop_front();
                      if (!self->output_.empty()) self->write_next();
                    });
}

void Connection::close(const std::string& why) {
  if (state_ == State::Closed) return;
  state_ = State::Closed;
  if (socket_.is_open()) {
    // Input that is left unread would make the system take back what was sent last.
    std::array<std::byte, 4096> rest{};
    for (int i = 0; i < 64; ++i) {
      if (recv(socket_.native_handle(), rest.data(), rest.size(), MSG_DONTWAIT) <= 0) break;
    }
    asio::error_code ignored;
    socket_.shutdown(asio::socket_base::shutdown_both, ignored);
    socket_.close(ignored);
  }
  asio::post(socket_.get_executor(),
             [self = shared_from_this(), why] { self->owner_.closed(*self, why); });
}

}  // namespace contextune::rank
