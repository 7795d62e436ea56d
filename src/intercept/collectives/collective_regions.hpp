#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collective/lease_table.hpp"

namespace contextune::intercept {

class RegionCollectives;

/// The regions of this process that have collectives: to which of them a key's decisions are told,
/// and which of them forbid decisions for the time being. Any thread; nothing waits.
class CollectiveRegions {
 public:
  /// @return false: there are too many regions
  [[nodiscard]] bool add(RegionCollectives& region);
  /// Only the first region that meets a key is told the key's decisions; that region is the same on
  /// all ranks. Two regions would commit their leases in an order of each rank's own.
  [[nodiscard]] bool is_of_another(const collective::LeaseKey& key,
                                   const RegionCollectives& region) const noexcept;

  /// A region forbids decisions from now on, or does so no longer. In one order with a call that is
  /// seen by others before it looks at any_holds().
  void hold(bool on) noexcept { holds_.fetch_add(on ? 1 : -1, std::memory_order_seq_cst); }
  [[nodiscard]] bool any_holds() const noexcept {
    return holds_.load(std::memory_order_seq_cst) != 0;
  }
  /// A region that does not permit so many decisions more; null: there is none.
  [[nodiscard]] RegionCollectives* forbidding(std::uint32_t decisions) const noexcept;

  /// The communicator has ended. @param context LeaseKey::communicator
  void forget(std::uint64_t context) noexcept;

 private:
  static constexpr std::size_t most_regions = 64;

  std::atomic<int> holds_{0};  ///< regions that forbid decisions
  std::array<std::atomic<RegionCollectives*>, most_regions> regions_{};
};

}  // namespace contextune::intercept
