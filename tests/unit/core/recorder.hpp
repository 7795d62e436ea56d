#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/search/tuning.hpp"

namespace contextune::tests {

/// For entries of one tuning or of several.
inline PassId next_pass() {
  static std::uint64_t last = 0;
  return PassId{++last};
}

/// Keeps everything that a tuning reports.
class Recorder : public TuningObserver {
 public:
  struct Fallback {
    FallbackReason reason;
    SiteIndex site;
    std::string text;
  };
  void stage(Stage stage, std::uint32_t generation) override {
    stages.emplace_back(stage, generation);
  }
  void trial(const TrialEvent& event) override { trials.push_back(event); }
  void winner(const WinnerEvent& event) override { winners.push_back(event); }
  void confirm(const ConfirmEvent& event) override { confirms.push_back(event); }
  void left_out(const LeftOutEvent& event) override { left_out_events.push_back(event); }
  void fallback(FallbackReason reason, SiteIndex site, const std::string& text) override {
    fallbacks.push_back({reason, site, text});
  }

  [[nodiscard]] int count(FallbackReason reason) const {
    int found = 0;
    for (const Fallback& fallback : fallbacks) found += fallback.reason == reason;
    return found;
  }
  [[nodiscard]] const WinnerEvent* winner_of(SiteIndex site) const {
    for (const WinnerEvent& event : winners)
      if (event.site == site) return &event;
    return nullptr;
  }

  std::vector<std::pair<Stage, std::uint32_t>> stages;
  std::vector<TrialEvent> trials;
  std::vector<WinnerEvent> winners;
  std::vector<ConfirmEvent> confirms;
  std::vector<LeftOutEvent> left_out_events;
  std::vector<Fallback> fallbacks;
};

}  // namespace contextune::tests
