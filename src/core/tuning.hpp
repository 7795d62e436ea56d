#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <contextune/config.hpp>
#include <contextune/key.hpp>

#include "core/tuning_observer.hpp"
#include "core/tuning_options.hpp"

namespace contextune {

/// What a site is judged on.
enum class Objective {
  Own,    ///< its own device time in the table, then the region's
  Region  ///< the region's time only: keeps the default during the table
};

/// One tunable thing at one key.
struct SiteSpec {
  std::string name;
  Key key;
  std::vector<Config> configs;  ///< number 0 is the default; never empty
  Objective objective = Objective::Own;
  std::optional<int> n_warmup{};  ///< absent: the region's
  std::optional<int> n_repeat{};
  std::optional<std::uint32_t> pinned{};  ///< runs this config always, and is not tuned
  bool ready = true;                      ///< false: variants are being built; see site_ready
};

/// What to measure in a pass.
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
  Budget    ///< trials have cost max_slowdown; runs what is known so far
};

/// What every site runs in one entry. `configs` is indexed by site; a site beyond its end runs
/// config 0. It stays as it is until the next begin_pass, whatever else is called.
struct PassPlan {
  std::uint64_t pass = 0;  ///< number of this pass; of the next one if this entry is not counted
  Stage stage = Stage::Finished;
  Measure measure = Measure::Nothing;
  bool counted = false;
  Waiting waiting = Waiting::Nothing;
  std::span<const std::uint32_t> configs;
};

/// What one site did in a measured pass.
struct SiteResult {
  enum class Status { Measured, LaunchFailed, Missing };
  SiteIndex site = 0;
  std::uint32_t config = 0;  ///< that really ran
  std::uint32_t launches = 0;
  double seconds = 0;  ///< sum over its launches, divided by their number
  Status status = Status::Measured;
};

/// Everything measured in one pass.
struct PassResult {
  std::uint64_t pass = 0;
  std::vector<SiteResult> sites;  ///< empty after Measure::Span
  double region_seconds = 0;      ///< not above 0: not known
  double sm_clock_hz = 0;         ///< 0: not known
  bool throttled = false;         ///< nothing of it counts
};

/// The search in one region: which config every site runs in every entry, from the first entry to
/// the winners, through table, refine and confirm. Deterministic: a function of the calls made to
/// it. It never looks at a clock: `now` is any monotonic clock in seconds.
///
/// Sites of one generation go through the stages together. Sites that first appear after 16 passes
/// of a generation, or while it is past its table, form the next one once they were launched in two
/// passes; meanwhile they run their default.
///
/// Not thread-safe: its region serialises calls; only PassPlan::configs may be read by others
/// between begin_pass and end_pass. Owns copies of all that it is given but the observer, which
/// must outlive it.
class Tuning {
 public:
  /// @param observer may not be null
  Tuning(const TuningOptions& options, TuningObserver* observer);
  ~Tuning();
  Tuning(const Tuning&) = delete;
  Tuning& operator=(const Tuning&) = delete;

  /// A site was launched for the first time: call before that launch, in or between entries. A site
  /// that is ready takes part in the very pass in which it appears, with config 0. Returns no_site,
  /// and reports it once, beyond max_sites.
  /// @throws Error if it has no configs or pins one that it does not have
  SiteIndex add_site(SiteSpec spec);

  /// All its configs can be launched now but those in `unusable`, which could not be built and
  /// count as failed. Owed for every site that was added unready, even if nothing could be built:
  /// until then finished() is false, and entries may be Waiting::Builds.
  void site_ready(SiteIndex site, std::span<const std::uint32_t> unusable = {});

  /// The config computes something else than the default: it counts as failed and is never chosen.
  /// Call between entries; `detail` is a sentence for the observer. Config 0 cannot be wrong.
  void reject_config(SiteIndex site, std::uint32_t config, const std::string& detail);

  /// An entry begins. If the one before never ended, it counts as abandoned.
  /// @param bounded max_slowdown applies: what a trial costs is the program's time
  [[nodiscard]] PassPlan begin_pass(double now, bool bounded = true);

  /// The entry ended: all its work was issued.
  /// @param launched sites that were launched in it, each once
  /// @param failed those among them whose config could not be launched (and that ran the default
  ///        instead)
  void end_pass(std::uint64_t pass, std::span<const SiteIndex> launched,
                std::span<const SiteIndex> failed, double now);

  /// What was measured in a pass that has ended; once for each whose plan said so. May come entries
  /// later, in any order. Unknown or repeated passes are ignored.
  void add_result(const PassResult& result, double now);

  /// Nothing will come for that pass.
  void lose_result(std::uint64_t pass, double now);

  /// Every generation is through: nothing is measured, entries run winners. Becomes false again if
  /// a new generation of sites comes up.
  [[nodiscard]] bool finished() const;

  [[nodiscard]] Stage stage() const;

  /// The config that each site runs when nothing is tried: the winner, or what is known so far.
  /// Valid until the next call.
  [[nodiscard]] std::span<const std::uint32_t> winners() const;

  [[nodiscard]] std::size_t num_sites() const;
  [[nodiscard]] const SiteSpec& site(SiteIndex site) const;

  /// Counted passes, and all entries, so far.
  [[nodiscard]] std::uint64_t passes() const;
  [[nodiscard]] std::uint64_t entries() const;

  /// Seconds from the first entry to the end of the last generation's stages, or to now.
  [[nodiscard]] double tuning_seconds() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace contextune
