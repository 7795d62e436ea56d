#pragma once

#include <string>

#include "core/trials/forwarding_observer.hpp"

namespace contextune::intercept {

/// Keeps why the ranks of a search have not agreed, as it was first said, and hands on all that its
/// tuning reports. Not thread-safe: a part of one search.
class MissingAgreement final : public ForwardingObserver {
 public:
  using ForwardingObserver::ForwardingObserver;

  /// Nothing is found out, for that reason, a sentence.
  void note(FallbackReason reason, const std::string& text) {
    const bool is_of_ranks =
        reason == FallbackReason::NoAgreement || reason == FallbackReason::NoRendezvous;
    if (!is_of_ranks || !why_.empty()) return;
    why_ = text;
    if (why_.ends_with('.')) why_.pop_back();
  }
  /// As Region says why it is untuned.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  void fallback(FallbackReason reason, SiteIndex site, const std::string& text) override {
    next().fallback(reason, site, text);
    if (site == no_site) note(reason, text);
  }

 private:
  std::string why_;
};

}  // namespace contextune::intercept
