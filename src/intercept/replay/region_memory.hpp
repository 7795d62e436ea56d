#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "intercept/program/kernel_table.hpp"
#include "intercept/recording/host_watch.hpp"
#include "intercept/recording/recording.hpp"
#include "intercept/replay/replay_memory.hpp"
#include "intercept/site/launch_region.hpp"

namespace contextune::intercept {

/// The memory that a region may write, over its visits: copies of the device's, which are kept
/// until they can be freed, and a watch on the host's. Belongs to the thread that visits, but for
/// drop() and forget_context().
class RegionMemory {
 public:
  static constexpr double idle_seconds = 10;  ///< for the GPU to become idle
  static constexpr double step_seconds = 60;  ///< of copying, hashing, or one replay

  RegionMemory(const RegionServices& services, const Options& options,
               const ResultTolerance& tolerance)
      : services_(services), options_(options), tolerance_(tolerance) {}
  RegionMemory(const RegionMemory&) = delete;
  RegionMemory& operator=(const RegionMemory&) = delete;

  /// Takes the context of this thread to be the visit's. @throws Declined if there is none
  void find_context();
  [[nodiscard]] CUcontext context() const noexcept { return context_; }
  /// Variables of modules that the region may have nothing to do with: its kernels can have their
  /// addresses from those of the modules. @throws Declined
  void note_variables();
  /// Copies what the visit that begins may write. @throws Declined, or Error
  void prepare();
  /// Of a kernel that the visit launches for the first time, before that: adds what it may write.
  /// @return what stands in the way; absent: nothing
  [[nodiscard]] std::optional<Recording::Obstacle> look_at(const KnownKernel& kernel);
  /// The visit ends: finds out what it wrote. @throws Declined, MixedMemory or Error
  void finish();

  /// Of the visit under way, from prepare() to end_visit().
  [[nodiscard]] ReplayMemory& copies() noexcept { return *memory_; }
  [[nodiscard]] HostWatch& host() noexcept { return *host_; }
  void end_watch() noexcept { host_.reset(); }
  [[nodiscard]] gpu::BlockStore::Limits copy_limits() const;
  /// Nobody drops what is in use.
  void set_in_use(bool in_use) noexcept { in_use_.store(in_use); }

  /// Any thread: frees what can be freed now.
  /// @param wanted the program is about to take so many bytes
  /// @return why no more copies are to be made; absent: they may be
  std::optional<Recording::Obstacle> drop(std::optional<std::size_t> wanted) noexcept;
  [[nodiscard]] bool is_dropped() const noexcept { return memory_ == nullptr && unneeded_.empty(); }
  /// Any thread: the context is about to be destroyed, or is gone.
  void forget_context(CUcontext context, bool gone) noexcept;
  void note_own_bytes() noexcept;

 private:
  [[nodiscard]] std::vector<gpu::MemoryRange> footprint();
  [[noreturn]] void learn();
  /// Whether so much of the device's memory may not be there.
  [[nodiscard]] bool lacks(std::size_t bytes) const noexcept;

  const RegionServices& services_;
  const Options& options_;
  const ResultTolerance& tolerance_;
  CUcontext context_ = nullptr;
  int device_ = -1;
  std::optional<HostWatch> host_;
  std::mutex memory_mutex_;  ///< for what gives copies back, which any thread may want
  std::size_t own_bytes_ = 0;
  std::unique_ptr<ReplayMemory> memory_;
  std::vector<std::unique_ptr<ReplayMemory>> unneeded_;  ///< to be freed when the GPU is idle
  std::vector<gpu::MemoryRange> learned_;  ///< what visits wrote that could not be copied whole
  int busy_drops_ = 0;                     ///< times that the GPU was not idle for it
  std::atomic<bool> in_use_{false};
};

}  // namespace contextune::intercept
