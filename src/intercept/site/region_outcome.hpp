#pragma once

#include <cstdint>
#include <optional>

#include "core/trials/store.hpp"

namespace contextune::intercept {

/// How far the tuning of a region has come, and how the region fares with its winners.
struct RegionOutcome {
  enum class State : std::uint8_t { Searching, Finished, Stopped };

  State state = State::Searching;
  std::optional<StoredConfirm> confirm;  ///< absent: nothing was compared yet
  double high = 0;                       ///< as StoredConfirm::bound, on the other side of the gain
  bool is_stored = false;                ///< an earlier run compared it
  std::uint64_t passes = 0;
  std::uint64_t entries = 0;
  double tuning_seconds = 0;
  std::uint64_t sites = 0;
  std::uint64_t tuned = 0;  ///< sites that run another config than the default
};

}  // namespace contextune::intercept
