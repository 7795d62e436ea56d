#include "cli/live/http_request.hpp"

#include <algorithm>

namespace contextune::cli {
namespace {

constexpr std::string_view line_end = "\r\n";

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// RFC 9110, 5.6.2.
bool is_token(std::string_view word) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return !word.empty() && std::ranges::all_of(word, [&](char c) {
    return is_letter_or_digit(c) || others.find(c) != std::string_view::npos;
  });
}

bool is_visible(char c) {
  return c > ' ' && c < '\x7f';
}

// Of a field: bytes above ASCII may stand there, and no control character but the tab.
bool is_value(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

std::string small_letters(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

// The line before the first end of a line, which is taken off `rest`.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find(line_end);
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + line_end.size());
  return line;
}

// The status to refuse the line with; 0: none.
int read_request_line(std::string_view line, HttpRequest& request) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return 400;
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view protocol = line.substr(last + 1);
  if (!is_token(method) || !target.starts_with('/') || !std::ranges::all_of(target, is_visible))
    return 400;
  if (!protocol.starts_with("HTTP/")) return 400;
  if (protocol != "HTTP/1.1") return 505;
  if (method != "GET") return 405;
  request.path = target;
  return 0;
}

int read_field(std::string_view line, HttpRequest& request, bool& has_host) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) return 400;
  const std::string name = small_letters(line.substr(0, colon));
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!is_value(value)) return 400;
  if (name == "host") {
    if (has_host) return 400;
    has_host = true;
    request.host = small_letters(value);
  } else if (name == "transfer-encoding" || (name == "content-length" && value != "0")) {
    return 413;  // a body, which nothing here takes
  } else if (name == "if-none-match") {
    request.version = value;
  }
  return 0;
}

}  // namespace

ReadHead read_head(std::string_view head) {
  ReadHead result;
  result.refusal = read_request_line(take_line(head), result.request);
  bool has_host = false;
  while (result.refusal == 0 && !head.empty())
    result.refusal = read_field(take_line(head), result.request, has_host);
  if (result.refusal == 0 && !has_host) result.refusal = 400;
  return result;
}

}  // namespace contextune::cli
