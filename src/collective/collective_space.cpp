#include "collective/collective_space.hpp"

#include <algorithm>
#include <cassert>

#include "collective/all_to_all.hpp"
#include "collective/candidates.hpp"

namespace contextune::collective {
namespace {

/// The cells among which NCCL can have a choice, by facts that ranks share.
CellSet cells_that_exist(Function function, int nodes) noexcept {
  CellSet set;
  for (const Cell& cell : all_cells()) {
    // PAT needs a node a rank; CollNet and the tree over switches several nodes.
    const bool between_nodes =
        cell.algorithm == Algorithm::Pat || cell.algorithm == Algorithm::CollnetDirect ||
        cell.algorithm == Algorithm::CollnetChain || cell.algorithm == Algorithm::NvlsTree;
    if (between_nodes && nodes <= 1) continue;
    bool exists = false;
    switch (function) {
      case Function::AllReduce:
        exists = cell.algorithm != Algorithm::Pat;
        break;
      case Function::AllGather:
      case Function::ReduceScatter:
        exists = cell.algorithm == Algorithm::Ring || cell.algorithm == Algorithm::Pat ||
                 cell.algorithm == Algorithm::Nvls || cell.algorithm == Algorithm::CollnetDirect;
        break;
      default:
        exists = cell.algorithm == Algorithm::Ring;
    }
    // The switch and the network take whole buffers.
    if (reduces_in_switch(cell.algorithm)) exists = exists && cell.protocol == Protocol::Simple;
    if (exists) set.add(cell);
  }
  return set;
}

/// An estimate that is the same on all ranks, which NCCL's own need not be. It only says what is
/// tried first: protocols with a flag in each word are for small messages, trees for many ranks.
CostTable common_estimate(std::uint64_t bytes) noexcept {
  constexpr std::uint64_t small = 64 << 10U;
  constexpr std::uint64_t large = 64 << 20U;
  std::array<float, num_cells> costs{};
  for (const Cell& cell : all_cells()) {
    float cost = cell.algorithm == Algorithm::Ring ? 1.0F : 1.2F;
    switch (cell.protocol) {
      case Protocol::LL:
        cost *= bytes <= small ? 1.0F : bytes <= large ? 1.5F : 2.0F;
        break;
      case Protocol::LL128:
        cost *= bytes <= small ? 1.2F : 1.05F;
        break;
      case Protocol::Simple:
        cost *= bytes <= small ? 2.0F : bytes <= large ? 1.1F : 1.0F;
        break;
    }
    costs[cell.index()] = cost;
  }
  return {costs.data(), num_algorithms, num_protocols};
}

}  // namespace

// A channel moves some 12 GB/s, so that few channels for a large message make the 50 times slower
// configs that were measured. A protocol that sends as many flags as data halves the bandwidth.
bool is_worth_a_pass(const Decision& decision, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t most_bytes_a_channel = 512 << 10U;
  constexpr std::uint64_t most_bytes_with_flags = 8 << 20U;
  if (decision.cell.protocol == Protocol::LL && bytes > most_bytes_with_flags) return false;
  const std::uint64_t fewest = std::min<std::uint64_t>(bytes / most_bytes_a_channel, 16);
  return decision.channels == 0 || decision.channels >= fewest;
}

std::vector<std::uint32_t> configs_to_connect(const SiteConfigs& site, CellSet connected) {
  std::array<bool, num_algorithms> is_connected{};
  for (const Cell& cell : all_cells())
    if (connected.has(cell)) is_connected[static_cast<std::size_t>(cell.algorithm)] = true;
  std::vector<std::uint32_t> list;
  for (std::uint32_t i = 1; i < site.configs.size(); ++i) {
    const Algorithm algorithm = decision_of(site.configs[i]).cell.algorithm;
    const bool is_tried = std::ranges::find(site.unusable, i) == site.unusable.end();
    if (is_tried && !is_connected[static_cast<std::size_t>(algorithm)]) list.push_back(i);
  }
  return list;
}

SiteConfigs configs_of(const Collective& collective, const CollectiveSpace& space, CellSet legal,
                       std::optional<Cell> default_cell) {
  const FunctionSpace& wanted = space.of(collective.function);
  SiteConfigs site;
  site.configs.emplace_back();
  if (collective.function == Function::AllToAll) {
    site.why_none = all_to_all_untunable;
    return site;
  }
  if (!wanted.excluded.empty()) {
    site.why_none = wanted.excluded;
    return site;
  }
  if (!wanted.is_tuned) {
    site.why_none = "no space file declares it, and --auto does not name collectives";
    return site;
  }
  std::optional<Algorithm> default_algorithm;
  if (default_cell) default_algorithm = default_cell->algorithm;
  const Permission permission =
      permission_for(collective.function, collective.datatype, collective.op,
                     collective.communicator.ranks, default_algorithm, space.rounding);
  if (permission.cells == CellSet()) {
    site.why_none = permission.reason;
    site.needs_rounding = true;
    return site;
  }
  CandidateSources sources;
  sources.function = collective.function;
  sources.bytes = collective.bytes;
  sources.nodes = collective.communicator.nodes;
  sources.legal = cells_that_exist(collective.function, collective.communicator.nodes);
  sources.costs = common_estimate(collective.bytes);
  sources.permission.cells = CellSet(~0U);
  sources.declared = wanted.declared;
  site.configs = candidates_of(sources);
  if (wanted.declared.empty()) {
    std::erase_if(site.configs, [&](const Config& config) {
      const Decision decision = decision_of(config);
      return !decision.is_default() && !is_worth_a_pass(decision, collective.bytes);
    });
  }
  assert(site.configs.front().empty());
  bool any = false;
  for (std::uint32_t i = 1; i < site.configs.size(); ++i) {
    const Decision decision = decision_of(site.configs[i]);
    const bool repeats_default = decision.channels == 0 && decision.cell == default_cell;
    if (legal.has(decision.cell) && permission.cells.has(decision.cell) && !repeats_default) {
      any = true;
    } else {
      site.unusable.push_back(i);
    }
  }
  if (!any) site.why_none = "NCCL's table leaves no other choice here";
  return site;
}

}  // namespace contextune::collective
