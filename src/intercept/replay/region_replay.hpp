#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "intercept/recording/recorder.hpp"
#include "intercept/replay/config_comparison.hpp"
#include "intercept/replay/region_memory.hpp"
#include "intercept/replay/replayer.hpp"
#include "intercept/replay/visit_ranks.hpp"
#include "intercept/replay/visit_trials.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/tuner/search.hpp"

namespace contextune::intercept {

/// Tunes a region of a program that nobody can run again. It records one visit of the region, and
/// at the visit's end repeats the recording until the search is over. Memory is put back before
/// each pass and left as the visit left it. A visit that cannot be repeated exactly is declined,
/// and was then one like any other. Called by the thread that enters and leaves; nothing throws.
///
/// Where this process has communicators with others, their ranks vote at the end of each visit, and
/// repeat it together run by run if there are collectives in it.
class RegionReplay {
 public:
  RegionReplay(LaunchRegion& region, const RegionServices& services, const Options& options,
               Search& search, SiteTable& table);
  ~RegionReplay();

  /// Whether a visit may still be worth a recording. False: the region is tuned live.
  [[nodiscard]] bool wanted() const noexcept { return !given_up_; }

  /// A visit begins.
  /// @return whether it is being recorded, or other ranks are to be told that it is not:
  ///         end_visit() is due then, and nothing else is done about it
  [[nodiscard]] bool begin_visit(bool thread_bound) noexcept;
  [[nodiscard]] bool in_visit() const noexcept { return recording_ || refusal_; }

  /// Frees what could not be freed when a visit ended; at a later entry of the region.
  void tidy() noexcept {
    if (!in_visit() && !is_tidy()) drop_memory();
  }
  [[nodiscard]] bool is_tidy() const noexcept { return memory_.is_dropped(); }

  /// The context is about to be destroyed, or is gone.
  void forget_context(CUcontext context, bool gone) noexcept;

  /// The visit ends: tunes, unless something stands in the way.
  void end_visit() noexcept;

 private:
  void find_ranks();
  void record(bool thread_bound);
  /// Finds the context of this thread, whose GPU is idle then.
  void find_context();
  /// Throws Declined where nothing is tuned any more.
  void go_on_unless_stopped() const;
  void wait_at_begin(double seconds);
  void wait_for_others() noexcept;
  void repeat(Recording recording);
  /// Whether what was recorded can be repeated here, and what it left is kept.
  void check(const Recording& recording);
  /// The same everywhere. @param own what stands in the way here
  /// @throws Declined unless it is to be repeated
  void vote(const Recording& recording, std::optional<Recording::Obstacle> own);
  void carry_out(Recording recording);
  /// Work that a pass had issued before it failed may still be under way, and would write over
  /// memory that is put back.
  /// @throws StuckReplay if it does not end
  void wait_after_failure(Replayer& replayer);
  void finish_visit() noexcept;
  /// @param wanted the program is about to take so many bytes
  void drop_memory(std::optional<std::size_t> wanted = std::nullopt) noexcept;
  void decline(const Recording::Obstacle& obstacle) noexcept;
  /// Memory cannot be put back as the region left it: stops the process, unless that is at its end.
  void memory_is_lost(const std::string& why) noexcept;
  void write_line(const Replayer& replayer, const VisitTrials& trials, double seconds) noexcept;
  [[nodiscard]] Replayer::Patience patience() const;

  LaunchRegion& region_;
  const RegionServices& services_;
  const Options options_;
  const ResultTolerance tolerance_;
  Search& search_;
  SiteTable& table_;
  VisitRanks ranks_;
  RegionMemory memory_;
  ConfigComparison comparison_;
  std::optional<Recording::Obstacle> refusal_;  ///< the others wait to be told
  std::uint64_t visits_ = 0;
  std::uint64_t replays_ = 0;
  bool recording_ = false;
  bool given_up_ = false;
};

}  // namespace contextune::intercept
