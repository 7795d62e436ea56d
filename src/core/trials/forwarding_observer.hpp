#pragma once

#include <string>

#include "core/trials/tuning_observer.hpp"

namespace contextune {

/// Hands all reports of a tuning on to another observer; those that are overridden, as they are
/// there. Not thread-safe, as the calls are not.
class ForwardingObserver : public TuningObserver {
 public:
  /// @param next outlives it
  explicit ForwardingObserver(TuningObserver& next) noexcept : next_(next) {}

  void stage(Stage stage, std::uint32_t generation) override { next_.stage(stage, generation); }
  void trial(const TrialEvent& event) override { next_.trial(event); }
  void winner(const WinnerEvent& event) override { next_.winner(event); }
  void confirm(const ConfirmEvent& event) override { next_.confirm(event); }
  void left_out(const LeftOutEvent& event) override { next_.left_out(event); }
  void sync(const SyncEvent& event) override { next_.sync(event); }
  void fallback(FallbackReason reason, SiteIndex site, const std::string& text) override {
    next_.fallback(reason, site, text);
  }

 protected:
  [[nodiscard]] TuningObserver& next() noexcept { return next_; }

 private:
  TuningObserver& next_;
};

}  // namespace contextune
