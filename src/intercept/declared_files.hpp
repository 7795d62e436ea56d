#pragma once

#include <span>
#include <string>

#include "core/kernel_rule.hpp"

namespace contextune::intercept {

/// What the configs of a site mean, as StoredSite has it: what the rule says of itself, and a word
/// for each file that they name, of its bytes. Files that those include are not looked at.
[[nodiscard]] std::string declaration_of(std::string rule, std::span<const LaunchChange> changes);

}  // namespace contextune::intercept
