#include "space/kernel_name.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>

namespace contextune::space {
namespace {

// Types that demanglers put before a template argument that is a number; an enumeration's name
// stays.
constexpr std::array<std::string_view, 15> integer_types = {"int",
                                                            "unsigned int",
                                                            "unsigned",
                                                            "long",
                                                            "unsigned long",
                                                            "long long",
                                                            "unsigned long long",
                                                            "short",
                                                            "unsigned short",
                                                            "char",
                                                            "signed char",
                                                            "unsigned char",
                                                            "__int128",
                                                            "unsigned __int128",
                                                            "wchar_t"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_space(char c) {
  return std::isspace(static_cast<unsigned char>(c)) != 0;
}

std::string without_spaces(std::string_view name) {
  std::string result;
  result.reserve(name.size());
  bool space = false;
  for (const char c : name) {
    if (is_space(c)) {
      space = true;
      continue;
    }
    if (space && !result.empty() && is_word(result.back()) && is_word(c)) result += ' ';
    space = false;
    result += c;
  }
  return result;
}

/// Length of "(int)" and the like at the start of `text` if a number follows; else 0.
std::size_t cast_length(std::string_view text, bool& to_bool) {
  if (!text.starts_with('(')) return 0;
  const std::size_t end = text.find(')');
  if (end == std::string_view::npos || end + 1 >= text.size()) return 0;
  const char next = text[end + 1];
  if (!is_digit(next) && next != '-') return 0;
  const std::string_view type = text.substr(1, end - 1);
  to_bool = type == "bool";
  const bool known = std::ranges::find(integer_types, type) != integer_types.end();
  return known || to_bool ? end + 1 : 0;
}

/// Template arguments without the types of their numbers.
std::string with_plain_numbers(std::string_view name) {
  std::string result;
  result.reserve(name.size());
  std::size_t at = 0;
  while (at < name.size()) {
    const bool argument_starts = at > 0 && (name[at - 1] == '<' || name[at - 1] == ',');
    if (!argument_starts) {
      result += name[at++];
      continue;
    }
    bool to_bool = false;
    const std::size_t start = at + cast_length(name.substr(at), to_bool);
    std::size_t end = start;
    if (end < name.size() && name[end] == '-') ++end;
    const std::size_t digits = end;
    while (end < name.size() && is_digit(name[end])) ++end;
    if (end == digits) {
      result += name[at++];
      continue;
    }
    const std::string_view number = name.substr(start, end - start);
    std::size_t suffix = end;
    while (suffix < name.size() && (name[suffix] == 'u' || name[suffix] == 'l' ||
                                    name[suffix] == 'U' || name[suffix] == 'L')) {
      ++suffix;
    }
    if (suffix == name.size() || !is_word(name[suffix])) end = suffix;
    if (to_bool) {
      result += number == "0" ? "false" : "true";
    } else {
      result += number;
    }
    at = end;
  }
  return result;
}

}  // namespace

std::string_view without_parameters(std::string_view name) {
  while (!name.empty() && is_space(name.back())) name.remove_suffix(1);
  if (!name.ends_with(')')) return name;
  int depth = 0;
  for (std::size_t i = name.size(); i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] == '(' && --depth == 0) {
      // A name of its own may end so: "ns::(anonymous namespace)" is the scope of something else.
      return i == 0 ? name : name.substr(0, i);
    }
  }
  return name;
}

std::string normalised_name(std::string_view name) {
  std::string spaced = without_spaces(without_parameters(name));
  std::string_view rest = spaced;
  if (rest.starts_with("void ")) rest.remove_prefix(5);
  if (rest.starts_with("::")) rest.remove_prefix(2);
  return with_plain_numbers(rest);
}

}  // namespace contextune::space
