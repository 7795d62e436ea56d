#include "intercept/host/pattern_size.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

namespace contextune::intercept {
namespace {

constexpr std::size_t most_characters = 4096;
constexpr std::size_t most_depth = 50;
// With what is repeated written out; found by measuring libc: within these limits compiling takes
// milliseconds, and so does looking through a name of thousands of characters.
constexpr double most_atoms = 4096;
constexpr double most_repetitions = 256;

/// How large a piece of an expression is once it is written out.
struct Size {
  double atoms = 0;
  double repetitions = 0;

  void add(const Size& other) {
    atoms += other.atoms;
    repetitions += other.repetitions;
  }
  void multiply(double times) {
    atoms *= times;
    repetitions *= times;
  }
};

struct Group {
  Size before;  ///< of all but the last atom
  Size last;

  void begin(const Size& atom) {
    before.add(last);
    last = atom;
  }
};

/// The place behind a bracket expression that begins at `at`.
std::size_t end_of_bracket(std::string_view text, std::size_t at) {
  std::size_t i = at + 1;
  if (i < text.size() && text[i] == '^') ++i;
  if (i < text.size() && text[i] == ']') ++i;
  for (; i < text.size() && text[i] != ']'; ++i) {
    if (text[i] != '[' || i + 1 >= text.size()) continue;
    const char kind = text[i + 1];
    if (kind != ':' && kind != '.' && kind != '=') continue;
    const std::size_t end = text.find(std::string{kind, ']'}, i + 2);
    if (end == std::string_view::npos) return text.size();
    i = end + 1;
  }
  return std::min(i + 1, text.size());
}

/// How often `{m,n}` at the beginning of the text writes its atom out.
double times_of(std::string_view interval) {
  const auto number_at = [&](std::size_t at, double otherwise) {
    unsigned number = 0;
    const char* const end = interval.data() + interval.size();
    const auto read = std::from_chars(interval.data() + std::min(at, interval.size()), end, number);
    return read.ec == std::errc{} ? static_cast<double>(number) : otherwise;
  };
  const double least = number_at(1, 0);
  const std::size_t comma = interval.substr(0, interval.find('}')).find(',');
  const double most = comma == std::string_view::npos ? least : number_at(comma + 1, least + 1);
  return std::max({least, most, 1.0});
}

}  // namespace

std::string why_too_large(std::string_view text) {
  if (text.size() > most_characters) {
    return "it has more than " + std::to_string(most_characters) + " characters";
  }
  std::vector<Group> groups(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    Group& group = groups.back();
    switch (text[i]) {
      case '(':
        if (groups.size() > most_depth) {
          return "its groups are nested more than " + std::to_string(most_depth) + " deep";
        }
        groups.emplace_back();
        break;
      case ')': {
        if (groups.size() == 1) break;  // an ordinary character
        Size whole = group.before;
        whole.add(group.last);
        groups.pop_back();
        groups.back().begin(whole);
        break;
      }
      case '*':
      case '+':
      case '?':
        group.last.repetitions += 1;
        if (text[i] == '+') group.last.multiply(2);  // once, and any more times
        break;
      case '{':
        group.last.repetitions += 1;
        group.last.multiply(times_of(text.substr(i)));
        break;
      case '[':
        group.begin({1, 0});
        i = end_of_bracket(text, i) - 1;
        break;
      case '\\':
        group.begin({1, 0});
        ++i;
        break;
      default:
        group.begin({1, 0});
    }
    Size all;
    for (const Group& open : groups) {
      all.add(open.before);
      all.add(open.last);
    }
    if (all.atoms > most_atoms || all.repetitions > most_repetitions) {
      return "its repetitions are too much when they are written out; write fewer of * + ? and "
             "{m,n} inside of each other";
    }
  }
  return {};
}

}  // namespace contextune::intercept
