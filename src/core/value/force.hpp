#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <contextune/config.hpp>

namespace contextune {

/// A pin of the option `force`.
struct ForcedConfig {
  std::string site;    ///< as the rank log names it
  std::string config;  ///< "3", or "block=256 per_sm=4"
};

/// Reads "saxpy=block=256 per_sm=4,gemm<64, 64>=2": commas and equals signs inside <>, () and []
/// belong to the name. @throws Error that quotes the part it cannot read
[[nodiscard]] std::vector<ForcedConfig> parse_force(std::string_view text);

/// Whether `text` is written as a config is: a number, "default", or values.
[[nodiscard]] bool is_config_text(std::string_view text);

/// The numbers of the configs that `text` means: a number, all values of one, or some values, which
/// several may have. Only one is a pin.
[[nodiscard]] std::vector<std::uint32_t> find_configs(std::span<const Config> configs,
                                                      std::string_view text);

}  // namespace contextune
