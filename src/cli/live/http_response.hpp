#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace contextune::cli {

/// An answer. The body may be shared by several that are on their way.
struct HttpResponse {
  int status = 200;
  std::string type;     ///< of the body: "text/html; charset=utf-8"
  std::string version;  ///< `ETag`; empty: none
  std::shared_ptr<const std::string> body;
};

/// An answer with a line of text about its status.
[[nodiscard]] HttpResponse plain_response(int status, std::string_view text);

/// The bytes in front of the body. No other site may read, embed or frame what is behind them, no
/// cache keeps it, and the connection ends with it.
[[nodiscard]] std::string head_of(const HttpResponse& response);

}  // namespace contextune::cli
