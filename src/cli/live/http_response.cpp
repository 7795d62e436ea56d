#include "cli/live/http_response.hpp"

namespace contextune::cli {
namespace {

std::string_view phrase_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

// The page brings all that it uses, and asks its own server alone for more.
constexpr std::string_view always =
    "Cache-Control: no-store\r\n"
    "Connection: close\r\n"
    "Content-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n";

}  // namespace

HttpResponse plain_response(int status, std::string_view text) {
  return {status, "text/plain; charset=utf-8", {}, std::make_shared<std::string>(text)};
}

std::string head_of(const HttpResponse& response) {
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
  head.append(phrase_of(response.status)).append("\r\n").append(always);
  if (response.status == 405) head += "Allow: GET\r\n";
  if (!response.version.empty()) head += "ETag: " + response.version + "\r\n";
  if (response.body) {
    head += "Content-Type: " + response.type + "\r\n";
    head += "Content-Length: " + std::to_string(response.body->size()) + "\r\n";
  }
  return head + "\r\n";
}

}  // namespace contextune::cli
