#pragma once

#include <string>
#include <string_view>

namespace contextune::intercept {

/// Why libc is not asked to compile that regular expression; "" where it may be. It would take
/// seconds, gigabytes or more stack than there is: libc writes out what `{m,n}` repeats and goes
/// down into groups by recursion.
[[nodiscard]] std::string why_too_large(std::string_view expression);

}  // namespace contextune::intercept
