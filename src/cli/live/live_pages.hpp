#pragma once

#include <cstdint>
#include <string>

#include "cli/live/http_connection.hpp"
#include "cli/live/live_report.hpp"
#include "cli/live/live_token.hpp"

namespace contextune::cli {

/// Answers what the page and its reader ask for: `/TOKEN/` is the page, `/TOKEN/data` its newest
/// data. Everything else is refused, and nothing is said about what there is without the token.
class LivePages {
 public:
  explicit LivePages(LiveReport& report) : report_(report) {}

  /// The port that others must name.
  void set_port(std::uint16_t port) noexcept { port_ = port; }
  void answer(const HttpRequest& request, HttpAnswer answer);
  /// "http://127.0.0.1:4711/<token>/"
  [[nodiscard]] std::string address() const;

 private:
  [[nodiscard]] bool is_own_name(const std::string& host) const;
  void answer_page(HttpAnswer answer);
  void answer_data(const std::string& version, HttpAnswer answer);

  LiveReport& report_;
  LiveToken token_;
  std::uint16_t port_ = 0;
};

}  // namespace contextune::cli
