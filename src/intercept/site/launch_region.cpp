#include "intercept/site/launch_region.hpp"

#include "intercept/program/capture_watch.hpp"

namespace contextune::intercept {

Launch LaunchRegion::launch_of(const contextune_launch& call) const noexcept {
  Launch launch(call);
  if (services_.several_devices) (void)services_.driver.cuCtxGetCurrent(&launch.context);
  return launch;
}

bool LaunchRegion::is_capturing(const Launch& launch) const noexcept {
  // The driver is asked only while a capture is under way somewhere.
  return services_.captures.possible() && services_.captures.is_capturing(launch.stream);
}

}  // namespace contextune::intercept
