#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "intercept/host_watch.hpp"
#include "intercept/launch_region.hpp"
#include "intercept/recorder.hpp"
#include "intercept/replay_memory.hpp"
#include "intercept/replayer.hpp"
#include "intercept/search.hpp"
#include "intercept/trial_launch.hpp"

namespace contextune::intercept {

/// Tunes a region of a program that nobody can run again: records one visit of it, and at the
/// visit's end repeats the recording until the search is over, with the memory put back before each
/// pass and left as the visit left it. What cannot be repeated exactly is declined: the visit was
/// then one like any other. Called by the thread that enters and leaves; nothing throws.
class RegionReplay {
 public:
  RegionReplay(LaunchRegion& region, const RegionServices& services, const Options& options,
               Search& search, SiteTable& table);
  ~RegionReplay();

  /// Whether a visit may still be worth a recording. False: the region is tuned live.
  [[nodiscard]] bool wanted() const noexcept { return !given_up_; }

  /// A visit begins.
  /// @return whether it is being recorded
  [[nodiscard]] bool begin_visit(bool thread_bound) noexcept;
  [[nodiscard]] bool recording() const noexcept { return recording_; }

  /// Frees what could not be freed when a visit ended; at a later entry of the region.
  void tidy() noexcept {
    if (!recording_ && (memory_ != nullptr || !unneeded_.empty())) drop_memory();
  }

  /// The context is about to be destroyed.
  void forget_context(CUcontext context) noexcept;

  /// The recorded visit ends: tunes, unless something stands in the way.
  void end_visit() noexcept;

 private:
  /// Sites with the configs that they are to run; the others run their default.
  using Trials = std::vector<std::pair<const Site*, std::uint32_t>>;

  /// What stands in the way, as an exception from wherever it is found.
  struct Declined {
    Recording::Obstacle obstacle;
  };
  [[noreturn]] static void decline_for(FallbackReason reason, std::string text,
                                       bool retry = false) {
    throw Declined{{reason, std::move(text), retry}};
  }

  /// Of this thread, whose GPU is idle then.
  void find_context();
  void wait_at_begin();
  /// Variables of modules that the region may have nothing to do with: its kernels can have their
  /// addresses from those of the modules.
  void note_variables();
  void prepare();
  void wait_for_others() noexcept;
  void carry_out(Recording recording);
  [[noreturn]] void learn();
  void tune(Replayer& replayer);
  void screen(Replayer& replayer);
  /// Finds out which of the configs that a wrong pass ran are wrong, and rejects them.
  void blame(Replayer& replayer, const Trials& tried);
  /// At the next visit: one of them is wrong, and there is no time now to find out which.
  void look_again_at(const Trials& tried);
  /// Whether the run that has ended left what the region left.
  [[nodiscard]] bool is_right(Replayer& replayer);
  /// The same of a run with these configs, and the defaults elsewhere.
  [[nodiscard]] bool is_right_with(Replayer& replayer, const Trials& trials);
  void finish_builds();
  void finish_visit() noexcept;
  /// @param wanted the program is about to take memory
  void drop_memory(bool wanted = false) noexcept;
  void note_own_bytes() noexcept;
  [[nodiscard]] bool must_stop() const;
  void decline(const Recording::Obstacle& obstacle) noexcept;
  [[noreturn]] void stop_process(const std::string& why) noexcept;
  void write_line(const Replayer& replayer, double seconds) noexcept;
  [[nodiscard]] std::optional<Recording::Obstacle> look_at(const KnownKernel& kernel);
  [[nodiscard]] std::vector<gpu::MemoryRange> footprint();
  [[nodiscard]] gpu::BlockStore::Limits copy_limits() const;

  LaunchRegion& region_;
  const RegionServices& services_;
  const double budget_bytes_;
  const ResultTolerance tolerance_;
  Search& search_;
  SiteTable& table_;
  CUcontext context_ = nullptr;
  std::optional<HostWatch> host_;
  int device_ = -1;
  std::mutex memory_mutex_;  ///< for what gives copies back, which any thread may want
  std::size_t own_bytes_ = 0;
  std::unique_ptr<ReplayMemory> memory_;
  std::vector<std::unique_ptr<ReplayMemory>> unneeded_;  ///< to be freed when the GPU is idle
  std::vector<gpu::MemoryRange> learned_;  ///< what visits wrote that could not be copied whole
  std::set<std::pair<const Site*, std::uint32_t>> screened_;  ///< configs that were looked at
  std::uint64_t visits_ = 0;
  int busy_drops_ = 0;  ///< times that the GPU was not idle for it
  std::uint64_t replays_ = 0;
  bool recording_ = false;
  bool given_up_ = false;
};

}  // namespace contextune::intercept
