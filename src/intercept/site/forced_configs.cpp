#include "intercept/site/forced_configs.hpp"

#include <algorithm>
#include <contextune/error.hpp>
#include <numeric>

#include "gpu/image/kernel_name.hpp"

namespace contextune::intercept {
namespace {

/// Whether every "name=value" of `wanted` is part of the key.
bool key_has(const Key& key, std::string_view wanted) {
  const std::string all = " " + key.to_string() + " ";
  std::size_t at = 0;
  while (at < wanted.size()) {
    const std::size_t end = std::min(wanted.find_first_of(" ,", at), wanted.size());
    if (end > at &&
        all.find(" " + std::string(wanted.substr(at, end - at)) + " ") == std::string::npos) {
      return false;
    }
    at = end + 1;
  }
  return true;
}

bool matches(std::string_view given, const std::string& name, const Key& key) {
  std::string_view wanted_name = given;
  std::string_view wanted_key;
  if (const auto brace = given.find('{'); brace != std::string_view::npos && given.back() == '}') {
    wanted_name = given.substr(0, brace);
    wanted_key = given.substr(brace + 1, given.size() - brace - 2);
  }
  return gpu::same_kernel_name(wanted_name, name) && key_has(key, wanted_key);
}

constexpr std::size_t most_shown_configs = 64;

/// "0 (as launched), 1 (block=128 per_sm=2)".
std::string list_of(std::span<const Config> configs, const std::vector<std::uint32_t>& numbers) {
  std::string text;
  const std::size_t shown = std::min(numbers.size(), most_shown_configs);
  for (std::size_t i = 0; i < shown; ++i) {
    const Config& config = configs[numbers[i]];
    text += (i > 0 ? ", " : "") + std::to_string(numbers[i]) + " (" +
            (config.empty() ? "as launched" : config.to_string()) + ")";
  }
  if (shown < numbers.size()) text += " and " + std::to_string(numbers.size() - shown) + " more";
  return text;
}

/// Why what was given is no pin.
std::string refusal(const ForcedConfig& given, std::span<const Config> configs,
                    const std::vector<std::uint32_t>& found) {
  if (!found.empty()) {
    return "\"" + given.config + "\" means several configs of \"" + given.site +
           "\", which is not pinned: " + list_of(configs, found) + ".";
  }
  std::vector<std::uint32_t> all(configs.size());
  std::iota(all.begin(), all.end(), 0U);
  return "\"" + given.site + "\" has no config \"" + given.config +
         "\" and is not pinned; it has " + list_of(configs, all) + ".";
}

}  // namespace

ForcedConfigs::ForcedConfigs(const std::string& option, EventLog& log) : log_(log) {
  if (option.empty()) return;
  try {
    for (ForcedConfig& one : parse_force(option)) {
      if (one.site != "launches") {
        pins_.push_back({std::move(one), false});
        continue;
      }
      launches_ = pinned_launches_of(one.config);
    }
  } catch (const Error& error) {
    log_.fault(std::string("option force (CONTEXTUNE_FORCE): ") + error.what() +
               "; nothing is pinned");
  }
}

std::optional<std::uint32_t> ForcedConfigs::find(const std::string& region, const std::string& name,
                                                 const Key& key, std::span<const Config> configs) {
  const std::lock_guard lock(mutex_);
  for (Pin& pin : pins_) {
    if (!matches(pin.given.site, name, key)) continue;
    pin.matched = true;
    const std::vector<std::uint32_t> found = find_configs(configs, pin.given.config);
    if (found.size() == 1) return found.front();
    log_.fallback(FallbackReason::ForceUnmatched, region, name, refusal(pin.given, configs, found));
  }
  return std::nullopt;
}

void ForcedConfigs::report_unmatched() {
  const std::lock_guard lock(mutex_);
  for (Pin& pin : pins_) {
    if (pin.matched) continue;
    log_.fallback(FallbackReason::ForceUnmatched, {}, pin.given.site,
                  "No launched site is called \"" + pin.given.site + "\".");
  }
}

}  // namespace contextune::intercept
