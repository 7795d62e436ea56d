#pragma once

#include <asio.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "cli/live/http_request.hpp"
#include "cli/live/http_response.hpp"

namespace contextune::cli {

using HttpAnswer = std::function<void(HttpResponse)>;
/// Takes a request and calls its answer once, at once or later, on the loop.
using HttpHandler = std::function<void(const HttpRequest&, HttpAnswer)>;

/// How long a connection may take. A caller that does less is cut off.
struct HttpDeadlines {
  std::chrono::milliseconds head{5'000};            ///< to send the request
  std::chrono::milliseconds answer{60'000};         ///< for the answer to be made
  std::chrono::milliseconds piece{10'000};          ///< to take the next piece of the answer
  std::chrono::milliseconds answer_taken{120'000};  ///< to take all of it
};

/// One request and its answer. Used on the loop's thread only, never blocks; lives until it is
/// closed.
class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  HttpConnection(asio::ip::tcp::socket socket, const HttpHandler& handler,
                 const HttpDeadlines& deadlines);

  void start();
  /// Answers without a request: there are too many connections.
  void refuse(HttpResponse response) { respond(std::move(response)); }
  void close();

 private:
  using Time = std::chrono::steady_clock::time_point;

  void expect(std::chrono::milliseconds patience, Time latest = Time::max());
  void read_more();
  void take_head(std::size_t end);
  void respond(HttpResponse response);
  void write_next();
  void drain();

  asio::ip::tcp::socket socket_;
  asio::steady_timer deadline_;
  const HttpHandler& handler_;
  const HttpDeadlines& deadlines_;
  std::string input_;
  std::string head_;  ///< of the answer
  std::shared_ptr<const std::string> body_;
  std::size_t written_ = 0;  ///< bytes of both
  std::size_t drained_ = 0;
  Time all_taken_;
  bool answered_ = false;
};

}  // namespace contextune::cli
