#include "cli/run/forced_pins.hpp"

#include <algorithm>
#include <contextune/error.hpp>
#include <span>
#include <string_view>

#include "core/submission/submission.hpp"
#include "core/value/force.hpp"
#include "gpu/image/kernel_name.hpp"
#include "log/logfmt.hpp"
#include "store/listing.hpp"

namespace contextune::cli {
namespace {

constexpr std::size_t most_listed_configs = 64;

/// The site of a pin without the part of its key that it may name.
std::string_view name_of_site(std::string_view site) {
  const std::size_t brace = site.find('{');
  return brace != std::string_view::npos && site.back() == '}' ? site.substr(0, brace) : site;
}

/// How all launches reach the driver, which no kernel has to be named for.
constexpr std::string_view site_of_launches = "launches";

/// "default, block=64, block=128".
std::string list_of(std::span<const Config> configs) {
  std::string text;
  const std::size_t shown = std::min(configs.size(), most_listed_configs);
  for (const Config& config : configs.first(shown)) {
    if (!text.empty()) text += ", ";
    text += config.empty() ? "default" : config.to_string();
  }
  if (shown < configs.size()) text += " and " + std::to_string(configs.size() - shown) + " more";
  return text;
}

/// Why a pin is not one config of a declared kernel; empty where it is, or may be at the launch.
std::string why_no_pin(const ForcedConfig& pin, const space::KernelDeclaration& kernel,
                       std::string_view place) {
  std::vector<Config> configs(1);
  configs.insert(configs.end(), kernel.configs.begin(), kernel.configs.end());
  const std::vector<std::uint32_t> found = find_configs(configs, pin.config);
  if (found.size() == 1) return {};
  const std::string whose = "kernel \"" + kernel.name + "\" (" + std::string(place) + ")";
  if (found.empty()) {
    return '"' + pin.config + "\" is no config of " + whose + "; it has " + list_of(configs);
  }
  if (kernel.prune) return {};  // which may leave one of them
  std::vector<Config> several;
  several.reserve(found.size());
  for (const std::uint32_t number : found) several.push_back(configs[number]);
  return '"' + pin.config + "\" means several configs of " + whose + ": " + list_of(several);
}

/// The same of all space files. More than one may declare the kernel, and some for some GPUs alone.
std::string why_no_pin(const ForcedConfig& pin, const SpaceFiles& spaces) {
  if (!spaces.all_known) return {};
  std::string why;
  for (const space::SpaceFile& file : spaces.files) {
    for (std::size_t i = 0; i < file.kernels().size(); ++i) {
      const space::KernelDeclaration& kernel = file.kernels()[i];
      if (!gpu::same_kernel_name(name_of_site(pin.site), gpu::demangled_kernel_name(kernel.name)))
        continue;
      if (file.asked_for_device()) return {};
      why = why_no_pin(pin, kernel, file.rules()[i]->origin());
      if (why.empty()) return {};
    }
  }
  return why;
}

/// The configs that a store knows of all sites of a name.
std::vector<Config> stored_configs(const store::Listing& stored, std::string_view name) {
  std::vector<Config> configs;
  for (const store::ListedFile& file : stored.files) {
    for (const store::EntrySite& site : file.content.entry.sites) {
      if (!gpu::same_kernel_name(name, site.site.name)) continue;
      for (const StoredTrial& trial : site.site.trials) {
        if (std::find(configs.begin(), configs.end(), trial.config) == configs.end())
          configs.push_back(trial.config);
      }
    }
  }
  return configs;
}

}  // namespace

void require_pins(const std::string& force, const SpaceFiles& spaces) {
  try {
    for (const ForcedConfig& pin : parse_force(force)) {
      if (const std::string why = why_no_pin(pin, spaces); !why.empty()) throw Error(why);
      if (pin.site == site_of_launches) {
        (void)pinned_launches_of(pin.config);
      } else if (!is_config_text(pin.config)) {
        throw Error('"' + pin.config + "\" of \"" + pin.site +
                    "\" is no config; write a number, default, or NAME=VALUE NAME=VALUE");
      }
    }
  } catch (const Error& error) {
    throw Error(std::string("option force: ") + error.what());
  }
}

std::vector<std::string> pins_unknown_to_store(const std::string& force, const std::string& store) {
  std::vector<std::string> said;
  if (force.empty() || store.empty()) return said;
  try {
    const store::Listing stored = store::list_store(store, store::Trust::Own);
    for (const ForcedConfig& pin : parse_force(force)) {
      if (pin.site == site_of_launches) continue;
      const std::vector<Config> configs = stored_configs(stored, name_of_site(pin.site));
      const bool has_values = pin.config.find('=') != std::string::npos;
      if (configs.empty() || !has_values || !find_configs(configs, pin.config).empty()) continue;
      said.push_back("option force: \"" + log::printable(pin.config) + "\" was no config of \"" +
                     log::printable(pin.site) +
                     "\" when it was last tuned, and counts only if it is one now; stored are " +
                     log::printable(list_of(configs)));
    }
  } catch (const Error&) {  // there is no store, or none that can be used
  }
  return said;
}

}  // namespace contextune::cli
