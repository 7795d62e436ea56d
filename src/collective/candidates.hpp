#pragma once

#include <optional>
#include <span>
#include <vector>

#include <contextune/config.hpp>

#include "collective/cell.hpp"
#include "collective/channels.hpp"
#include "collective/collective.hpp"
#include "collective/exactness.hpp"

namespace contextune::collective {

/// Facts that all ranks share, of which the configs of a collective site are made.
struct CandidateSources {
  Function function = Function::AllReduce;
  std::uint64_t bytes = 0;  ///< message_bytes
  int nodes = 1;
  CellSet legal;                     ///< that may be tried
  std::optional<Cell> default_cell;  ///< what NCCL takes by itself; absent: not known
  CostTable costs;                   ///< of the rank that decides; a hint for the order only
  Permission permission;
  ChannelLimits limits;
  /// Configs that the user declared. A candidate has to agree with one of these in all that the
  /// declared config names. Empty: everything may run.
  std::span<const Config> declared;
};

/// The configs of a collective site, in the order in which they are to be tried. Number 0 is the
/// empty config, the default. The most promising configs follow, by NCCL's own estimate, divided by
/// the share of the useful channels that a config takes. So a time limit falls on hopeless configs,
/// and a config that is cut off was measured against good ones. No config is repeated under another
/// name.
[[nodiscard]] std::vector<Config> candidates_of(const CandidateSources& sources);

}  // namespace contextune::collective
