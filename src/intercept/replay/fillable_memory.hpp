#pragma once

#include <span>
#include <string>
#include <vector>

#include "intercept/replay/region_access.hpp"
#include "intercept/replay/replay_memory.hpp"
#include "intercept/replay/visit_ranks.hpp"

namespace contextune::intercept {

/// The memory of one visit in which the region may find anything, as the code of its kernels shows,
/// and which of its configs are put to the test by other contents there. Used by the thread that
/// visits.
class FillableMemory {
 public:
  using Ranges = std::vector<gpu::MemoryRange>;

  explicit FillableMemory(const ReplayMemory& memory) : memory_(memory) {}
  FillableMemory(const FillableMemory&) = delete;
  FillableMemory& operator=(const FillableMemory&) = delete;

  /// Takes in what the code shows, on all ranks that repeat the visit. @throws RanksLost
  void find(RegionAccess access, VisitRanks& ranks);
  /// Results are no longer compared on other contents. @param why a clause
  void give_up(std::string why);

  /// Results are compared on other contents, too.
  [[nodiscard]] bool fills() const noexcept { return fills_; }
  /// What may hold anything and has been copied.
  [[nodiscard]] const Ranges& ranges() const noexcept { return free_; }
  /// Of it, some is read as well.
  [[nodiscard]] bool is_read() const noexcept { return access_.reads_free; }

  /// Memory that the site's arguments point to; none: nobody knows.
  [[nodiscard]] std::span<const gpu::MemoryRange> memory_of(const Site& site) const;
  [[nodiscard]] bool has_unknown_code(const Site& site, std::uint32_t config) const;
  /// What holds anything for all configs of the site that compute what the default does, whether
  /// their code is known or not. Empty: there is nothing, or all that it writes is not among it.
  [[nodiscard]] Ranges ranges_for_unknown(const Site& site) const;
  /// Whether all that the site writes is among `filled`.
  [[nodiscard]] bool is_covered(const Site& site, const Ranges& filled) const;
  /// A clause.
  [[nodiscard]] std::string why_not_covered(const Site& site, std::uint32_t config) const;
  /// Why the region may go elsewhere where it finds what it changed itself, as a clause; "": it
  /// does not.
  [[nodiscard]] std::string why_not_on_own_results(const std::vector<const Site*>& sites) const;

 private:
  /// Those of the ranges that have been copied.
  [[nodiscard]] Ranges copied(const Ranges& ranges) const;

  const ReplayMemory& memory_;
  RegionAccess access_;
  Ranges free_;  ///< the copied part of that
  bool fills_ = false;
};

}  // namespace contextune::intercept
