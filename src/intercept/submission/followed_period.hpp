#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/submission/found_region.hpp"
#include "gpu/driver/driver.hpp"
#include "intercept/program/kernel_table.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/submission/program_steps.hpp"

namespace contextune::intercept {

/// The relation of a step to the period whose entries make blocks.
enum class FollowedStep : std::uint8_t {
  Ignored,  ///< by a thread that is not followed
  GoesOn,
  Broken,   ///< the open entry is void
  Deserts,  ///< the thread that was followed is absent, and none is followed now
};

/// The period of the thread whose entries make blocks: the first thread that begins one leads until
/// it is absent. Serialised by the caller unless a function says otherwise.
class FollowedPeriod {
 public:
  FollowedPeriod(const gpu::Driver& driver, KernelTable& kernels)
      : driver_(driver), kernels_(kernels) {}

  /// Whether this thread leads. Any thread.
  [[nodiscard]] bool leads_here() const noexcept {
    return leader_.load(std::memory_order_relaxed) == this_thread_number();
  }
  /// A step of the leader was not seen. Any thread.
  void miss() noexcept { missed_.store(true, std::memory_order_relaxed); }
  /// Whether one was missed since the last time.
  [[nodiscard]] bool take_missed() noexcept {
    return missed_.exchange(false, std::memory_order_relaxed);
  }

  /// A step of this thread. Throws.
  [[nodiscard]] FollowedStep see(std::uint64_t token, bool is_launch);
  /// Whether an entry begins with this launch, and not with an earlier one.
  [[nodiscard]] bool take_beginning() noexcept { return std::exchange(begins_, false); }
  /// An entry begins: this thread leads.
  /// @param function that is launched; null: a graph is
  /// @return whether another period is followed than before
  [[nodiscard]] bool follow(CUfunction function) noexcept;
  /// The function that this thread launches may be the first that is known of the period.
  void see_function(CUfunction function) noexcept {
    if (first_function_ == nullptr && leader_ == seen_->number) first_function_ = function;
  }
  /// Entries last too long: whether one that repeats inside of them is followed from now on.
  [[nodiscard]] bool keep_inside() noexcept { return seen_->finder->keep_inside(); }

  /// The finder's name for it; 0: none.
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] bool is_found() const noexcept { return leader_ != 0; }
  /// Entries that begin between two breaks; 0: it was not broken yet.
  [[nodiscard]] std::uint64_t unbroken_entries() const noexcept { return unbroken_entries_; }

  /// Copies and waits come in no order that repeats, or nothing does: only launches are steps.
  [[nodiscard]] bool only_launches() const noexcept { return only_launches_; }
  /// Forgets all that was seen, and takes only launches for steps.
  void begin_with_launches() noexcept;
  /// No step will come any more, and nothing is asked but what the period is called.
  void forget_steps() noexcept { threads_.clear(); }

  /// The stretch; its share is left to the caller. Absent: nothing that repeats was found.
  [[nodiscard]] std::optional<FoundRegion> region() const;
  /// The name of the kernel that it begins with; empty: not known. Asks the driver.
  [[nodiscard]] std::string first_kernel() const;

 private:
  const gpu::Driver& driver_;
  KernelTable& kernels_;
  WatchedThreads threads_;
  WatchedThreads::Thread* seen_ = nullptr;  ///< whose step came last; null: none did yet
  std::atomic<std::uint64_t> leader_{0};    ///< the number of a thread; 0: none yet
  std::uint32_t id_ = 0;
  bool begins_ = false;  ///< with the leader's next launch, where blocks begin and end
  bool only_launches_ = false;
  std::atomic<bool> missed_{false};
  std::uint64_t begun_entries_ = 0;  ///< since it was broken
  std::uint64_t unbroken_entries_ = 0;
  CUfunction first_function_ = nullptr;  ///< null: not known
};

}  // namespace contextune::intercept
