#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collective/lease.hpp"

namespace contextune::collective {

/// What one getCollInfo call returned, so that a sample is put down to the config that ran.
struct DecisionReport {
  LeaseKey key;
  std::uint64_t number = 0;  ///< of the decision for its key
  std::uint64_t epoch = 0;   ///< of the lease that answered; 0: none did
  std::uint64_t call = 0;    ///< as the caller tells its calls apart; 0: it does not
  Decision decision;         ///< what was done: the default where the cell was not legal
  std::uint32_t config = 0;  ///< likewise
  bool was_refused = false;  ///< the lease's cell was not legal in this call
};

/// The same on all ranks for reports of the same decisions of one key in their order: what shows
/// after the fact that a lease was kept in lockstep, a cell that one rank refused included.
[[nodiscard]] std::uint64_t lockstep_hash(std::span<const DecisionReport> reports) noexcept;

/// Reports of decisions on their way to the owner. In static storage, all zeros until used.
///
/// push() may be called by any thread; it takes no lock, allocates nothing and waits for nothing:
/// where the owner does not come for them, reports are dropped and counted. pop() is the owner's.
class DecisionLog {
 public:
  static constexpr std::size_t capacity = 4096;

  constexpr DecisionLog() noexcept = default;
  DecisionLog(const DecisionLog&) = delete;
  DecisionLog& operator=(const DecisionLog&) = delete;

  void push(const DecisionReport& report) noexcept;

  /// The oldest report. False: there is none, or it is being written.
  [[nodiscard]] bool pop(DecisionReport& report) noexcept;

  /// How many reports were dropped so far. A pass in which this grew has no complete samples.
  [[nodiscard]] std::uint64_t dropped() const noexcept {
    return dropped_.load(std::memory_order_relaxed);
  }

 private:
  /// A place is free for the report of round r where `turn` is 2 r, and holds it at 2 r + 1.
  struct Place {
    std::atomic<std::uint64_t> turn{0};
    DecisionReport report;
  };

  std::atomic<std::uint64_t> pushed_{0};
  std::atomic<std::uint64_t> dropped_{0};
  std::uint64_t popped_ = 0;
  std::array<Place, capacity> places_{};
};

}  // namespace contextune::collective
