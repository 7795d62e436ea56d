#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <contextune/config.hpp>
#include <contextune/key.hpp>

#include "core/trials/tuning_observer.hpp"
#include "intercept/program/settled_launches.hpp"
#include "intercept/site/site_code.hpp"

namespace contextune::intercept {

class KnobProvider;
class LaunchRegion;
class Search;

/// A tunable thing at one key in one region: what the launch path needs to know of it. Made when
/// first launched, never destroyed. The config numbers may be read by any thread; the rest is
/// written once, before the site is published.
class Site {
 public:
  std::string name;  ///< of the kernel or tunable
  Key key;
  std::string key_text;
  std::vector<Config> configs;
  SiteCode code;
  KnobProvider* provider = nullptr;  ///< null: a tunable, or nothing to change
  Search* search = nullptr;
  LaunchRegion* region = nullptr;
  void* window = nullptr;     ///< of ProcessRegion
  SiteIndex index = no_site;  ///< in `search`; no_site: runs `settled` always
  std::optional<std::uint32_t> pinned;
  bool timed_as_span =
      false;             ///< a call of it is, from the first start to the last end of its work
  bool dropped = false;  ///< its winner stopped working; under the search's lock

  /// "saxpy{n=4096}": how messages and the option `force` name it.
  [[nodiscard]] std::string label() const {
    return key.empty() ? name : name + "{" + key_text + "}";
  }

  /// The config to launch: in the entry that counts, and otherwise.
  [[nodiscard]] std::uint32_t planned() const noexcept {
    return planned_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint32_t settled() const noexcept {
    return settled_.load(std::memory_order_relaxed);
  }
  void set_planned(std::uint32_t config) noexcept {
    planned_.store(config, std::memory_order_relaxed);
  }
  void set_settled(std::uint32_t config) noexcept {
    if (settled_.exchange(config, std::memory_order_relaxed) != config) settled_changed();
  }

 private:
  std::atomic<std::uint32_t> planned_{0};
  std::atomic<std::uint32_t> settled_{0};
};

}  // namespace contextune::intercept
