#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>

#include "intercept/program/thread_state.hpp"

namespace contextune::intercept {

class LaunchRegion;
struct RegionServices;

/// Told of the entries of a region that may be passes: one at a time. Nothing throws.
class EntryObserver {
 public:
  EntryObserver(const EntryObserver&) = delete;
  EntryObserver& operator=(const EntryObserver&) = delete;

  /// The one entry that may be a pass.
  /// @param thread_bound it is this thread's; else the process's
  virtual void entered(bool thread_bound) noexcept = 0;
  /// In place of `entered`, where an entry has nothing to do but to be counted: neither waits nor
  /// writes. False: it has.
  [[nodiscard]] virtual bool pass_entry() noexcept { return false; }
  virtual void left() noexcept = 0;
  /// In place of `left`, on another thread: that of the entry has ended.
  virtual void abandoned() noexcept {}

 protected:
  EntryObserver() = default;
  ~EntryObserver() = default;
};

/// The entries of a region: which one counts, so that it may be a pass, and what is nested in what.
/// While one is open, launches are the region's. Any thread; nothing throws.
class RegionEntries {
 public:
  static constexpr std::uint64_t api_mark = 1;
  static constexpr std::uint64_t graph_mark = 4;
  static constexpr std::uint64_t replay_mark = 5;

  /// @param takes_launches false: of collectives only, all else is as if it were not open
  RegionEntries(LaunchRegion& region, EntryObserver& observer, const RegionServices& services,
                bool takes_launches) noexcept
      : region_(region),
        observer_(observer),
        services_(services),
        takes_launches_(takes_launches) {}

  /// Entries of one thread, opened by the API or, with `mark`, by an NVTX range.
  /// @param counts_already it was claimed
  void begin_on_thread(std::uint64_t mark, bool counts_already) noexcept;
  void end_on_thread(std::uint64_t mark) noexcept;
  /// A frame that begin_on_thread made was closed.
  void ended(const EntryFrame& frame) noexcept;

  /// Entries of the whole process: several at a time are one. Any threads, at the same time, too;
  /// none waits for what another's entry or its end takes.
  void begin_in_process() noexcept;
  void end_in_process() noexcept;
  /// The one that is open, if any, ends, and the next begins.
  void begin_next_in_process() noexcept;
  [[nodiscard]] bool is_in_process() const noexcept {
    return process_entries_.load(std::memory_order_relaxed) != 0;
  }

  /// Whether there is one that may be a pass, and the program has not left any.
  [[nodiscard]] bool is_first_open() const noexcept {
    return occupied_by_.load(std::memory_order_acquire) != 0 &&
           !was_left_.load(std::memory_order_relaxed);
  }

  /// From now on this thread's counts, or the process's.
  /// @param thread_bound it ends with this thread at the latest
  /// @return false: another one counts
  [[nodiscard]] bool claim(bool thread_bound = true) noexcept;
  void release() noexcept { occupied_by_.store(0, std::memory_order_release); }

  /// The `region` line of the log, once.
  void say_first() noexcept;

 private:
  /// @param counts whether it was claimed
  void end_process_entry(bool counts) noexcept;
  /// Begins the entry that process_entry_begins_ is about.
  void begin_process_entry() noexcept;
  void show() noexcept;
  void unshow() noexcept;

  LaunchRegion& region_;
  EntryObserver& observer_;
  const RegionServices& services_;
  const bool takes_launches_;
  std::atomic<pid_t> occupied_by_{0};  ///< whose entry counts; 0: nobody's, -1: the process's
  std::atomic<bool> was_left_{false};  ///< an entry that counts
  std::atomic<bool> said_{false};

  std::mutex process_mutex_;  ///< held for the flags below, never for what they lead to
  std::atomic<int> process_entries_{0};
  bool process_entry_counts_ = false;   ///< the one that is open has been claimed, or is being so
  bool process_entry_begins_ = false;   ///< a thread claims one: no other is claimed meanwhile
  bool process_entry_is_over_ = false;  ///< that one, before it was claimed: its thread ends it
};

}  // namespace contextune::intercept
