#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/search/race.hpp"
#include "core/search/tuning.hpp"

namespace contextune {

/// The region's own times aside from any comparison: how long it takes with all defaults, and how
/// much it varies when nothing changes.
class RegionBaseline {
 public:
  /// @param situation which sites were launched; only equal ones compare
  void add(Measure measure, std::uint64_t situation, std::span<const std::uint32_t> configs,
           double seconds);

  /// Seconds that a pass took beyond what it takes with all defaults; 0 where that is not known.
  [[nodiscard]] double excess(Measure measure, std::uint64_t situation, double seconds) const;

  /// From passes that followed each other with the same configs.
  [[nodiscard]] NoisePrior noise() const;

 private:
  std::map<std::pair<Measure, std::uint64_t>, std::vector<double>> defaults_;
  std::vector<std::uint32_t> last_configs_;
  std::uint64_t last_situation_ = 0;
  double last_seconds_ = 0;
  std::vector<double> steps_;  ///< relative differences of neighbours
};

}  // namespace contextune
