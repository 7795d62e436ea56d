#pragma once

#include <span>
#include <string>

#include "core/value/kernel_rule.hpp"

namespace contextune::intercept {

/// A kernel's parameters in the words of a space file: "i32 f32 ptr ptr". Where the name does not
/// tell the types, the sizes decide as far as they can; "opaque" where they do not.
[[nodiscard]] std::string argument_words(const std::string& parameters,
                                         std::span<const ArgumentLayout> layouts);

}  // namespace contextune::intercept
