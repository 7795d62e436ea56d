#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/search/region_tuning.hpp"
#include "core/value/tuning_options.hpp"

/// The messages of ranks that tune one region together. Plain values; batch_message.hpp puts them
/// on the wire.
///
/// The invariant of ranks: **all ranks of a group run the same pass with the same plan, or none
/// does**. So passes are planned once, as a Batch that every rank is given in the same agreement.
/// Every BatchReport names the batch that it followed by number and hash: the planner refuses
/// reports of anything else.
namespace contextune {

/// A site as all ranks speak of it. Ranks mean the same one by name and key.
struct SharedSite {
  std::string name;
  std::string key;
  std::uint64_t configs_hash = 0;  ///< of all configs' texts: the lists have to be the same
  std::uint32_t num_configs = 1;
  Objective objective = Objective::Own;
  std::optional<int> n_warmup;
  std::optional<int> n_repeat;
  std::optional<std::uint32_t> pinned;
  bool collective = false;

  bool operator==(const SharedSite&) const = default;
};

/// A site's place in the order in which the planner took them up: the same on all ranks.
using SharedIndex = std::uint32_t;

/// A rank's part of one pass of a batch.
struct PassReport {
  bool lost = false;              ///< nothing is known of it
  bool throttled = false;         ///< it does not count, on any rank
  double region_seconds = 0;      ///< not above 0: not known; below: what is charged
  double sm_clock_hz = 0;         ///< 0: not known
  std::vector<SiteResult> sites;  ///< by SharedIndex; those that were launched, each once
};

/// A rank's report after it has run a batch; the first one comes before any. If the rank leaves or
/// pauses, nothing but that counts, and its options.
struct BatchReport {
  struct NewSite {
    SharedSite site;
    bool ready = true;
    std::vector<std::uint32_t> unusable;  ///< configs that could not be built; empty until ready
    std::vector<std::uint32_t> wrong;     ///< configs that compute something else here
    std::optional<StoredWinner> stored{};
    Suspicions suspicions{};
    bool outdated = false;  ///< as SiteSpec has it
  };
  struct Readiness {
    SharedIndex site = 0;
    std::vector<std::uint32_t> unusable;
  };
  struct Rejection {
    SharedIndex site = 0;
    std::uint32_t config = 0;
    bool is_wrong = true;  ///< false: nobody knows
  };

  /// Where this rank stands in one stream of decisions; see DecisionStanding.
  struct Standing {
    SharedIndex site = 0;
    std::uint64_t communicator = 0;
    std::uint32_t ranks = 0;
    std::uint32_t here = 0;
    std::uint64_t decisions = 0;  ///< made before entry number `entry`
    std::uint64_t entry = 0;
    std::uint32_t per_entry = 0;  ///< of late; 0: not the same in each
  };

  /// Not empty: why this rank is out of it, a clause.
  std::string leaving;
  bool pausing = false;           ///< it runs no more passes now, and goes on later
  std::uint64_t batch = 0;        ///< number of the batch that was run; 0: none
  std::uint64_t batch_hash = 0;   ///< of its bytes
  std::uint64_t inputs_hash = 0;  ///< of what was declared: space, version, options
  TuningOptions options;
  /// The program makes the entries; see RegionTuning::begin_pass.
  bool bounded = false;
  bool overran = false;        ///< passes of the batch did not end within trial_timeout
  double elapsed_seconds = 0;  ///< since this rank's first entry
  /// The entry up to which this rank runs only what it has been given.
  std::uint64_t horizon = 0;
  std::uint64_t margin = 0;           ///< entries that it left for the answer
  std::vector<NewSite> new_sites;     ///< first seen since the last report
  std::vector<Readiness> readied;     ///< sites that were not ready when they were reported
  std::vector<Rejection> rejections;  ///< configs that compute something else here, or may
  std::vector<Standing> standings;
  std::vector<PassReport> passes;  ///< one for each of the batch, in order
};

/// Reports of the planner's tuning, for every rank's own log; sites by SharedIndex.
struct StageEvent {
  Stage stage = Stage::Table;
  std::uint32_t generation = 0;
};
struct FallbackEvent {
  FallbackReason reason = FallbackReason::InternalError;
  SiteIndex site = no_site;
  std::string text;
};
using TuningEvent =
    std::variant<StageEvent, TrialEvent, WinnerEvent, ConfirmEvent, FallbackEvent, LeftOutEvent>;

/// The plan of what all ranks run next.
struct Batch {
  struct Pass {
    std::uint64_t number = 0;
    Stage stage = Stage::Table;
    Measure measure = Measure::Nothing;
    std::vector<std::uint32_t> configs;  ///< by SharedIndex
  };

  /// From decision `first_decision` of a stream on, each pass of the batch has `per_pass` of them.
  /// Afterwards the site's winner holds if the batch is finished, else what held before.
  struct Lease {
    SharedIndex site = 0;
    std::uint64_t communicator = 0;
    std::uint64_t first_decision = 0;
    std::uint32_t per_pass = 1;
    std::uint32_t afterwards = 0;
  };

  /// Not empty: why nothing will ever be agreed on, a sentence; nothing else counts.
  std::string refused;
  bool paused = false;  ///< no passes now: a rank goes on later
  std::uint64_t number = 0;
  /// Where the program makes the entries: the entry that is the first pass, above every rank's
  /// horizon.
  std::uint64_t first_entry = 0;
  std::vector<SharedSite> new_sites;   ///< taken up since the last batch, in order
  std::vector<std::uint32_t> winners;  ///< what sites run when nothing is tried, by SharedIndex
  std::vector<Pass> passes;
  std::vector<Lease> leases;
  Stage stage = Stage::Table;          ///< after these passes
  Waiting waiting = Waiting::Nothing;  ///< why there are no passes, unless it is finished
  bool finished = false;
  double tuning_seconds = 0;        ///< of the slowest rank, so far
  std::vector<TuningEvent> events;  ///< since the last batch
};

}  // namespace contextune
