#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <contextune/buckets.hpp>
#include <contextune/config.hpp>

#include "collective/cell.hpp"
#include "collective/collective.hpp"
#include "collective/exactness.hpp"

namespace contextune::collective {

/// The user's wishes for one function.
struct FunctionSpace {
  Buckets buckets;
  bool is_tuned = false;         ///< else it is named and timed only
  std::string_view excluded;     ///< why it is not tuned though it may be declared, a clause
  std::vector<Config> declared;  ///< as CandidateSources has it
  std::optional<int> n_warmup;
  std::optional<int> n_repeat;
};

/// The user's wishes for all collectives.
struct CollectiveSpace {
  /// Those with numbers of their own, and AllToAll, which only has buckets.
  static constexpr std::size_t num_functions = 6;

  RoundingOptions rounding;
  bool takes_nearest = true;  ///< a size without a winner of its own is done as the nearest one
  std::uint64_t connection_bytes = std::uint64_t{512} << 20U;  ///< that an algorithm may take
  std::array<FunctionSpace, num_functions> functions;

  [[nodiscard]] const FunctionSpace& of(Function function) const noexcept {
    return functions[std::min(static_cast<std::size_t>(function), num_functions - 1)];
  }
};

/// Whether it is worth a pass where nobody has declared it: not what is hopeless at that size.
[[nodiscard]] bool is_worth_a_pass(const Decision& decision, std::uint64_t bytes) noexcept;

/// The configs of a site. The list is the same on all ranks; which of it this rank cannot run, or
/// must not, is not.
struct SiteConfigs {
  std::vector<Config> configs;          ///< number 0 is the default
  std::vector<std::uint32_t> unusable;  ///< here
  std::string_view why_none;            ///< a clause, if there is nothing but the default
  bool needs_rounding = false;          ///< and that is because the result would change
};

/// The configs of which the algorithm has no connections yet, which would take memory.
/// @param connected cells that the communicator has used
[[nodiscard]] std::vector<std::uint32_t> configs_to_connect(const SiteConfigs& site,
                                                            CellSet connected);

/// @param collective   with the upper edge of its bucket as its size
/// @param legal        in NCCL's table on this rank
/// @param default_cell what NCCL takes by itself on this rank
[[nodiscard]] SiteConfigs configs_of(const Collective& collective, const CollectiveSpace& space,
                                     CellSet legal, std::optional<Cell> default_cell);

}  // namespace contextune::collective
