#include "api/named_values.hpp"

#include <string>

#include <contextune/error.hpp>
#include <contextune/value.hpp>

namespace contextune::api {
namespace {

constexpr std::string_view blanks = " \t\n";

/// Where the value that begins at `at` ends: at a blank, or behind its closing quote. npos: a quote
/// is not closed, or something follows it.
std::size_t end_of_value(std::string_view text, std::size_t at) {
  if (at >= text.size() || text[at] != '"')
    return std::min(text.find_first_of(blanks, at), text.size());
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      const bool ends = i + 1 == text.size() || blanks.find(text[i + 1]) != blanks.npos;
      return ends ? i + 1 : text.npos;
    }
  }
  return text.npos;
}

/// Calls `take(name, value)` for each "name=value".
template <class Take>
void for_each_pair(std::string_view text, const Take& take) {
  std::size_t at = 0;
  while ((at = text.find_first_not_of(blanks, at)) != text.npos) {
    const std::size_t equals = text.find('=', at);
    const std::string_view name = text.substr(at, equals == text.npos ? equals : equals - at);
    const std::size_t end = equals == text.npos ? equals : end_of_value(text, equals + 1);
    if (end == text.npos || name.empty() || name.find_first_of(blanks) != name.npos) {
      throw Error("'" + std::string(text) +
                  "' cannot be read; write name=value, separated by blanks, and a value that holds "
                  "blanks in double quotes");
    }
    take(std::string(name), parse_value(std::string(text.substr(equals + 1, end - equals - 1))));
    at = end;
  }
}

}  // namespace

Config parse_config(std::string_view text) {
  Config config;
  if (text == "default") return config;
  for_each_pair(text, [&](std::string name, Value value) {
    if (config.find(name) != nullptr) {
      throw Error("config '" + std::string(text) + "' sets '" + name + "' twice; set it once");
    }
    config.set(std::move(name), std::move(value));
  });
  return config;
}

Key parse_key(std::string_view text) {
  Key key;
  for_each_pair(text, [&](std::string name, Value value) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) {
      key.add(std::move(name), *whole);
    } else if (auto* plain = std::get_if<std::string>(&value)) {
      key.add(std::move(name), std::move(*plain));
    } else {
      key.add(std::move(name), to_string(value));
    }
  });
  return key;
}

}  // namespace contextune::api
