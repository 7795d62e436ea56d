#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "intercept/collectives/region_collectives.hpp"
#include "intercept/replay/host_watch.hpp"
#include "intercept/replay/recorder.hpp"
#include "intercept/replay/region_access.hpp"
#include "intercept/replay/replay_memory.hpp"
#include "intercept/replay/replay_ranks.hpp"
#include "intercept/replay/replayer.hpp"
#include "intercept/site/launch_region.hpp"
#include "intercept/tuner/search.hpp"
#include "intercept/tuner/trial_launch.hpp"

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
  /// @param collectives of the region; null: NCCL is not seen
  RegionReplay(LaunchRegion& region, const RegionServices& services, const Options& options,
               Search& search, SiteTable& table, RegionCollectives* collectives);
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
  [[nodiscard]] bool is_tidy() const noexcept { return memory_ == nullptr && unneeded_.empty(); }

  /// The context is about to be destroyed, or is gone.
  void forget_context(CUcontext context, bool gone) noexcept;

  /// The visit ends: tunes, unless something stands in the way.
  void end_visit() noexcept;

 private:
  /// Sites with the configs that they are to run; the others run their default.
  using Config = std::pair<const Site*, std::uint32_t>;
  using Trials = std::vector<Config>;

  /// An obstacle, as an exception from wherever it is found.
  struct Declined {
    Recording::Obstacle obstacle;
  };
  [[noreturn]] static void decline_for(FallbackReason reason, std::string text,
                                       bool retry = false) {
    throw Declined{{reason, std::move(text), retry}};
  }

  static constexpr double idle_seconds = 10;
  static constexpr double leave_seconds = 1;  ///< for other threads to come back from the driver
  static constexpr double step_seconds = 60;  ///< of copying, hashing, or one replay
  /// For a replay that waits for other ranks. A rank that stands still for a while keeps them in
  /// NCCL without contextune, too.
  static constexpr double together_seconds = 600;

  void find_ranks();
  void record(bool thread_bound);
  /// Finds the context of this thread, whose GPU is idle then.
  void find_context();
  /// Throws Declined where nothing is tuned any more.
  void go_on_unless_stopped() const;
  void wait_at_begin(double seconds);
  /// Variables of modules that the region may have nothing to do with: its kernels can have their
  /// addresses from those of the modules.
  void note_variables();
  void prepare();
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
  [[noreturn]] void learn();
  void tune(Replayer& replayer);
  void screen(Replayer& replayer);
  // region_replay_compare.cpp
  void look_at_code(const Replayer& replayer);
  /// After these were right on the visit's own memory: are they on other contents?
  void judge(Replayer& replayer, const Trials& tried, std::uint32_t number);
  /// The same of those alone of which the code is known, and of those of which it is not.
  void judge_known(Replayer& replayer, const Trials& right, std::uint32_t number);
  void judge_unknown(Replayer& replayer, const Trials& right, std::uint32_t number);
  /// @param filled what holds other contents. Drops the configs that are wrong there.
  [[nodiscard]] bool are_right_when_filled(Replayer& replayer, Trials& trials,
                                           const std::vector<gpu::MemoryRange>& filled,
                                           std::uint32_t number);
  [[nodiscard]] bool is_right_on_filled(Replayer& replayer);
  void drop_wrong(Trials& trials) const;
  /// Those of the ranges that have been copied.
  [[nodiscard]] std::vector<gpu::MemoryRange> copied(
      const std::vector<gpu::MemoryRange>& ranges) const;
  [[nodiscard]] bool has_unknown_code(const Config& one) const;
  /// Whether all that the site writes is among `filled`.
  [[nodiscard]] bool is_covered(const Site& site,
                                const std::vector<gpu::MemoryRange>& filled) const;
  [[nodiscard]] std::string why_not_covered(const Config& one) const;
  /// Those of which it is not known yet whether they are right.
  [[nodiscard]] Trials unjudged(const Replayer& replayer) const;
  /// Whether there are any to be timed.
  [[nodiscard]] bool has_judged(const Replayer& replayer) const;
  /// Whether the search has to wait for a visit that finds other contents. Leaves out what has
  /// waited long enough, or would keep others waiting.
  [[nodiscard]] bool waits_for_other_contents(const Replayer& replayer);
  void reject(const Site& site, std::uint32_t config);
  void screen_suspects(Replayer& replayer);
  void screen_pass(Replayer& replayer);
  /// Before the first pass of a visit: whether one may come right after another.
  void find_whether_it_repeats(Replayer& replayer);
  /// Why the region cannot be run on what it has left, as a clause; "": it can.
  [[nodiscard]] std::string why_not_on_own_results(const Replayer& replayer) const;
  /// Whether it leaves the same then, to the last bit.
  [[nodiscard]] bool computes_the_same_again(Replayer& replayer);
  /// Runs what the pass will run, so that the pass comes after it as entries of the program do.
  void follow_itself(Replayer& replayer);
  [[nodiscard]] static Trials trials_of(const Replayer& replayer,
                                        const std::function<std::uint32_t(const Site&)>& config_of);
  /// Finds out which of the configs that a wrong pass ran are wrong, and rejects them.
  void blame(Replayer& replayer, const Trials& tried);
  /// The same where other ranks may have tried what is wrong.
  void blame_together(Replayer& replayer, const Trials& tried);
  /// At the next visit: one of them is wrong, and there is no time now to find out which.
  void look_again_at(const Trials& tried);
  /// Once more with these configs, and the defaults elsewhere.
  void run_with(Replayer& replayer, const Trials& trials);
  /// Whether the run that has ended left what the region left.
  [[nodiscard]] bool is_right(Replayer& replayer);
  /// The same of a run with these configs, and the defaults elsewhere; here, and on all ranks.
  [[nodiscard]] bool is_right_here(Replayer& replayer, const Trials& trials);
  [[nodiscard]] bool is_right_with(Replayer& replayer, const Trials& trials);
  /// The findings of all ranks that repeat this together, or of this one alone.
  [[nodiscard]] ReplayRanks::Findings exchange(bool right, std::uint32_t number = 0);
  void await_ranks(ReplayRanks::Run run);
  void finish_builds();
  void finish_visit() noexcept;
  /// @param wanted the program is about to take so many bytes
  void drop_memory(std::optional<std::size_t> wanted = std::nullopt) noexcept;
  /// Whether so much of the device's memory may not be there.
  [[nodiscard]] bool lacks(std::size_t bytes) const noexcept;
  void note_own_bytes() noexcept;
  /// Whether the replay has to end before the tuning does: on all ranks alike.
  [[nodiscard]] bool must_stop() const;
  [[nodiscard]] bool must_stop_here() const;
  void decline(const Recording::Obstacle& obstacle) noexcept;
  /// Memory cannot be put back as the region left it: stops the process, unless that is at its end.
  void memory_is_lost(const std::string& why) noexcept;
  void write_line(const Replayer& replayer, double seconds) noexcept;
  [[nodiscard]] std::optional<Recording::Obstacle> look_at(const KnownKernel& kernel);
  [[nodiscard]] std::vector<gpu::MemoryRange> footprint();
  [[nodiscard]] gpu::BlockStore::Limits copy_limits() const;
  [[nodiscard]] Replayer::Patience patience() const;

  LaunchRegion& region_;
  const RegionServices& services_;
  const Options options_;
  const ResultTolerance tolerance_;
  Search& search_;
  SiteTable& table_;
  RegionCollectives* const collectives_;
  std::unique_ptr<ReplayRanks> ranks_;  ///< null: what is repeated has to do with this rank alone
  bool together_ = false;               ///< what is under way is repeated by all of them
  bool told_to_stop_ = false;
  std::optional<Recording::Obstacle> refusal_;  ///< the others wait to be told
  CUcontext context_ = nullptr;
  std::optional<HostWatch> host_;
  int device_ = -1;
  std::mutex memory_mutex_;  ///< for what gives copies back, which any thread may want
  std::size_t own_bytes_ = 0;
  std::unique_ptr<ReplayMemory> memory_;
  std::vector<std::unique_ptr<ReplayMemory>> unneeded_;  ///< to be freed when the GPU is idle
  std::vector<gpu::MemoryRange> learned_;  ///< what visits wrote that could not be copied whole
  std::set<Config> screened_;              ///< configs that were looked at
  std::set<Config> wrong_;
  /// The changes of the visits in which a config was right.
  struct Looks {
    std::set<std::uint64_t> changes;
    int number = 0;
  };
  std::map<Config, Looks> looks_;
  RegionAccess access_;                 ///< of the visit under way
  std::vector<gpu::MemoryRange> free_;  ///< the copied part of that
  bool fills_ = false;                  ///< results are compared on other contents, too
  /// Memory that holds them in this run; absent: it is on the visit's own.
  std::optional<std::vector<gpu::MemoryRange>> filled_;
  std::uint64_t fill_seed_ = 0;
  bool has_reference_ = false;  ///< of these
  std::uint64_t visits_ = 0;
  int busy_drops_ = 0;  ///< times that the GPU was not idle for it
  std::uint64_t replays_ = 0;
  std::optional<bool> repeats_;  ///< the visit under way does; absent: there was no pass yet
  std::string why_restored_;     ///< if not
  bool recording_ = false;
  std::atomic<bool> replaying_{false};
  bool given_up_ = false;
};

}  // namespace contextune::intercept
