#pragma once

#include <simcuda/simcuda.h>

#include <cstddef>

#include "cache_model.hpp"
#include "device_profile.hpp"
#include "occupancy.hpp"

namespace simcuda {

/// One launch as the cost model sees it.
struct LaunchShape {
  double blocks = 0;
  BlockDemand demand;
  int carveout_percent = -1;
};

struct LaunchCost {
  double seconds = 0;
  double utilisation = 1;  // share of the device that the largest wave fills
  std::size_t shared_configuration_bytes = 0;
};

/// Time of a kernel on one device: waves of resident blocks, each as long as the slowest of
/// arithmetic, memory throughput, the chain of waits of one thread, and block dispatch; memory
/// from what the neighbours before left in the L2 cache. No noise. Not thread-safe.
class CostModel {
 public:
  explicit CostModel(const DeviceProfile& profile)
      : profile_(profile), cache_(profile.l2_bytes), shared_configuration_(0) {}

  /// Costs a launch and takes its traffic into the cache.
  LaunchCost launch(const LaunchShape& shape, const simcuda_work& work);
  /// Traffic of a copy or a memset: lines that it leaves in the cache.
  void take_in(const void* address, std::size_t bytes);

  [[nodiscard]] CacheModel& cache() { return cache_; }

 private:
  struct Traffic {
    double bytes = 0;           // asked of L2 and DRAM
    double device_time = 0;     // at full throughput
    double latency = 0;         // mean wait, seconds
    double repeated_bytes = 0;  // served by L1
  };

  Traffic traffic(const LaunchShape& shape, const simcuda_work& work, unsigned resident,
                  std::size_t l1_bytes);
  [[nodiscard]] double wave(double active_blocks, const LaunchShape& shape,
                            const simcuda_work& work, const Traffic& traffic) const;

  const DeviceProfile& profile_;
  CacheModel cache_;
  std::size_t shared_configuration_;
};

}  // namespace simcuda
