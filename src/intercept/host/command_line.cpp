#include "intercept/host/command_line.hpp"

#include <algorithm>
#include <fstream>
#include <string_view>

#include "core/value/option_table.hpp"
#include "core/value/take_until.hpp"
#include "environment/variables.hpp"
#include "log/logfmt.hpp"

namespace contextune::intercept {
namespace {

constexpr std::size_t most_bytes = log::max_value_bytes;

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("@%+=:,./_-").find(c) != std::string_view::npos;
}

std::string quoted(std::string_view word) {
  if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) return std::string(word);
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

}  // namespace

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string words(most_bytes, '\0');
  file.read(words.data(), static_cast<std::streamsize>(words.size()));
  words.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  const bool is_cut = words.size() == most_bytes;
  std::string text;
  std::string_view rest = words;
  while (!rest.empty()) text += (text.empty() ? "" : " ") + quoted(take_until(rest, '\0'));
  return is_cut ? text + " ..." : text;
}

std::string given_options() {
  std::string text;
  for (const OptionInfo& option : option_table()) {
    const char* const value = variable(option.variable);
    if (value != nullptr && *value != '\0')
      log::append_field(text, std::string_view(option.flag).substr(2), value);
  }
  return text;
}

}  // namespace contextune::intercept
