#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/value/kernel_rule.hpp"
#include "intercept/program/launch.hpp"

namespace contextune::intercept {

/// Where one argument of a launch lies, given as kernelParams or packed in `extra`; null if the
/// launch does not say.
[[nodiscard]] const void* argument_of(const Launch& launch, std::size_t index,
                                      const ArgumentLayout& layout) noexcept;

/// All of them; empty if one cannot be found.
[[nodiscard]] std::vector<const void*> arguments_of(const Launch& launch,
                                                    std::span<const ArgumentLayout> layouts);

}  // namespace contextune::intercept
