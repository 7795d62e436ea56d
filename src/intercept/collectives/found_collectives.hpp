#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "core/submission/period_finder.hpp"
#include "intercept/submission/unanswered_runs.hpp"
#include "preload/contextune_abi.h"

namespace contextune::intercept {

class LaunchRegion;
class ReplayGate;

/// Finds the stretch that the ranks of a program repeat together, from its collectives alone.
/// Collectives come in one order on all ranks of a communicator. So all ranks find the same stretch
/// at the same call, without a word between them. Each time it begins, an entry of its region does.
///
/// Any thread; nothing throws.
class FoundCollectives {
 public:
  using Make = std::function<LaunchRegion*(const UnansweredRuns& runs)>;

  /// Collectives of a stretch before its first entry. What tries each size a few times, as a
  /// benchmark does, goes on to the next one before there could be an answer, and would pay for the
  /// question.
  static constexpr std::uint64_t least_repeated = 256;

  /// Begins to look.
  /// @param make     the region; asked for once, with the first stretch. Null: there is none
  /// @param measures told at the beginning of each entry that is measured
  /// @param store    outlives it
  /// @param gate     outlives it
  void start(Make make, std::function<void()> measures, ProcessStore& store,
             ReplayGate& gate) noexcept;

  [[nodiscard]] bool looks() const noexcept { return looks_.load(std::memory_order_relaxed); }

  /// The program is about to call NCCL.
  void see(const contextune_nccl_call& call) noexcept;

  /// Collectives of the stretch that has come to most of them; 0: no stretch was found. Not counted
  /// further than least_repeated.
  [[nodiscard]] std::uint64_t most_repeated() const noexcept {
    return most_repeated_.load(std::memory_order_relaxed);
  }

  /// The region, while an entry of it is open; else null.
  [[nodiscard]] LaunchRegion* open_region() const noexcept {
    return open_.load(std::memory_order_acquire);
  }

 private:
  enum class Action { Nothing, Begin, End };

  [[nodiscard]] Action look(const contextune_nccl_call& call);
  [[nodiscard]] std::uint64_t token_of(const contextune_nccl_call& call) noexcept;
  void begin_entry();
  void end_entry() noexcept;
  /// The region has an answer, or there is none to be had.
  void look_no_more() noexcept;

  std::atomic<bool> looks_{false};
  std::atomic<LaunchRegion*> open_{nullptr};
  std::atomic<std::uint64_t> most_repeated_{0};  ///< written under the mutex
  std::atomic<bool> begins_{false};  ///< a thread begins an entry: another one's is none

  std::mutex mutex_;
  Make make_;
  std::function<void()> measures_;
  ProcessStore* store_ = nullptr;
  ReplayGate* gate_ = nullptr;
  bool sees_groups_ = false;            ///< a collective came in one, so their beginnings count
  std::optional<UnansweredRuns> runs_;  ///< from the first stretch on
  LaunchRegion* region_ = nullptr;
  std::uint64_t entries_ = 0;
  std::unique_ptr<PeriodFinder> finder_;
  std::array<const void*, 64> communicators_{};  ///< in the order of their first use
  std::uint32_t period_ = 0;
  std::uint32_t begun_ = 0;  ///< periods since it is followed
  bool is_due_ = false;      ///< an entry begins before the next call that is in no group
};

}  // namespace contextune::intercept
