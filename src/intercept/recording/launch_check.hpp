#pragma once

#include <functional>
#include <optional>
#include <set>
#include <unordered_set>

#include "intercept/graphs/graph_table.hpp"
#include "intercept/memory/process_memory.hpp"
#include "intercept/program/capture_watch.hpp"
#include "intercept/program/kernel_table.hpp"
#include "intercept/program/launch.hpp"
#include "intercept/recording/recording.hpp"

namespace contextune::intercept {

/// Whether the launches of a recording can be made again: their kernels, and the memory that these
/// are given. Remembers over one recording what it has seen. Used by the thread that records; each
/// function may throw Error.
class LaunchCheck {
 public:
  using Obstacle = Recording::Obstacle;
  /// Called before the first launch of each kernel in a recording, on the launching thread.
  /// @return what stands in the way of a replay; absent: nothing
  using FirstLaunch = std::function<std::optional<Obstacle>(const KnownKernel&)>;

  /// @param several_devices so a launch's context tells its device
  LaunchCheck(const gpu::Driver& driver, KernelTable& kernels, GraphTable& graphs,
              ProcessMemory& memory, CaptureWatch& captures, bool several_devices)
      : driver_(driver),
        kernels_(kernels),
        graphs_(graphs),
        memory_(memory),
        captures_(captures),
        several_devices_(several_devices) {}
  LaunchCheck(const LaunchCheck&) = delete;
  LaunchCheck& operator=(const LaunchCheck&) = delete;

  /// A recording begins.
  void begin(FirstLaunch first_launch);

  /// The launch with its context, where that is told apart.
  [[nodiscard]] Launch launch_of(const contextune_launch& call) const;
  /// What stands in the way, of how and where it is launched.
  [[nodiscard]] std::optional<Obstacle> find_obstacle(const Launch& launch) const;
  /// The kernel of a launch; null: the obstacle stands in the way.
  [[nodiscard]] const KnownKernel* meet(const Launch& launch, std::optional<Obstacle>& obstacle);
  /// What stands in the way of its arguments.
  [[nodiscard]] std::optional<Obstacle> find_obstacle(const Launch& launch,
                                                      const KnownKernel& kernel);
  /// The same of all that a graph launches.
  [[nodiscard]] std::optional<Obstacle> find_obstacle(const GraphCall& call);

 private:
  /// Whether the driver has memory there, of which the map does not know.
  [[nodiscard]] bool is_unseen_memory(CUdeviceptr word);

  const gpu::Driver& driver_;
  KernelTable& kernels_;
  GraphTable& graphs_;
  ProcessMemory& memory_;
  CaptureWatch& captures_;
  const bool several_devices_;
  FirstLaunch first_launch_;
  std::set<const KnownKernel*> kernels_seen_;
  std::set<CUgraphExec> graphs_seen_;
  std::unordered_set<CUdeviceptr> no_addresses_;  ///< words of arguments that are none
};

}  // namespace contextune::intercept
