#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/trials/timer.hpp"
#include "gpu/driver/launch_log.hpp"

namespace contextune::gpu {

/// Ties CUPTI's records of GPU work to the launches that made it. Both kinds of record carry
/// CUPTI's correlation id of the launching call; they come in different buffers and in any order.
/// Any thread; the lock is this object's own and is never held over a call of CUPTI or the driver.
class ActivityRecords {
 public:
  ActivityRecords();

  /// A thread made a call that may have launched something, in CUPTI's nanoseconds.
  void add_call(std::uint32_t correlation, std::uint32_t thread, std::uint64_t start,
                std::uint64_t end);

  /// GPU work of a launch, in CUPTI's nanoseconds. Work without a time is counted as bad.
  /// @param shape of a kernel that a graph launched, else 0
  void add_work(std::uint32_t correlation, std::uint64_t start, std::uint64_t end, bool kernel,
                std::uint64_t shape = 0);

  /// Looks up the calls that have been added.
  void resolve(LaunchLog& launches);

  /// All records of all launches so far have been added: work that is not tied yet belongs to
  /// launches that nobody asked to be timed, and is forgotten.
  void settle();

  /// CUPTI counts correlation ids from the beginning again: none that was seen means the same any
  /// more.
  void forget_correlations();

  /// Appends what was tied since the last call. Times count from the first record ever seen:
  /// CUPTI's own count from 1970, which a double of seconds resolves to 0.24 us only.
  void take(std::vector<TimedWork>& work);

  /// Launches that have shown at least one piece of work.
  [[nodiscard]] std::uint64_t launches_seen() const;

  /// Records without a usable time, or that came when too many calls were waiting for resolve().
  [[nodiscard]] std::uint64_t bad() const;

  /// That wait for resolve() at most: 24 MiB of them.
  static constexpr std::size_t most_calls = std::size_t{1} << 20;

 private:
  struct Launch {
    std::uint32_t correlation = 0;
    bool known = false;
    bool seen = false;
    std::uint64_t tag = 0;
  };
  struct Call {
    std::uint32_t correlation = 0;
    std::uint32_t thread = 0;
    std::uint64_t start = 0;
    std::uint64_t end = 0;
  };
  struct Work {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    bool kernel = true;
    std::uint64_t shape = 0;
  };
  [[nodiscard]] Launch& slot(std::uint32_t correlation);
  void add_launch(std::uint32_t correlation, std::uint64_t tag);
  void tie(Launch& launch, const Work& work);

  mutable std::mutex mutex_;
  std::vector<Call> calls_;
  std::deque<Call> unknown_calls_;  // not found yet: of nobody's interest, or not yet in the log
  std::vector<Launch> launches_;    // by the low bits of the id, which CUPTI counts up
  std::unordered_multimap<std::uint32_t, Work> untied_;
  std::deque<std::uint32_t> untied_order_;  // oldest first; may name what was tied since
  std::vector<TimedWork> tied_;
  std::uint64_t origin_ = 0;
  std::uint64_t launches_seen_ = 0;
  std::uint64_t bad_ = 0;
};

}  // namespace contextune::gpu
