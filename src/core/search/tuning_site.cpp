#include "core/search/tuning_site.hpp"

#include <algorithm>
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

std::uint64_t table_passes(const SiteSpec& spec, const ScheduleShape& usual) {
  const bool is_stored = spec.stored && spec.stored->untried.empty();
  if (spec.pinned || spec.configs.size() < 2 || spec.objective == Objective::Region || is_stored)
    return 0;
  std::uint64_t configs = 0;
  for (std::uint32_t config = 0; config < spec.configs.size(); ++config)
    if (!spec.stored || spec.stored->has_to_try(config)) ++configs;
  return configs * static_cast<std::uint64_t>(std::max(0, spec.n_warmup.value_or(usual.n_warmup)) +
                                              std::max(1, spec.n_repeat.value_or(usual.n_repeat)));
}

}  // namespace contextune
