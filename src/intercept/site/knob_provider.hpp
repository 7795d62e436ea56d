#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <contextune/config.hpp>
#include <contextune/key.hpp>

#include "core/value/kernel_rule.hpp"
#include "gpu/image/kernel_identity.hpp"
#include "intercept/program/launch.hpp"

namespace contextune::intercept {

/// A launch with everything that is known about it. Valid during the call only.
struct KernelLaunch {
  const Launch& launch;
  const gpu::KernelIdentity& kernel;
  const DeviceFacts& device;
  LaunchView view;
};

/// The changes that a config makes to a launch, launch attributes included. Absent: as the program
/// wrote it.
struct VariantSpec {
  LaunchChange change;
  std::optional<int> carveout;  ///< percent of the SM's memory that is shared memory
  std::optional<int> priority;
  std::optional<int> cluster_scheduling;  ///< CUclusterSchedulingPolicy
  bool co_resident = false;  ///< not to be launched unless all blocks are on the device at once
};

/// A source of things that can be changed about a launch. Calls are serialised by the caller. Any
/// call may throw Error with a message for the log; the site then runs as the program wrote it.
class KnobProvider {
 public:
  virtual ~KnobProvider() = default;

  /// "declared" or "attributes": `provider` in the rank log.
  [[nodiscard]] virtual std::string_view name() const = 0;

  /// Further part of the site's key.
  [[nodiscard]] virtual Key key(const KernelLaunch& launch, LaunchReads& reads) = 0;

  /// Whether that part takes the place of the grid; see KernelRule.
  [[nodiscard]] virtual bool keys_by_size() const { return false; }
  [[nodiscard]] virtual UnseenSize unseen() const { return UnseenSize::Tune; }

  /// Configs for that launch, without the default. None: nothing to tune.
  [[nodiscard]] virtual std::vector<Config> configs(const KernelLaunch& launch) = 0;

  [[nodiscard]] virtual VariantSpec apply(const Config& config, const KernelLaunch& launch,
                                          LaunchReads& reads) = 0;

  /// As KernelRule has it.
  [[nodiscard]] virtual std::string meaning() const { return {}; }

  /// Schedule overrides; absent: those of the region.
  [[nodiscard]] virtual std::optional<int> n_warmup() const { return std::nullopt; }
  [[nodiscard]] virtual std::optional<int> n_repeat() const { return std::nullopt; }
};

}  // namespace contextune::intercept
