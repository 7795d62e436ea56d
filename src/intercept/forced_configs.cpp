#include "intercept/forced_configs.hpp"

#include <contextune/error.hpp>

#include "gpu/kernel_name.hpp"

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

}  // namespace

ForcedConfigs::ForcedConfigs(const std::string& option, EventLog& log) : log_(log) {
  if (option.empty()) return;
  try {
    for (ForcedConfig& one : parse_force(option)) pins_.push_back({std::move(one), false});
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
    if (const auto config = find_config(configs, pin.given.config)) return config;
    log_.fallback(FallbackReason::ForceUnmatched, region, name,
                  "\"" + pin.given.site + "\" has no config \"" + pin.given.config + "\"; it has " +
                      std::to_string(configs.size()) + ", numbered from 0.");
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
