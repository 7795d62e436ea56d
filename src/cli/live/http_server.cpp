#include "cli/live/http_server.hpp"

#include <chrono>
#include <contextune/error.hpp>
#include <string>
#include <utility>

namespace contextune::cli {
namespace {

// Without descriptors, accepting fails at once: asking again and again would take a processor.
constexpr std::chrono::milliseconds pause_after_failure{200};

}  // namespace

HttpServer::HttpServer(asio::io_context& loop, std::uint16_t port, HttpHandler handler)
    : acceptor_(loop), pause_(loop), handler_(std::move(handler)) {
  using asio::ip::tcp;
  const tcp::endpoint here(asio::ip::address_v4::loopback(), port);
  asio::error_code error;
  acceptor_.open(tcp::v4(), error);
  // A port that was ours a moment ago may be had again.
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(here, error);
  if (!error) acceptor_.listen(static_cast<int>(most_connections), error);
  const tcp::endpoint listening = error ? here : acceptor_.local_endpoint(error);
  if (error)
    throw Error("cannot listen on 127.0.0.1:" + std::to_string(port) + ": " + error.message());
  port_ = listening.port();
  accept_next();
}

void HttpServer::stop() {
  asio::error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
  for (const auto& one : connections_) {
    if (const auto connection = one.lock()) connection->close();
  }
}

void HttpServer::accept_next() {
  acceptor_.async_accept([this](const asio::error_code& error, asio::ip::tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (!error) {
      take(std::move(socket));
      return accept_next();
    }
    pause_.expires_after(pause_after_failure);
    pause_.async_wait([this](const asio::error_code& ended) {
      if (!ended && acceptor_.is_open()) accept_next();
    });
  });
}

void HttpServer::take(asio::ip::tcp::socket socket) {
  std::erase_if(connections_, [](const auto& one) { return one.expired(); });
  const bool too_many = connections_.size() >= most_connections;
  // A refusal takes a connection too: beyond twice the number they are closed unanswered.
  if (connections_.size() >= 2 * most_connections) return;
  const auto connection = std::make_shared<HttpConnection>(std::move(socket), handler_, deadlines_);
  connections_.push_back(connection);
  if (too_many) return connection->refuse(plain_response(503, "There are too many connections.\n"));
  connection->start();
}

}  // namespace contextune::cli
