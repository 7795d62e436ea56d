#include "core/trials/trial.hpp"

#include <algorithm>
#include <cmath>

namespace contextune {

std::string_view to_string(TrialStatus status) {
  constexpr std::string_view words[] = {"untried", "measured",     "failed",      "missing",
                                        "cutoff",  "wrong_result", "timeout",     "crashed",
                                        "known",   "memory",       "not_compared"};
  return words[static_cast<std::size_t>(status)];
}

std::vector<double> Trial::measured() const {
  std::vector<double> found;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(found),
               [](double sample) { return !std::isnan(sample); });
  return found;
}

}  // namespace contextune
