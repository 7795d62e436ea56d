#pragma once

#include <cstdint>
#include <vector>

#include "collective/cell.hpp"
#include "collective/collective.hpp"

namespace contextune::collective {

/// The properties that getCollInfo calls have to share for one lease to answer them. All zeros by
/// default, for static tables of it. Calls of a key come one after another, because NCCL allows no
/// two operations at once on one communicator.
struct LeaseKey {
  /// Which tuner context of this process; above 0 and never used again for another.
  std::uint64_t communicator = 0;
  /// The size that the plugin is told, or the upper edge of its bucket. All ranks round alike, and
  /// sizes that were not seen yet find the lease of their bucket.
  std::uint64_t bytes = 0;
  std::uint32_t operations = 0;  ///< in the group: what NCCL calls numPipeOps
  Function function = Function::Broadcast;
  std::uint8_t kind = 0;  ///< kind_of(); 0: not known, or of several

  [[nodiscard]] bool operator==(const LeaseKey& other) const = default;
};

/// A number above 0 for each datatype and operator, to tell sites of one size apart.
[[nodiscard]] constexpr std::uint8_t kind_of(Datatype datatype, Operator op) noexcept {
  constexpr unsigned operators = static_cast<unsigned>(Operator::PreMulSum) + 1;
  return static_cast<std::uint8_t>(1 + static_cast<unsigned>(datatype) * operators +
                                   static_cast<unsigned>(op));
}

/// The datatype and the operator that a kind was made of. @param kind above 0, of a reduction
[[nodiscard]] constexpr Datatype datatype_of(std::uint8_t kind) noexcept {
  return static_cast<Datatype>((kind - 1U) / (static_cast<unsigned>(Operator::PreMulSum) + 1));
}
[[nodiscard]] constexpr Operator operator_of(std::uint8_t kind) noexcept {
  return static_cast<Operator>((kind - 1U) % (static_cast<unsigned>(Operator::PreMulSum) + 1));
}

/// Decisions in a row with one config.
struct LeaseSpan {
  Decision decision;
  std::uint32_t config = 0;     ///< its number in the site's config list
  std::uint32_t decisions = 0;  ///< at least 1

  [[nodiscard]] bool operator==(const LeaseSpan& other) const = default;
};

/// The decisions of one key from one number on.
///
/// **The lockstep invariant.** Decision n of a key is answered alike on all ranks of its
/// communicator. A rank that broke this would hang all others inside NCCL. The invariant holds
/// because:
/// - All decisions of a key are counted, inside of regions and outside. NCCL demands the same calls
///   in the same order of all ranks, so n is the same call on every rank.
/// - The answer is a pure function of n and of the leases that were committed.
/// - All ranks are given the same leases in one Batch, or none is.
/// - A rank commits a lease before its own decision number first_decision, as DecisionPort promises
///   and LeaseTable asserts.
/// - Nothing takes back a committed lease. A rank that lost its peers goes on by the lease, and
///   comes to `afterwards` at the same n as they do.
///
/// A trial is a lease that ends: spans, and then the default, or the winner so far. A winner is a
/// lease without end: no spans, and the winner afterwards.
struct Lease {
  LeaseKey key;
  std::uint64_t epoch = 0;  ///< above 0; grows from lease to lease of a key
  std::uint64_t first_decision = 0;
  std::vector<LeaseSpan> spans;
  Decision afterwards;
  std::uint32_t config_afterwards = 0;

  [[nodiscard]] bool operator==(const Lease& other) const = default;
};

}  // namespace contextune::collective
