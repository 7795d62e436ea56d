#pragma once

#include <asio.hpp>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "cli/live/http_connection.hpp"

namespace contextune::cli {

/// More connections at a time are refused.
inline constexpr std::size_t most_connections = 16;

/// Listens on the loopback and answers GET. Used on the loop's thread only; its loop must not run
/// after it is gone, but to end what is left.
class HttpServer {
 public:
  /// @param port 0: any that is free. @throws Error if it cannot be had
  HttpServer(asio::io_context& loop, std::uint16_t port, HttpHandler handler);

  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }
  /// Takes no more connections and cuts off those that there are.
  void stop();

 private:
  void accept_next();
  void take(asio::ip::tcp::socket socket);

  asio::ip::tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  HttpHandler handler_;
  HttpDeadlines deadlines_;
  std::list<std::weak_ptr<HttpConnection>> connections_;
  std::uint16_t port_ = 0;
};

}  // namespace contextune::cli
