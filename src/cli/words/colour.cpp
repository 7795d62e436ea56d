#include "cli/words/colour.hpp"

#include <unistd.h>

#include <cstdlib>

namespace contextune::cli {
namespace {

bool is_on = false;

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Of the sixteen colours, which every terminal has in shades that its user can read.
std::string_view sequence_of(Tone tone) {
  switch (tone) {
    case Tone::Good:
      return "\033[32m";
    case Tone::Bad:
      return "\033[31m";
    case Tone::Warning:
      return "\033[33m";
    case Tone::Strong:
      return "\033[1m";
    case Tone::Faint:
      break;
  }
  return "\033[2m";
}

constexpr std::string_view end_of_tone = "\033[0m";

}  // namespace

bool has_colours(ColourUse use, int descriptor) {
  if (use != ColourUse::Auto) return use == ColourUse::Always;
  if (!variable("NO_COLOR").empty()) return false;
  if (const auto force = variable("CLICOLOR_FORCE"); !force.empty() && force != "0") return true;
  const std::string_view terminal = variable("TERM");
  return variable("CLICOLOR") != "0" && !terminal.empty() && terminal != "dumb" &&
         isatty(descriptor) == 1;
}

void switch_colours(bool on) noexcept {
  is_on = on;
}

std::string in_tone(Tone tone, std::string_view text) {
  if (!is_on || text.empty()) return std::string(text);
  return std::string(sequence_of(tone)).append(text).append(end_of_tone);
}

std::size_t size_of_escape(std::string_view text) noexcept {
  if (!text.starts_with("\033[")) return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", 2);
  return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

}  // namespace contextune::cli
