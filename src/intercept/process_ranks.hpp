#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <contextune/options.hpp>

#include "core/coordinator.hpp"
#include "core/region_tuning.hpp"
#include "intercept/event_log.hpp"
#include "rank/gathered_rendezvous.hpp"
#include "rank/rendezvous.hpp"

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

  /// Whether the ranks of a communicator can still be joined.
  [[nodiscard]] rank::Standing standing();
  /// Joins those who meet there, or, where the rendezvous failed, nobody for good. Regions that are
  /// entered from now on are tuned with them, unless the process has joined others meanwhile.
  void join(const rank::Rendezvous& met);

 private:
  void start(const rank::Rendezvous& found);
  [[nodiscard]] Coordinator* joined(bool by_launcher, std::string& why);

  EventLog& log_;
  std::mutex mutex_;
  bool has_regions_ = false;
  std::uint64_t job_ = 0;  ///< that was joined
  std::unique_ptr<Coordinator> coordinator_;
};

}  // namespace contextune::intercept
