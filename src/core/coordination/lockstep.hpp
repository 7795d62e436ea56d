#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/coordination/coordinator.hpp"
#include "core/coordination/engagement.hpp"

namespace contextune {

/// Ranks that go on together, step by step. At each meeting every rank says something, and all hear
/// what all have said, in the order of the ranks. Otherwise no rank hears anything, and there are
/// no more meetings. Used by one thread at a time; the coordinator must outlive it.
class Lockstep {
 public:
  /// @param kind    number of `decide` among the coordinator's deciders
  /// @param group   of the meetings, the same on all ranks and no other's
  /// @param ranks   of the job, ascending
  /// @param seconds that a rank may be kept waiting in a meeting
  Lockstep(Coordinator& coordinator, std::uint32_t kind, std::uint64_t group,
           std::vector<std::uint32_t> ranks, double seconds);

  static constexpr double as_long_as_said = 1e9;
  /// Waits for all, and no longer than that.
  /// @return what each has said; absent: see why()
  [[nodiscard]] std::optional<std::vector<Payload>> meet(Payload said,
                                                         double most_seconds = as_long_as_said);
  /// Before the next meeting this rank is at something that takes a while: see Coordinator.
  void occupied(double seconds, std::string why);
  /// From now on it is at something with those that it meets, which takes a while.
  void engage(Engagement& engagement, std::string why) const {
    engagement.begin(coordinator_, ranks_, std::move(why));
  }
  /// There are no more meetings, for that reason, a clause.
  void leave(const std::string& why);

  /// Place of this rank in what meet() returns.
  [[nodiscard]] std::size_t position() const noexcept { return position_; }
  [[nodiscard]] std::span<const std::uint32_t> ranks() const noexcept { return ranks_; }
  /// That this rank was kept waiting: in all meetings, and in the longest.
  [[nodiscard]] double waited_seconds() const noexcept { return waited_seconds_; }
  [[nodiscard]] double longest_wait_seconds() const noexcept { return longest_wait_seconds_; }
  /// A clause; empty: they meet.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  /// The coordinator's decider: tells all what all have said.
  [[nodiscard]] static Payload decide(const Topic& topic, std::span<const Payload> said,
                                      std::string& why);

 private:
  Coordinator& coordinator_;
  const std::uint32_t kind_;
  const std::vector<std::uint32_t> ranks_;
  Topic topic_;
  const double seconds_;
  std::size_t position_ = 0;
  double waited_seconds_ = 0;
  double longest_wait_seconds_ = 0;
  std::string why_;
};

}  // namespace contextune
