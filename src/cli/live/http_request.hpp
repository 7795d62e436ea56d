#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace contextune::cli {

/// A longer head is refused.
inline constexpr std::size_t most_head_bytes = 8192;

/// The part of a request that is looked at.
struct HttpRequest {
  std::string path;     ///< as it came: nothing in it is decoded
  std::string host;     ///< in small letters
  std::string version;  ///< `If-None-Match`: what the caller has already; empty: nothing
};

/// A head that was read: a request, or the status to refuse it with.
struct ReadHead {
  HttpRequest request;
  int refusal = 0;  ///< 0: it is a request
};

/// Reads the head of a request, without the empty line at its end. It takes GET of HTTP/1.1 with no
/// body, and refuses whatever is not written by the letter of RFC 9112.
[[nodiscard]] ReadHead read_head(std::string_view head);

}  // namespace contextune::cli
