#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/coordination/lockstep.hpp"

namespace contextune::intercept {

/// Where ranks wait for one another, and go on at the same moment if they are of one host. Without
/// that, the first rank to hear of it would wait in what comes next for the last. Used by one
/// thread; waits, with a deadline.
class StartLine {
 public:
  /// The lockstep must outlive it.
  explicit StartLine(Lockstep& lockstep);

  /// @param what this rank is about to do
  /// @return what each is about to do, in the order of the ranks; absent, on all of them: they have
  ///         lost one another, and the lockstep says why
  [[nodiscard]] std::optional<std::vector<std::uint8_t>> await(std::uint8_t what);

 private:
  Lockstep& lockstep_;
  const std::uint64_t host_;
  std::int64_t late_ns_ = 0;  ///< after the moment that was agreed on last
  std::int64_t margin_ns_;    ///< from when the last one was ready to that moment
};

}  // namespace contextune::intercept
