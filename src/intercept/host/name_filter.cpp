#include "intercept/host/name_filter.hpp"

#include <algorithm>

#include <contextune/error.hpp>

namespace contextune::intercept {
namespace {

std::optional<NamePattern> pattern_of(const char* option, const std::string& text, EventLog& log) {
  if (text.empty()) return std::nullopt;
  try {
    return NamePattern(text);
  } catch (const Error& error) {
    log.fault(std::string("option ") + option + ": " + error.what() + "; the option is ignored");
    return std::nullopt;
  }
}

}  // namespace

NameFilter::NameFilter(const std::string& only, const std::string& exclude, EventLog& log)
    : only_(pattern_of("only", only, log)), exclude_(pattern_of("exclude", exclude, log)) {}

std::string_view NameFilter::why_not(std::span<const std::string> names) const noexcept {
  const auto is_found = [&](const NamePattern& pattern) {
    return std::ranges::any_of(names, [&](const std::string& name) { return pattern.finds(name); });
  };
  if (only_ && !is_found(*only_)) return "--only finds nothing in its name";
  if (exclude_ && is_found(*exclude_)) return "--exclude finds something in its name";
  return {};
}

}  // namespace contextune::intercept
