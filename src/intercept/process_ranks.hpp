#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <contextune/options.hpp>

#include "core/coordinator.hpp"
#include "core/region_tuning.hpp"
#include "intercept/event_log.hpp"

namespace contextune::intercept {

/// This process among the ranks of its job: with whom its regions are tuned. Any thread; lives as
/// long as the process.
class ProcessRanks {
 public:
  explicit ProcessRanks(EventLog& log) : log_(log) {}

  /// What decides in that region: this process alone, or all ranks. The first region that others
  /// share makes the process join them, behind the scenes; a rendezvous that fails is final.
  [[nodiscard]] std::unique_ptr<RegionTuning> tuning_of(const std::string& region,
                                                        const Options& options,
                                                        TuningObserver& observer);

 private:
  [[nodiscard]] Coordinator* joined(bool by_launcher, std::string& why);

  EventLog& log_;
  std::mutex mutex_;
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace contextune::intercept
