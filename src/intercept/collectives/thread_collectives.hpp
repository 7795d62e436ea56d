#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "intercept/collectives/offered_operations.hpp"
#include "intercept/collectives/process_collectives.hpp"
#include "intercept/program/settled_collectives.hpp"

namespace contextune::intercept {

/// The state that ProcessCollectives keeps of the call of NCCL, or the group, that a thread is in.
/// Trivially destructible: the program may call NCCL from destructors that run after ours would.
struct ThreadCollectives {
  static constexpr std::size_t most_made = 16;
  static constexpr std::size_t most_described = 8;

  /// A key that a region has a site for.
  struct Described {
    collective::LeaseKey key;
    const LaunchRegion* region;
  };

  LaunchRegion* region;
  bool counts;
  bool is_inside;
  bool captured;  ///< one of the operations goes into a graph
  std::uint32_t num_made;
  std::uint64_t last_allocation;  ///< before the call
  double begun;                   ///< when, if it belongs to a region
  std::uint64_t version;          ///< of settled_version, before the call
  /// What is to be remembered of it if all is settled; `tuner` below 0: nothing.
  SettledCollective settled;
  /// The grant of the call's first decision, where it is known before whose decision that is.
  std::optional<collective::Grant> granted;
  OfferedOperations offered;
  /// The last of them about which NCCL asks no tuner.
  std::optional<contextune_nccl_fn> untunable;
  std::array<DecisionMade, most_made> made;
  std::uint32_t num_described;  ///< ever; the last of them are kept
  std::array<Described, most_described> described;

  /// Whether the region need not be told again what NCCL's table said of the key.
  [[nodiscard]] bool is_described(const collective::LeaseKey& key) const noexcept {
    return std::ranges::any_of(
        described, [&](const Described& one) { return one.region == region && one.key == key; });
  }
  void note_described(const collective::LeaseKey& key) noexcept {
    described[num_described++ % most_described] = {key, region};
  }
};
extern constinit thread_local ThreadCollectives this_call;

}  // namespace contextune::intercept
