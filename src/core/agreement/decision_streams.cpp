#include "core/agreement/decision_streams.hpp"

#include <algorithm>
#include <limits>
#include <string>

namespace contextune {

void DecisionStreams::count(bool entry_was_made, bool is_late) {
  if (port_ == nullptr) return;
  standings_ = port_->standings();
  for (const DecisionStanding& one : standings_) {
    const std::uint64_t from = is_late ? one.decisions : one.first;
    Period& period =
        periods_.try_emplace({one.site, one.communicator}, Period{from, 0, 0}).first->second;
    const std::uint64_t made = one.decisions - period.decisions;
    if (made == 0 && !entry_was_made) continue;  // the same entry begins again
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    period.before = period.per_entry;
    period.per_entry = static_cast<std::uint32_t>(std::min(made, most));
    period.decisions = one.decisions;
  }
}

// A communicator may be of some of the ranks only. To each question that those ask alone the others
// hear a refusal when they have something to ask. They take most_late_refusals of these.
bool DecisionStreams::has_untold() const {
  constexpr int most_untold = 4;
  return std::any_of(standings_.begin(), standings_.end(), [&](const DecisionStanding& one) {
    if (one.site >= sites_.size() || sites_[one.site].leased == 0) return false;
    const Period& period = periods_.at({one.site, one.communicator});
    return !period.leased && period.untold < most_untold;
  });
}

void DecisionStreams::note_untold() {
  for (const DecisionStanding& one : standings_)
    if (one.site < sites_.size() && sites_[one.site].leased != 0)
      ++periods_.at({one.site, one.communicator}).untold;
}

std::vector<BatchReport::Standing> DecisionStreams::hold(std::uint64_t entry,
                                                         std::uint64_t entries) {
  std::vector<BatchReport::Standing> told;
  if (port_ == nullptr) return told;
  std::vector<DecisionPort::Limit> limits;
  std::vector<DecisionStanding> said;
  for (const DecisionStanding& one : standings_) {
    if (one.site >= sites_.size() || !sites_[one.site].index) continue;
    const Period& period = periods_.at({one.site, one.communicator});
    const bool steady = period.before == 0 || period.before == period.per_entry;
    BatchReport::Standing standing{*sites_[one.site].index,
                                   one.communicator,
                                   one.ranks,
                                   one.here,
                                   one.decisions,
                                   entry,
                                   one.sound && steady ? period.per_entry : 0};
    told.push_back(standing);
    said.push_back(one);
    // A stream that cannot be leased gets no limit, or this rank would take its word back.
    if (standing.per_entry == 0) continue;
    limits.push_back({one.site, one.communicator, one.decisions + entries * standing.per_entry});
  }
  if (limits.empty()) return told;
  port_->hold(limits);
  holding_ = true;
  // A thread that did not yet see the limits may have been about to make one.
  for (const DecisionStanding& now : port_->standings()) {
    for (std::size_t i = 0; i < said.size(); ++i) {
      const bool same = said[i].site == now.site && said[i].communicator == now.communicator;
      if (same && (!now.sound || now.decisions != said[i].decisions)) told[i].per_entry = 0;
    }
  }
  return told;
}

void DecisionStreams::release() {
  if (std::exchange(holding_, false)) port_->release();
}

void DecisionStreams::commit(const Batch& batch) {
  if (port_ == nullptr) return;
  for (; leases_committed_ < batch.leases.size(); ++leases_committed_) {
    const Batch::Lease& lease = batch.leases[leases_committed_];
    const SiteIndex here = sites_.local(lease.site);
    if (here == no_site) continue;
    DecisionLease own{here, lease.communicator, batch.number, lease.first_decision, lease.per_pass,
                      {},   lease.afterwards};
    for (const Batch::Pass& pass : batch.passes)
      own.configs.push_back(lease.site < pass.configs.size() ? pass.configs[lease.site] : 0);
    const std::string why = port_->commit(own);
    sites_.lease(here, lease.afterwards);
    if (const auto period = periods_.find({here, lease.communicator}); period != periods_.end())
      period->second.leased = true;
    if (why.empty()) continue;
    observer_.fallback(FallbackReason::InternalError, here,
                       "This rank cannot keep what all ranks agreed on: " + why + ".");
  }
}

}  // namespace contextune
