// How collective sites are kept in step: what this rank says of its decisions, and what it forbids
// and commits.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/agreement/shared_tuning.hpp"

namespace contextune {

bool SharedTuning::keep_in_step(DecisionPort& port) {
  port_ = &port;
  return true;
}

void SharedTuning::count_decisions(bool entry_was_made) {
  if (port_ == nullptr) return;
  standings_ = port_->standings();
  for (const DecisionStanding& one : standings_) {
    // How many entries those before the first one here are spread over is not known.
    const std::uint64_t from =
        settings_.is_late && std::isnan(first_now_) ? one.decisions : one.first;
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
bool SharedTuning::has_new_streams() const {
  constexpr int most_untold = 4;
  return std::any_of(standings_.begin(), standings_.end(), [&](const DecisionStanding& one) {
    if (one.site >= sites_.size() || sites_[one.site].leased == 0) return false;
    const Period& period = periods_.at({one.site, one.communicator});
    return !period.leased && period.untold < most_untold;
  });
}

void SharedTuning::note_untold() {
  if (!batch_.finished) return;
  for (const DecisionStanding& one : standings_)
    if (one.site < sites_.size() && sites_[one.site].leased != 0)
      ++periods_.at({one.site, one.communicator}).untold;
}

void SharedTuning::hold_decisions(bool bounded) {
  said_.standings.clear();
  if (port_ == nullptr) return;
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
                                   entries_,
                                   one.sound && steady ? period.per_entry : 0};
    said_.standings.push_back(standing);
    said.push_back(one);
    // A stream that cannot be leased gets no limit, or this rank would take its word back.
    if (standing.per_entry == 0) continue;
    const std::uint64_t entries = bounded ? said_.horizon + 1 - entries_ : 0;
    limits.push_back({one.site, one.communicator, one.decisions + entries * standing.per_entry});
  }
  if (limits.empty()) return;
  port_->hold(limits);
  holding_ = true;
  // A thread that did not yet see the limits may have been about to make one.
  for (const DecisionStanding& now : port_->standings()) {
    for (std::size_t i = 0; i < said.size(); ++i) {
      const bool same = said[i].site == now.site && said[i].communicator == now.communicator;
      if (same && (!now.sound || now.decisions != said[i].decisions))
        said_.standings[i].per_entry = 0;
    }
  }
}

void SharedTuning::release_decisions() {
  if (std::exchange(holding_, false)) port_->release();
}

void SharedTuning::commit_leases(const Batch& batch) {
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

bool SharedTuning::settle(Due due, double now) {
  if (due == Due::Entry) {
    if (!asked_ || !holding_ || !asked_bounded_ || entries_ < said_.horizon) return true;
    return settle_because(entered_again, now);
  }
  last_now_ = std::max(last_now_, now);
  if (asked_ && holding_) return settle_because("a collective was due before all had spoken", now);
  release_decisions();
  return true;
}

bool SharedTuning::settle_because(const char* why, double now) {
  if (awaiting_) {
    coordinator_.withdraw(topic_, why);
    return false;
  }
  if (!answer_) {
    if (std::isnan(settling_since_)) {
      settling_since_ = now;
      coordinator_.withdraw(topic_, why);
    }
    Agreement agreement = coordinator_.poll(topic_);
    if (agreement.verdict == Verdict::Open) {
      // This rank has voted. A decision that was agreed on must not be missed: the others, inside
      // NCCL, would never return.
      if (now - settling_since_ < held_verdict_seconds) return false;
      leave_unknown(agreement, held_verdict_seconds);
    }
    agreement.waited_seconds += now - settling_since_;
    answer_ = std::move(agreement);
  }
  heard(*answer_, asked_bounded_);
  return true;
}

}  // namespace contextune
