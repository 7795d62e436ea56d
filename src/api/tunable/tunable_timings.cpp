// What is known of a tunable's configs: tunable_registry.hpp.
#include <algorithm>
#include <cstdint>

#include "api/last_error.hpp"
#include "api/process.hpp"
#include "api/tunable/site_timing.hpp"
#include "api/tunable/tunable_record.hpp"
#include "api/tunable/tunable_registry.hpp"

namespace contextune::api {

size_t tunable_timings(contextune_tunable* tunable, uint32_t key, contextune_timing* timings,
                       size_t most) noexcept {
  const TunableProblem* const problem = tunable == nullptr ? nullptr : tunable->problem(key);
  if (problem == nullptr) {
    static_cast<void>(
        fail("the tunable has no such problem; contextune_tunable_key() gives its numbers"));
    return 0;
  }
  if (runtime() == nullptr) {
    static_cast<void>(fail(state_reason()));
    return 0;
  }
  const ProblemSite* const settled = problem->sites.find_settled(current_device());
  const ProblemSite* const site = settled != nullptr ? settled : problem->sites.last();
  const KeptConfigs* const kept = problem->kept.load(std::memory_order_acquire);
  const auto count = static_cast<std::uint32_t>(tunable->configs.size());
  const auto num_kept = static_cast<std::uint32_t>(problem->num_configs(count));
  std::size_t written = 0;
  const auto add = [&](const contextune_timing& one) {
    if (written < most) timings[written] = one;
    ++written;
  };
  for (std::uint32_t i = 0; i < num_kept; ++i) {
    contextune_timing one{0, problem->outer(i), 0, 0, contextune_timing_missing, 0};
    const bool is_only = num_kept == 1;
    one.is_winner = is_only || (settled != nullptr && settled->site->settled() == i) ? 1 : 0;
    add_known(one, site == nullptr ? nullptr : site->site, i);
    add(one);
  }
  for (std::uint32_t config = 0; kept != nullptr && config < count; ++config) {
    if (std::ranges::find(kept->configs, config) == kept->configs.end())
      add({0, config, 0, 0, contextune_timing_unsupported, 0});
  }
  return written;
}

}  // namespace contextune::api
