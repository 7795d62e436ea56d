#include "core/value/force.hpp"

#include <algorithm>

#include <contextune/error.hpp>

#include "core/value/parse_number.hpp"

namespace contextune {
namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Position of the first `wanted` from `start` outside of brackets and double quotes.
std::size_t find_outside(std::string_view text, char wanted, std::size_t start) {
  int depth = 0;
  bool in_quotes = false;
  for (std::size_t i = start; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') in_quotes = !in_quotes;
    if (in_quotes) continue;
    if (c == wanted && depth <= 0) return i;
    if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
    // The arrow of "operator->" and a lone ">" close nothing.
    if ((c == '>' && depth > 0) || c == ')' || c == ']' || c == '}') --depth;
  }
  return std::string_view::npos;
}

Config parse_config(std::string_view text) {
  Config config;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(find_outside(text, ' ', start), text.size());
    const std::string_view part = trimmed(text.substr(start, end - start));
    start = end + 1;
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos || equals == 0) return {};
    config.set(std::string(part.substr(0, equals)),
               parse_value(std::string(part.substr(equals + 1))));
  }
  return config;
}

bool agrees(const Config& config, const Config& wanted) {
  return std::all_of(wanted.entries().begin(), wanted.entries().end(), [&](const auto& entry) {
    const Value* value = config.find(entry.first);
    return value != nullptr && *value == entry.second;
  });
}

}  // namespace

std::vector<ForcedConfig> parse_force(std::string_view text) {
  std::vector<ForcedConfig> forced;
  std::size_t start = 0;
  while (start < text.size()) {
    const std::size_t end = std::min(find_outside(text, ',', start), text.size());
    const std::string_view part = trimmed(text.substr(start, end - start));
    start = end + 1;
    if (part.empty()) continue;
    const std::size_t equals = find_outside(part, '=', 0);
    const bool readable = equals != std::string_view::npos;
    const std::string_view site = trimmed(part.substr(0, readable ? equals : 0));
    const std::string_view config = readable ? trimmed(part.substr(equals + 1)) : "";
    if (site.empty() || config.empty()) {
      throw Error("force: cannot read '" + std::string(part) +
                  "'; write SITE=NUMBER or SITE=NAME=VALUE NAME=VALUE");
    }
    forced.push_back({std::string(site), std::string(config)});
  }
  return forced;
}

bool is_config_text(std::string_view text) {
  text = trimmed(text);
  return parse_number<std::uint32_t>(text) || text == "default" || !parse_config(text).empty();
}

std::vector<std::uint32_t> find_configs(std::span<const Config> configs, std::string_view text) {
  text = trimmed(text);
  if (const auto number = parse_number<std::uint32_t>(text)) {
    if (*number < configs.size()) return {*number};
    return {};
  }
  if (text == "default" && !configs.empty()) return {0};
  const Config wanted = parse_config(text);
  if (wanted.empty()) return {};
  std::vector<std::uint32_t> found;
  for (std::uint32_t i = 0; i < configs.size(); ++i) {
    if (configs[i] == wanted) return {i};
    if (agrees(configs[i], wanted)) found.push_back(i);
  }
  return found;
}

}  // namespace contextune
