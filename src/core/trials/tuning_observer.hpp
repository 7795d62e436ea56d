#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/coordination/coordinator.hpp"
#include "core/trials/trial.hpp"
#include "core/value/fallback_reason.hpp"

namespace contextune {

using SiteIndex = std::uint32_t;
/// No site: beyond max_sites. Runs its default, and is never passed back.
inline constexpr SiteIndex no_site = 0xffffffffU;

enum class Stage { Table, Refine, Confirm, Finished };
[[nodiscard]] std::string_view to_string(Stage stage);

/// Why a site ended with the config it has.
enum class WinnerReason {
  Fastest,    ///< lowest cost in the table
  Margin,     ///< the default: nothing beat it by more than the noise
  Only,       ///< there was one config
  Pinned,     ///< by `force`
  Region,     ///< chosen on the region's time
  Failed,     ///< the default: no other config could run
  NoSamples,  ///< the default: nothing was measured, or too seldom
  Dropped,    ///< the default: the region was not shown to be faster with the winner
  Stored,     ///< an earlier run's, from the store
  Nearest,    ///< of a size that was not measured: what the nearest one has won, or the default
  SoFar,      ///< best of what was measured of a tuning that has not come to its end
};
[[nodiscard]] std::string_view to_string(WinnerReason reason);

struct TrialEvent {
  std::uint64_t pass = 0;
  SiteIndex site = 0;
  std::uint32_t config = 0;
  int iteration = 0;  ///< below 0: warm-up
  std::uint32_t launches = 0;
  double seconds = 0;  ///< NaN unless measured
  TrialStatus status = TrialStatus::Measured;
  bool throttled = false;  ///< measured, and does not count
  double sm_clock_hz = 0;  ///< 0: not known
  bool agreed = false;     ///< all ranks made the pass
};

struct WinnerEvent {
  SiteIndex site = 0;
  std::uint32_t config = 0;
  double seconds = 0;          ///< the winner's cost; NaN if not measured
  double default_seconds = 0;  ///< config 0's cost; NaN if not measured
  WinnerReason reason = WinnerReason::Fastest;
  bool cut_short = false;  ///< the limit on passes or time came before it was shown to be one
  /// Those that have the site, ascending; empty: all that it is tuned with, or this process alone.
  std::vector<std::uint32_t> ranks{};
};

enum class ConfirmVerdict {
  Kept,
  Reduced,   ///< kept without those winners that had to be dropped
  Defaults,  ///< not shown to be faster: all winners dropped
  Skipped,   ///< nothing to confirm, or switched off
};
[[nodiscard]] std::string_view to_string(ConfirmVerdict verdict);

struct ConfirmEvent {
  ConfirmVerdict verdict = ConfirmVerdict::Skipped;
  double before_seconds = 0;  ///< region with all defaults; NaN unless measured
  double after_seconds = 0;   ///< region with the last try's winners
  double gain = 0;            ///< share of the defaults' time saved; mean of pairs
  double bound = 0;           ///< its one-sided 95 % lower bound
  int pairs = 0;              ///< of the last try
  int tries = 0;
  std::vector<double>
      gains{};  ///< of those pairs, as they ran; more than there is room for are left out
};

/// An event tells of no more pairs than that.
inline constexpr std::size_t most_told_gains = 400;

/// A winner was left out of those that were shown together, to see whether it helps.
struct LeftOutEvent {
  SiteIndex site = 0;
  std::uint32_t config = 0;    ///< its winner
  bool kept = false;           ///< else its site goes back to its default
  double without_seconds = 0;  ///< region with the default here and all other winners
  double with_seconds = 0;     ///< region with all winners
  double gain = 0;             ///< share of `without_seconds` saved; mean of the pairs
  double bound = 0;            ///< its one-sided 95 % lower bound
  int pairs = 0;
};

/// A question that ranks decided together, or did not.
struct SyncEvent {
  std::uint64_t group = 0;       ///< names the ranks that were asked, the same on all of them
  std::uint32_t group_rank = 0;  ///< this one's place among them
  std::uint64_t question = 0;    ///< counts up within the group
  std::uint64_t hash = 0;        ///< of the decision; looked at only if it was committed
  double wait_seconds = 0;       ///< that this rank was kept waiting
  double others_seconds = 0;     ///< of those, for ranks that had not spoken; if it was committed
  Verdict verdict = Verdict::Open;
  std::string why;  ///< why not, a sentence; looked at only if it was not committed
};

/// The reports of a tuning while it goes on: the port of the rank log. Called from inside calls of
/// Tuning, in its thread; must not call back into it, and should not throw.
class TuningObserver {
 public:
  virtual ~TuningObserver() = default;
  virtual void stage(Stage /*stage*/, std::uint32_t /*generation*/) {}
  virtual void trial(const TrialEvent& /*event*/) {}
  /// Called for each site of a generation when the generation is through.
  virtual void winner(const WinnerEvent& /*event*/) {}
  virtual void confirm(const ConfirmEvent& /*event*/) {}
  /// Before the generation's `confirm`.
  virtual void left_out(const LeftOutEvent& /*event*/) {}
  virtual void sync(const SyncEvent& /*event*/) {}
  /// `site` is no_site where the whole region is meant. `text`: a sentence about this case.
  virtual void fallback(FallbackReason /*reason*/, SiteIndex /*site*/,
                        const std::string& /*text*/) {}
};

}  // namespace contextune
