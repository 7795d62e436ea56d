#include "intercept/tuner/trial_launch.hpp"
#include "intercept/site/launcher.hpp"

#include "intercept/marks/open_regions.hpp"
#include "intercept/program/capture_watch.hpp"
#include "intercept/tuner/open_pass.hpp"
#include "intercept/tuner/search_sites.hpp"

#include <exception>

namespace contextune::intercept {

std::string TrialLaunch::why(const Site& site, std::uint32_t config, CUresult result) const {
  return "Config " + std::to_string(config) + " (" + site.configs[config].to_string() +
         ") could not be launched: " + gpu::describe(services_.driver, result) +
         "; the default ran in its place.";
}

const Variant* TrialLaunch::find_variant(const SiteTable::Found& found, std::uint32_t config,
                                         const Launch& launch) noexcept {
  try {
    const Variant* variant = table_.variant(found, config, launch);
    return variant != nullptr && variant->usable ? variant : nullptr;
  } catch (const std::exception&) {
    return nullptr;  // no memory: as written
  }
}

CUresult TrialLaunch::settled(const contextune_launch& call, const Launch& launch,
                              const SiteTable::Found& found, std::uint32_t config,
                              Search* search) noexcept {
  if (config == 0 || found.resolved == nullptr) return services_.launcher.as_written(call);
  const Variant* variant = find_variant(found, config, launch);
  if (variant == nullptr) return services_.launcher.as_written(call);
  const CUresult result = services_.launcher.as_variant(launch, *variant);
  if (result == CUDA_SUCCESS) return result;
  if (is_sticky_error(result)) services_.broke(result);
  if (!is_launch_config_error(result)) return result;
  const CUresult again = services_.launcher.as_written(call);
  if (again == CUDA_SUCCESS && search != nullptr) {
    try {
      Site& site = found.resolved->site();
      search->sites().drop_winner(site, why(site, config, result));
    } catch (const std::exception&) {
      // Not said, then; the launch itself is done.
    }
  }
  return again;
}

CUresult TrialLaunch::settled_for_good(const contextune_launch& call, const Launch& launch,
                                       const SiteTable::Found& found, std::uint32_t config,
                                       Search* search, std::uint64_t version) noexcept {
  const bool by_shape = found.binding != nullptr && launch.num_attributes == 0 &&
                        !launch.cooperative && !services_.captures.possible() &&
                        !services_.open.watches_always() &&
                        (found.resolved == nullptr ? found.binding->is_as_written()
                                                   : found.binding->ignores_arguments());
  const Variant* variant = by_shape && found.resolved != nullptr && config != 0
                               ? find_variant(found, config, launch)
                               : nullptr;
  const bool on_any_device = services_.several_devices && launch.context == nullptr;
  const bool unsure =
      on_any_device || (config != 0 && found.resolved != nullptr && variant == nullptr);
  if (by_shape && !unsure && (variant == nullptr || variant->num_attributes == 0)) {
    this_thread().settled.remember(call, &region_, launch.context, version, variant,
                                   services_.launcher.kernel(launch.per_thread_streams));
  }
  return settled(call, launch, found, config, search);
}

TrialLaunch::Timed TrialLaunch::issue(const contextune_launch& call, const Launch& launch,
                                      const Variant* variant, std::uint64_t tag,
                                      bool timed) noexcept {
  LaunchTimer* timer = timed ? services_.measurement.timer() : nullptr;
  if (timer != nullptr) timer->launch_begin(tag, launch.stream);
  const CUresult result = variant == nullptr ? services_.launcher.as_written(call)
                                             : services_.launcher.as_variant(launch, *variant);
  if (timer != nullptr) timer->launch_end(tag, launch.stream);
  return {result, timer != nullptr ? 1U : 0U};
}

CUresult TrialLaunch::watched(const contextune_launch& call, const Launch& launch,
                              const SiteTable::Found& found, std::uint32_t config, Search& search,
                              Watch watch) noexcept {
  const SiteIndex site = found.resolved == nullptr ? no_site : found.resolved->site().index;
  const std::uint64_t tag = search.pass().tag(site);
  const bool timed = watch == Watch::Activity;
  const bool wants_variant = config != 0 && found.resolved != nullptr;
  const Variant* variant = wants_variant ? find_variant(found, config, launch) : nullptr;
  bool failed = wants_variant && variant == nullptr;
  if (watch == Watch::Span) search.pass().touch(launch.stream, false);
  Timed one = issue(call, launch, variant, failed ? search.pass().tag(no_site) : tag, timed);
  try {
    if (variant != nullptr && is_launch_config_error(one.result)) {
      failed = true;
      services_.log.fallback(FallbackReason::LaunchFailed, region_.name(),
                             found.resolved->site().label(),
                             why(found.resolved->site(), config, one.result));
      one = issue(call, launch, nullptr, search.pass().tag(no_site), timed);
    }
    if (is_sticky_error(one.result)) services_.broke(one.result);
    if (one.result != CUDA_SUCCESS) return one.result;
    if (failed) {
      search.pass().failed(tag, site);
      search.pass().launched(tag, site, 1, 0);
      search.pass().launched(tag, no_site, 0, one.records);
    } else {
      search.pass().launched(tag, site, 1, one.records);
    }
    if (watch == Watch::Span) search.pass().touch(launch.stream, true);
  } catch (const std::exception&) {
    // No memory to count the launch: its pass will miss a record and be lost.
  }
  return one.result;
}

}  // namespace contextune::intercept
