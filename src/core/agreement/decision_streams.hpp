#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/agreement/batch.hpp"
#include "core/agreement/shared_sites.hpp"
#include "core/trials/decision_port.hpp"
#include "core/trials/tuning_observer.hpp"

namespace contextune {

/// The streams of decisions of a region's collective sites: where this rank stands in each, which
/// decisions wait for the ranks' verdict, and the leases that were agreed on. Without a port there
/// are none. The sites, the observer and the port must outlive it.
class DecisionStreams {
 public:
  DecisionStreams(SharedSites& sites, TuningObserver& observer)
      : sites_(sites), observer_(observer) {}

  void set_port(DecisionPort& port) { port_ = &port; }

  /// An entry begins.
  /// @param entry_was_made since this was called last; else the same entry begins again
  /// @param is_late how many entries the decisions before are spread over is not known
  void count(bool entry_was_made, bool is_late);
  /// Whether there is a new stream that was not leased the winner of its site.
  [[nodiscard]] bool has_untold() const;
  /// There was an agreement or a refusal, once all winners are found.
  void note_untold();

  /// Until release(), no decision is made beyond the limits that follow.
  /// @param entry the number of the one that begins
  /// @param entries that may go by until the verdict
  /// @return where this rank stands, for the others
  [[nodiscard]] std::vector<BatchReport::Standing> hold(std::uint64_t entry, std::uint64_t entries);
  [[nodiscard]] bool is_holding() const { return holding_; }
  void release();

  /// Commits the batch's leases; called again after it threw, it goes on where it was.
  void commit(const Batch& batch);
  /// The next batch may be committed.
  void end_commit() { leases_committed_ = 0; }

 private:
  /// How many decisions of a stream there were at the begin of the last two entries.
  struct Period {
    std::uint64_t decisions = 0;
    std::uint32_t per_entry = 0;
    std::uint32_t before = 0;  ///< per_entry of the entry before; 0: there was none
    bool leased = false;       ///< it was told something
    int untold = 0;            ///< agreements and refusals since there is something to tell
  };

  SharedSites& sites_;
  TuningObserver& observer_;
  DecisionPort* port_ = nullptr;
  std::vector<DecisionStanding> standings_;  ///< at the begin of this entry
  std::map<std::pair<SiteIndex, std::uint64_t>, Period> periods_;
  bool holding_ = false;
  std::size_t leases_committed_ = 0;  ///< of the batch that is committed
};

}  // namespace contextune
