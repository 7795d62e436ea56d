#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <contextune/config.hpp>
#include <contextune/key.hpp>

#include "core/submission/submission.hpp"
#include "core/value/force.hpp"
#include "intercept/host/event_log.hpp"

namespace contextune::intercept {

/// The option `force`: which sites are pinned to which config. A pin names a site, or a site and
/// parts of its key: "saxpy=2", "saxpy{n=4096}=block:256". Any thread.
class ForcedConfigs {
 public:
  /// Pins that cannot be read are reported and do not count.
  ForcedConfigs(const std::string& option, EventLog& log);

  /// The config that the site is pinned to, if it is. A pinned config that is not exactly one of
  /// its configs is reported with those that there are.
  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& region,
                                                  const std::string& name, const Key& key,
                                                  std::span<const Config> configs);

  /// How the launches that nothing else tunes go out: the pin `launches`. Empty: there is none.
  [[nodiscard]] std::optional<PinnedLaunches> launches() const noexcept { return launches_; }

  /// Reports the pins that no site has matched; at the end.
  void report_unmatched();

 private:
  struct Pin {
    ForcedConfig given;
    bool matched = false;
  };
  EventLog& log_;
  std::optional<PinnedLaunches> launches_;
  std::mutex mutex_;
  std::vector<Pin> pins_;
};

}  // namespace contextune::intercept
