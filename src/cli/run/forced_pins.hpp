#pragma once

#include <string>
#include <vector>

#include "cli/setup/space_files.hpp"

namespace contextune::cli {

/// Ends a run before its program starts where a pin of the option `force` cannot be one. Such a pin
/// is not written as a config, or is not one config of a kernel that a space file declares. Only
/// the program knows other sites.
/// @throws Error that lists the configs there are
void require_pins(const std::string& force, const SpaceFiles& spaces);

/// A line for each pin whose values are in no config that the store knows of its site. Since then
/// the program may have got others: no reason to end a run.
/// @param store its folder; empty: none
[[nodiscard]] std::vector<std::string> pins_unknown_to_store(const std::string& force,
                                                             const std::string& store);

}  // namespace contextune::cli
