#include "collective/tuner_csv.hpp"

#include <array>
#include <set>
#include <string_view>

namespace contextune::collective {
namespace {

// The plugin's own words; it takes one that it does not know for allreduce, ring or simple.
std::string_view csv_name(Function function) noexcept {
  switch (function) {
    case Function::Broadcast:
      return "broadcast";
    case Function::Reduce:
      return "reduce";
    case Function::AllGather:
      return "allgather";
    case Function::ReduceScatter:
      return "reducescatter";
    case Function::AllReduce:
      return "allreduce";
    case Function::AllToAll:
      break;
  }
  return {};
}

std::string_view csv_name(Algorithm algorithm) noexcept {
  constexpr std::array<std::string_view, num_algorithms> names = {
      "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"};
  return names[static_cast<std::size_t>(algorithm)];
}

std::string_view csv_name(Protocol protocol) noexcept {
  constexpr std::array<std::string_view, num_protocols> names = {"ll", "ll128", "simple"};
  return names[static_cast<std::size_t>(protocol)];
}

std::string or_any(const std::optional<int>& number) {
  return std::to_string(number.value_or(-1));
}

}  // namespace

std::string to_tuner_csv(std::span<const TunerRow> rows) {
  std::string text =
      "# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,"
      "regBuff\n";
  std::set<std::string> taken;
  for (const TunerRow& row : rows) {
    if (csv_name(row.function).empty()) continue;
    const std::string calls = std::string(csv_name(row.function)) + ',' +
                              std::to_string(row.sizes.low) + ',' + std::to_string(row.sizes.high);
    const std::optional<int> registered = row.registered_buffers;
    const std::string surroundings = or_any(row.nodes) + ',' + or_any(row.ranks) + ',' +
                                     or_any(row.operations) + ',' + or_any(registered);
    const bool sets_channels =
        row.channels > 0 && takes_channels(row.cell.algorithm, row.nodes.value_or(2));
    if (!taken.insert(calls + ',' + surroundings).second) text += "# ";
    text += calls + ',' + std::string(csv_name(row.cell.algorithm)) + ',' +
            std::string(csv_name(row.cell.protocol)) + ',' +
            std::to_string(sets_channels ? row.channels : 0) + ',' + surroundings + '\n';
  }
  return text;
}

}  // namespace contextune::collective
