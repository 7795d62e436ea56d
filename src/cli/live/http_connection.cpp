#include "cli/live/http_connection.hpp"

#include <algorithm>
#include <utility>

namespace contextune::cli {
namespace {

constexpr std::string_view head_end = "\r\n\r\n";
constexpr std::size_t written_bytes = 65'536;
// Of a request that was refused in its middle. Without reading them, closing would take the answer
// back that is on its way.
constexpr std::size_t most_drained_bytes = 1'048'576;

std::string_view text_of(int status) {
  switch (status) {
    case 405:
      return "Only GET is answered.\n";
    case 413:
      return "No request has a body here.\n";
    case 431:
      return "The request is too long.\n";
    case 505:
      return "HTTP/1.1 is spoken here.\n";
    default:
      return "This is no request.\n";
  }
}

}  // namespace

HttpConnection::HttpConnection(asio::ip::tcp::socket socket, const HttpHandler& handler,
                               const HttpDeadlines& deadlines)
    : socket_(std::move(socket)),
      deadline_(socket_.get_executor()),
      handler_(handler),
      deadlines_(deadlines) {}

void HttpConnection::start() {
  expect(deadlines_.head);
  read_more();
}

void HttpConnection::close() {
  deadline_.cancel();
  asio::error_code ignored;
  socket_.close(ignored);
}

// Closes the connection unless something else is expected before.
void HttpConnection::expect(std::chrono::milliseconds patience, Time latest) {
  deadline_.expires_at(std::min(std::chrono::steady_clock::now() + patience, latest));
  deadline_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (error) return;
    // A handler that was due when the deadline was moved still comes.
    if (self->deadline_.expiry() <= std::chrono::steady_clock::now()) self->close();
  });
}

void HttpConnection::read_more() {
  const std::size_t before = input_.size();
  input_.resize(most_head_bytes + head_end.size());
  socket_.async_read_some(
      asio::buffer(input_.data() + before, input_.size() - before),
      [self = shared_from_this(), before](const asio::error_code& error, std::size_t count) {
        self->input_.resize(before + count);
        if (error) return self->close();
        const std::size_t from = before < head_end.size() ? 0 : before - head_end.size() + 1;
        const std::size_t end = self->input_.find(head_end, from);
        if (end <= most_head_bytes) return self->take_head(end);
        if (self->input_.size() > most_head_bytes)
          return self->respond(plain_response(431, text_of(431)));
        self->read_more();
      });
}

void HttpConnection::take_head(std::size_t end) {
  const ReadHead head = read_head(std::string_view(input_).substr(0, end));
  if (head.refusal != 0) return respond(plain_response(head.refusal, text_of(head.refusal)));
  expect(deadlines_.answer);
  handler_(head.request, [self = shared_from_this()](HttpResponse response) {
    self->respond(std::move(response));
  });
}

void HttpConnection::respond(HttpResponse response) {
  if (std::exchange(answered_, true) || !socket_.is_open()) return;
  head_ = head_of(response);
  body_ = std::move(response.body);
  all_taken_ = std::chrono::steady_clock::now() + deadlines_.answer_taken;
  write_next();
}

void HttpConnection::write_next() {
  const std::size_t of_body = body_ ? body_->size() : 0;
  if (written_ == head_.size() + of_body) {
    body_.reset();
    asio::error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    return drain();
  }
  const bool in_head = written_ < head_.size();
  const std::string& text = in_head ? head_ : *body_;
  const std::size_t from = in_head ? written_ : written_ - head_.size();
  expect(deadlines_.piece, all_taken_);
  socket_.async_write_some(
      asio::buffer(text.data() + from, std::min(text.size() - from, written_bytes)),
      [self = shared_from_this()](const asio::error_code& error, std::size_t count) {
        if (error) return self->close();
        self->written_ += count;
        self->write_next();
      });
}

void HttpConnection::drain() {
  expect(deadlines_.head, all_taken_);
  input_.resize(most_head_bytes);
  socket_.async_read_some(
      asio::buffer(input_),
      [self = shared_from_this()](const asio::error_code& error, std::size_t count) {
        self->drained_ += count;
        if (error || self->drained_ > most_drained_bytes) return self->close();
        self->drain();
      });
}

}  // namespace contextune::cli
