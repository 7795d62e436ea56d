#pragma once

#include <cuda.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <optional>

#include "core/submission/submission_search.hpp"
#include "intercept/host/clock.hpp"
#include "intercept/host/event_log.hpp"
#include "intercept/submission/block_size.hpp"
#include "intercept/submission/followed_period.hpp"
#include "intercept/submission/submission_costs.hpp"
#include "intercept/submission/submission_events.hpp"
#include "intercept/submission/submission_in_use.hpp"
#include "intercept/submission/submissions_in_flight.hpp"

namespace contextune::intercept {

/// Blocks of entries, from their plan to their time: the search says in which way each one's
/// launches go out, and is told how long it took.
///
/// Serialised by the caller, but for `hold_off`. Lives as long as all it is given. Throws where
/// nothing else is said.
class MeasuredBlocks {
 public:
  /// The meaning of an entry for the open block.
  enum class Entry : std::uint8_t {
    Within,
    Completes,
    Overlong,  ///< completes it, and lasts longer than an entry should
  };

  MeasuredBlocks(SubmissionEvents& events, SubmissionInUse& in_use, SubmissionsInFlight& in_flight,
                 SubmissionCosts& costs, const FollowedPeriod& period, EventLog& log)
      : events_(events),
        in_use_(in_use),
        in_flight_(in_flight),
        costs_(costs),
        period_(period),
        log_(log) {}

  /// Blocks are measured for this search from now on, which outlives them.
  void measure_for(SubmissionSearch& search) noexcept { search_ = &search; }

  /// For a moment no blocks are measured. Any thread.
  void hold_off() noexcept { pause_.begin(); }
  [[nodiscard]] bool is_held_off(std::uint64_t now) const noexcept { return pause_.is_on(now); }

  [[nodiscard]] bool is_open() const noexcept { return open_.has_value(); }
  /// A block begins at the event, unless that is null. The search plans it.
  void begin(SubmissionEvents::Event at);
  /// The next entry of the open block begins now, with a launch on the stream.
  [[nodiscard]] Entry enter(std::uint64_t now, CUstream stream);
  /// A launch on the stream belongs to the open block, if there is one.
  void add(bool is_of_graph, CUstream stream);
  /// The open block ends on the stream.
  /// @param counts set to whether it shows something, and not only how long blocks are
  /// @return where the next one begins; null: nowhere
  [[nodiscard]] SubmissionEvents::Event end(CUstream stream, bool& counts);

  /// The open block is lost, if there is one.
  void drop_open();
  /// The same, and none begins for now: launches go out as the winner does.
  void rest();
  /// The open block is lost because its period was broken. True: so often that steps other than
  /// launches are to be left out, and periods mean something else from now on.
  [[nodiscard]] bool break_open();
  /// Another period is followed.
  void follow();
  /// Periods mean something else from now on.
  void forget_periods() noexcept { size_.forget_periods(); }

  /// Whether results may be there since the last time that this was true.
  [[nodiscard]] bool is_time_to_read() noexcept;
  /// Tells the search of the blocks that the GPU is through with.
  void read();
  /// Whether there are blocks without a result that counts.
  [[nodiscard]] bool any_pending() const noexcept { return !pending_.empty(); }
  /// The same, with those that only show how long blocks are.
  [[nodiscard]] bool any_unread() const noexcept { return any_pending() || probe_; }
  /// No result is of use any more.
  void forget_pending() noexcept { pending_.clear(); }
  /// Before a context is destroyed: events in it are lost.
  void lose_events();

  /// That all blocks took which were measured.
  [[nodiscard]] double seconds() const noexcept { return seconds_; }

 private:
  /// A time in which no blocks are measured, since something else is being compared. Any thread.
  class MeasuringPause {
   public:
    /// For a moment from now on, but not for more than some seconds in all.
    void begin() noexcept {
      const std::uint64_t now = monotonic_ns();
      std::uint64_t first = 0;
      if (first_ns_.compare_exchange_strong(first, now)) first = now;
      until_ns_.store(std::min(now + moment_ns, first + most_ns), std::memory_order_relaxed);
    }
    [[nodiscard]] bool is_on(std::uint64_t now) const noexcept {
      return now < until_ns_.load(std::memory_order_relaxed);
    }

   private:
    static constexpr std::uint64_t moment_ns = 50'000'000;
    static constexpr std::uint64_t most_ns = 5'000'000'000;

    std::atomic<std::uint64_t> first_ns_{0};
    std::atomic<std::uint64_t> until_ns_{0};
  };

  /// Before it is known how long an entry takes on the GPU: the block may never be completed.
  void probe(CUstream stream);
  void read_probe();
  void learn(const SubmissionBlock& block, double seconds);

  SubmissionSearch* search_ = nullptr;
  SubmissionEvents& events_;
  SubmissionInUse& in_use_;
  SubmissionsInFlight& in_flight_;
  SubmissionCosts& costs_;
  const FollowedPeriod& period_;
  EventLog& log_;
  MeasuringPause pause_;
  BlockSize size_;
  std::optional<SubmissionBlock> open_;
  std::optional<SubmissionBlock> probe_;  ///< the first entries of a block that finds out
  std::deque<SubmissionBlock> pending_;   ///< without a result
  std::uint64_t next_ = 0;                ///< number
  std::uint64_t looked_ns_ = 0;           ///< for results
  double seconds_ = 0;
};

}  // namespace contextune::intercept
