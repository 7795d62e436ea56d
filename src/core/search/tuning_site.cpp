#include "core/search/tuning_site.hpp"

#include <cmath>
#include <limits>

#include "core/trials/statistics.hpp"

namespace contextune {

double TuningSite::cost(std::uint32_t config, Selection selection) const {
  if (progress) {
    const Trial& trial = progress->trials()[config];
    return trial.given_up() ? no_sample : cost_of(trial.measured(), selection);
  }
  if (is_stored()) {
    // Both of one run: what this one measured by the way has nothing to be compared with.
    const StoredWinner& stored = *spec.stored;
    if (config == stored.config && !std::isnan(stored.seconds)) return stored.seconds;
    if (config == known && !idle_samples.empty()) return median(idle_samples);
    return config == 0 ? stored.default_seconds : no_sample;
  }
  return config == 0 || trivial ? median(idle_samples) : no_sample;
}

double TuningSite::gain(Selection selection) const {
  const double saved = (cost(base(), selection) - cost(known, selection)) * launches;
  return std::isnan(saved) ? -std::numeric_limits<double>::infinity() : saved;
}

}  // namespace contextune
