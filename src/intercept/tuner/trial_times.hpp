#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/search/tuning_observer.hpp"

namespace contextune::intercept {

/// Keeps the samples of some sites, for whoever asks what was measured, and hands on all that a
/// tuning reports. Not thread-safe.
class TrialTimes final : public TuningObserver {
 public:
  explicit TrialTimes(TuningObserver& next) : next_(next) {}

  void keep(SiteIndex site) { kept_.insert(site); }
  [[nodiscard]] bool keeps_any() const { return !kept_.empty(); }
  /// Those that count, in their order.
  [[nodiscard]] std::vector<double> samples(SiteIndex site, std::uint32_t config) const {
    const auto found = samples_.find({site, config});
    return found == samples_.end() ? std::vector<double>{} : found->second;
  }

  void stage(Stage stage, std::uint32_t generation) override { next_.stage(stage, generation); }
  void trial(const TrialEvent& event) override {
    const bool counts =
        event.status == TrialStatus::Measured && event.iteration >= 0 && !event.throttled;
    if (counts && kept_.contains(event.site))
      samples_[{event.site, event.config}].push_back(event.seconds);
    next_.trial(event);
  }
  void winner(const WinnerEvent& event) override { next_.winner(event); }
  void confirm(const ConfirmEvent& event) override { next_.confirm(event); }
  void left_out(const LeftOutEvent& event) override { next_.left_out(event); }
  void sync(const SyncEvent& event) override { next_.sync(event); }
  void fallback(FallbackReason reason, SiteIndex site, const std::string& text) override {
    next_.fallback(reason, site, text);
  }

 private:
  TuningObserver& next_;
  std::set<SiteIndex> kept_;
  std::map<std::pair<SiteIndex, std::uint32_t>, std::vector<double>> samples_;
};

}  // namespace contextune::intercept
