#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/agreement/batch.hpp"
#include "core/agreement/shared_sites.hpp"
#include "core/trials/tuning_observer.hpp"
#include "core/value/tuning_options.hpp"

namespace contextune {

/// This rank's run of the batch that all ranks were given: the entry that is going on, its passes,
/// one after the other, and what is known of each. The options, the observer and
/// the sites must outlive it.
class BatchRun {
 public:
  BatchRun(const TuningOptions& options, TuningObserver& observer, const SharedSites& sites)
      : options_(options), observer_(observer), sites_(sites) {}

  /// The ranks were given the next batch.
  /// @param hash of its bytes
  void start(Batch&& batch, std::uint64_t hash);
  /// No pass that was agreed on is made any more, and nothing is told of them.
  void drop_passes();
  /// The batch that is run, or was last; number 0: there was none.
  [[nodiscard]] const Batch& batch() const { return batch_; }

  /// An entry begins. Unless it is the next pass, it is none.
  void enter() { entered_ = true; }
  [[nodiscard]] bool entered() const { return entered_; }
  [[nodiscard]] bool has_next() const { return next_ < batch_.passes.size(); }
  const Batch::Pass& begin_next(PassId id);
  /// Whether the entry that is going on may end under that name: another pass may not.
  [[nodiscard]] bool may_end(PassId id) const { return !open_ || seen_[*open_].pass == id; }
  void end_entry(std::span<const SiteIndex> launched, std::span<const SiteIndex> failed);
  /// The entry that is going on, if there is one, has no end: its pass is lost.
  void abandon_entry();
  void add_result(const PassResult& result);
  void spend(double seconds, PassId id);
  /// The passes that are due do not end in time. The others are told.
  void overrun();
  /// The passes that have not begun are made by no rank.
  void cut_short();
  /// An entry begins: results that are waited for too long count as missing, which is said.
  void give_up_waiting(double now);

  /// All passes have ended, and their results have come or never will.
  [[nodiscard]] bool is_through() const;
  /// Passes that have begun, of all batches.
  [[nodiscard]] std::uint64_t passes() const { return passes_; }
  /// Adds the batch and what is known of its passes.
  void report(BatchReport& report) const;
  /// This rank's report of the pass with that number; null: it is not of this batch.
  [[nodiscard]] const PassReport* report_of(std::uint64_t number) const;

 private:
  /// This rank's record of one pass of the batch.
  struct Seen {
    PassReport report;
    std::optional<PassId> pass{};  ///< once it has begun
    bool ended = false;
    bool in = false;  ///< its result has come, or never will
  };

  const TuningOptions& options_;
  TuningObserver& observer_;
  const SharedSites& sites_;
  Batch batch_;
  std::uint64_t batch_hash_ = 0;
  std::vector<Seen> seen_;           ///< by position in the batch
  std::size_t next_ = 0;             ///< pass of the batch
  std::optional<std::size_t> open_;  ///< pass of the batch that is going on
  bool entered_ = false;
  bool overran_ = false;  ///< passes of the batch did not end in time
  std::uint64_t passes_ = 0;
  std::uint64_t waited_entries_ = 0;
  double waiting_since_ = 0;
};

}  // namespace contextune
