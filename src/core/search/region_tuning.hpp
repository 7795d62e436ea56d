#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <contextune/config.hpp>
#include <contextune/key.hpp>

#include "core/search/tuning_ranks.hpp"
#include "core/trials/stored_winner.hpp"
#include "core/trials/tuning_observer.hpp"

namespace contextune {

/// The times that a site is judged on.
enum class Objective {
  Own,    ///< its own device time in the table, then the region's
  Region  ///< the region's time only: keeps the default during the table
};

/// The configs of a site that processes were trying when they ended abnormally.
struct Suspicions {
  std::vector<std::uint32_t> blamed;    ///< has taken a process down: never tried
  std::vector<std::uint32_t> suspects;  ///< perhaps one of them: each is first tried alone
};

/// A tunable thing at one key.
struct SiteSpec {
  std::string name;
  Key key;
  std::vector<Config> configs;  ///< number 0 is the default; never empty
  Objective objective = Objective::Own;
  std::optional<int> n_warmup{};  ///< absent: the region's
  std::optional<int> n_repeat{};
  std::optional<std::uint32_t> pinned{};  ///< runs this config always, and is not tuned
  bool by_size = false;                   ///< that is what another size has won, or the default
  bool ready = true;                      ///< false: variants are being built; see site_ready
  /// Told to decisions that ranks make in the same order, and tuned only where they are kept in
  /// step; see TuningRanks::keep_in_step. A rank's time includes waiting for the others, so the
  /// shortest one counts, which is that of the rank that came last.
  bool collective = false;
  std::optional<StoredWinner> stored{};  ///< what an earlier run has found out
  bool outdated = false;  ///< it did for other code, or another declaration, so not for this site
  Suspicions suspicions{};
};

/// The measurement to make in a pass.
enum class Measure {
  Nothing,
  Activity,  ///< every launched site's device time, and the region's
  Span       ///< the region's time alone, by one event pair, with CUPTI closed
};

/// Why an entry is not a pass.
enum class Waiting {
  Nothing,  ///< it is a pass, or the tuning is finished
  Results,  ///< of earlier passes
  Builds,   ///< no site is ready yet
  Budget,   ///< trials have cost max_slowdown; runs what is known so far
  Ranks,    ///< the other ranks have not agreed yet; see TuningRanks::await
  Pause     ///< one of them goes on later: there is no pass before the region comes round again
};

/// Names an entry of a region for as long as its results may come. Whoever makes the entries gives
/// each a greater one than all before, whatever tunes it then.
enum class PassId : std::uint64_t {};

/// The config that every site runs in one entry. `configs` is indexed by site; a site beyond its
/// end runs config 0. It stays as it is until the next begin_pass, whatever else is called.
struct PassPlan {
  PassId pass{};  ///< as begin_pass was told
  Stage stage = Stage::Finished;
  Measure measure = Measure::Nothing;
  bool counted = false;
  Waiting waiting = Waiting::Nothing;
  std::span<const std::uint32_t> configs;
  bool agreed = false;  ///< all ranks of lockstep() make it
  /// Reports name the pass by it; passes that ranks agreed on are numbered apart from the others.
  std::uint64_t number = 0;
};

/// The result of one site in a measured pass.
struct SiteResult {
  enum class Status { Measured, LaunchFailed, Missing, TooMuchMemory };
  SiteIndex site = 0;
  std::uint32_t config = 0;  ///< that really ran
  std::uint32_t launches = 0;
  double seconds = 0;  ///< sum over its launches, divided by their number
  Status status = Status::Measured;
  /// At least one launch is timed from the first start to the last end of several pieces of work.
  /// The host's time between them counts, and Measure::Activity makes it longer.
  bool in_pieces = false;
  /// If TooMuchMemory: the memory that NCCL took for the connections that the config needs.
  std::uint64_t connection_bytes = 0;

  /// It is never chosen.
  [[nodiscard]] bool has_failed() const {
    return status == Status::LaunchFailed || status == Status::TooMuchMemory;
  }
};

/// Everything measured in one pass.
struct PassResult {
  PassId pass{};
  std::vector<SiteResult> sites;  ///< after Measure::Span at most those that have failed
  double region_seconds = 0;      ///< not above 0: not known
  double sm_clock_hz = 0;         ///< 0: not known
  bool throttled = false;         ///< nothing of it counts
  bool lost = false;              ///< nothing came, and nothing will

  [[nodiscard]] static PassResult none(PassId pass) {
    PassResult result;
    result.pass = pass;
    result.lost = true;
    return result;
  }
};

/// Where a tuning stands.
struct TuningProgress {
  Stage stage = Stage::Finished;
  std::uint64_t passes = 0;  ///< counted entries
  std::uint64_t entries = 0;
  double seconds =
      0;  ///< from the first entry to the end of the last generation's stages, or to now
};

/// The search in one region as whoever makes its passes sees it: which config every site runs in
/// every entry, from the first entry to the winners. `now` is any monotonic clock in seconds.
///
/// Not thread-safe, but TuningRanks::await: its region serialises calls; only PassPlan::configs may
/// be read by others between begin_pass and end_pass.
class RegionTuning {
 public:
  virtual ~RegionTuning() = default;

  /// A site was launched for the first time: call before that launch, in or between entries.
  /// Returns no_site, and reports it once, beyond max_sites.
  /// @throws Error if it has no configs or pins one that it does not have
  virtual SiteIndex add_site(SiteSpec spec) = 0;

  /// How a site with that key is called in logs: without what only this rank has to do with.
  [[nodiscard]] virtual Key public_key(const Key& key) const { return key; }

  /// All its configs can be launched now but those in `unusable`, which could not be built and
  /// count as failed. Owed for every site that was added unready, even if nothing could be built:
  /// until then finished() is false, and entries may be Waiting::Builds.
  virtual void site_ready(SiteIndex site, std::span<const std::uint32_t> unusable = {}) = 0;

  /// The config computes something else than the default, or may: it counts as failed and is never
  /// chosen.
  /// Call between entries; `detail` is a sentence for the observer. Config 0 cannot be wrong.
  virtual void reject_config(SiteIndex site, std::uint32_t config, const std::string& detail,
                             Rejection why = Rejection::Wrong) = 0;

  /// An entry begins, which TuningRanks::settle permits if it is bounded. If the one before never
  /// ended, it counts as abandoned.
  /// @param pass which all calls about this entry name
  /// @param bounded the program makes the entries (`live`): what a trial costs is its time, and
  ///        it is never kept waiting for a rank that has not spoken
  [[nodiscard]] virtual PassPlan begin_pass(PassId pass, double now, bool bounded = true) = 0;

  /// Passes that are compared as a whole begin on the GPU only when all their work is there: they
  /// are timed by their span, and the noise of the passes before says nothing of theirs.
  virtual void hold_passes(bool held) { (void)held; }

  /// So many entries came and went, with the winners, without begin_pass being told. Ranks that
  /// found the winners in different entries still mean the same entry by a number.
  virtual void skip_entries(std::uint64_t) {}

  /// The entry ended: all its work was issued.
  /// @param launched sites that were launched in it, each once
  /// @param failed those among them whose config could not be launched (and that ran the default
  ///        instead)
  virtual void end_pass(PassId pass, std::span<const SiteIndex> launched,
                        std::span<const SiteIndex> failed, double now) = 0;

  /// Takes the measurements of a pass that has ended, or word that it is lost; once for each whose
  /// plan said so. May come entries later, in any order. Unknown or repeated passes are ignored.
  virtual void add_result(const PassResult& result, double now) = 0;

  /// Adds time that this tuning took beside the work of its passes, such as opening a timer. Where
  /// passes are bounded, it counts as a cost of trials.
  /// @param pass the pass that a trial held up with work that it does only once, as a collective
  ///        that connects: that trial has no time. No effect once the pass has its results.
  virtual void spend(double seconds, std::optional<PassId> pass = std::nullopt) = 0;

  /// Whether the next begin_pass may depend on results that have not come. To ask the GPU's clock
  /// for them halts the program a little, and with it every rank that is to meet it.
  [[nodiscard]] virtual bool wants_results() const { return true; }

  /// The passes whose results are due have not ended within trial_timeout, and perhaps never will:
  /// what they try is never chosen, and the search ends with what it knows. Between entries.
  virtual void overrun(double now) = 0;

  /// The program is about to end: reports, once, what has kept this from being finished if nothing
  /// was said about it yet.
  virtual void explain_unfinished() {}

  /// Nothing is measured, entries run winners. Becomes false again if new sites come up.
  [[nodiscard]] virtual bool finished() const = 0;

  /// The config that each site runs when nothing is tried: the winner, or what is known so far.
  /// Valid until the next call.
  [[nodiscard]] virtual std::span<const std::uint32_t> winners() const = 0;

  [[nodiscard]] virtual TuningProgress progress() const = 0;

  [[nodiscard]] virtual TuningRanks& ranks() = 0;
};

}  // namespace contextune
