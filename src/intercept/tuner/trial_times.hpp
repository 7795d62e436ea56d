#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/trials/forwarding_observer.hpp"

namespace contextune::intercept {

/// Keeps the samples of some sites, for whoever asks what was measured, and hands on all that a
/// tuning reports. Not thread-safe.
class TrialTimes final : public ForwardingObserver {
 public:
  using ForwardingObserver::ForwardingObserver;

  void keep(SiteIndex site) { kept_.insert(site); }
  [[nodiscard]] bool keeps_any() const { return !kept_.empty(); }
  /// Those that count, in their order.
  [[nodiscard]] std::vector<double> samples(SiteIndex site, std::uint32_t config) const {
    const auto found = samples_.find({site, config});
    return found == samples_.end() ? std::vector<double>{} : found->second;
  }

  void trial(const TrialEvent& event) override {
    const bool counts =
        event.status == TrialStatus::Measured && event.iteration >= 0 && !event.throttled;
    if (counts && kept_.contains(event.site))
      samples_[{event.site, event.config}].push_back(event.seconds);
    next().trial(event);
  }

 private:
  std::set<SiteIndex> kept_;
  std::map<std::pair<SiteIndex, std::uint32_t>, std::vector<double>> samples_;
};

}  // namespace contextune::intercept
