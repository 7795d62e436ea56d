#pragma once

#include <string>
#include <vector>

#include <contextune/options.hpp>

namespace contextune::intercept {

/// `defaults` under the variables of the environment. An option that cannot be read keeps its
/// default, and a sentence on it goes to `faults`.
[[nodiscard]] Options options_from_environment(const Options& defaults,
                                               std::vector<std::string>& faults);

/// An author's options, where no variable of the environment says otherwise. An option that cannot
/// be read is not reported: it was at the start.
[[nodiscard]] Options options_over(const Options& author);

/// A sentence on each variable that is nearly the name of an option, and so was probably meant to
/// be it. Reads the whole environment: once a process is enough.
void find_misspelt_variables(std::vector<std::string>& faults);

}  // namespace contextune::intercept
