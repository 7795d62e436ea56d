#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/trials/tuning_observer.hpp"

namespace contextune {

/// The standing of a process in one stream of decisions. A communication library asks for a
/// stream's decisions, which are of one kind and about one communicator. NCCL, for one, asks before
/// each collective how it is to be done. All ranks of the communicator are asked the same in the
/// same order, or the program itself is wrong. So the number of a decision is a clock that they
/// share without a word, whatever else they do.
struct DecisionStanding {
  SiteIndex site = no_site;        ///< whose configs it is told
  std::uint64_t communicator = 0;  ///< the same number on all its ranks, and no other's
  std::uint32_t ranks = 1;         ///< of the communicator
  std::uint32_t here = 1;          ///< of them, in this process
  std::uint64_t decisions = 0;     ///< made so far
  std::uint64_t first = 0;         ///< number of the first one inside the region
  bool sound = true;               ///< false: it cannot be said how many were made
};

/// The configs that the decisions of a stream are told from one number on.
struct DecisionLease {
  SiteIndex site = no_site;
  std::uint64_t communicator = 0;
  std::uint64_t epoch = 0;  ///< grows
  std::uint64_t first_decision = 0;
  std::uint32_t per_pass = 1;
  std::vector<std::uint32_t> configs;  ///< by pass
  std::uint32_t afterwards = 0;
};

/// Who counts decisions and tells them configs; a port. Called under the region's lock.
///
/// The promise that makes it safe: a lease is committed on every rank before any rank's decision
/// number first_decision. It holds because no decision that hold() forbids is made until the
/// question is settled. Leases begin at the first decision forbidden on any rank, or later.
class DecisionPort {
 public:
  struct Limit {
    SiteIndex site = no_site;
    std::uint64_t communicator = 0;
    std::uint64_t decisions = 0;  ///< the first number that is forbidden
  };

  virtual ~DecisionPort() = default;
  [[nodiscard]] virtual std::vector<DecisionStanding> standings() = 0;
  /// Until release(), whoever is about to make a decision beyond its limit calls
  /// RegionTuning::settle before.
  virtual void hold(std::span<const Limit> limits) = 0;
  virtual void release() = 0;
  /// @return why the lease cannot be kept, which must not happen; empty: it holds
  [[nodiscard]] virtual std::string commit(const DecisionLease& lease) = 0;
};

}  // namespace contextune
