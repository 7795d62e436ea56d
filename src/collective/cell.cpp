#include "collective/cell.hpp"

#include <algorithm>
#include <string>

#include <contextune/error.hpp>

namespace contextune::collective {
namespace {

constexpr std::array<std::string_view, num_algorithms> algorithm_names = {
    "Tree", "Ring", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT"};
constexpr std::array<std::string_view, num_protocols> protocol_names = {"LL", "LL128", "Simple"};

constexpr std::array<Cell, num_cells> whole_table = [] {
  std::array<Cell, num_cells> made{};
  for (std::size_t i = 0; i < num_cells; ++i) {
    made[i] = {static_cast<Algorithm>(i / num_protocols), static_cast<Protocol>(i % num_protocols)};
  }
  return made;
}();

template <typename Enum, std::size_t size>
std::optional<Enum> find_name(const std::array<std::string_view, size>& names,
                              std::string_view name) noexcept {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view name_of(Algorithm algorithm) noexcept {
  return algorithm_names[static_cast<std::size_t>(algorithm)];
}

std::string_view name_of(Protocol protocol) noexcept {
  return protocol_names[static_cast<std::size_t>(protocol)];
}

std::optional<Algorithm> parse_algorithm(std::string_view name) noexcept {
  return find_name<Algorithm>(algorithm_names, name);
}

std::optional<Protocol> parse_protocol(std::string_view name) noexcept {
  return find_name<Protocol>(protocol_names, name);
}

Config config_of(const Decision& decision) {
  if (decision.is_default()) return {};
  return {{algorithm_parameter, std::string(name_of(decision.cell.algorithm))},
          {protocol_parameter, std::string(name_of(decision.cell.protocol))},
          {channels_parameter, std::int64_t{decision.channels}}};
}

Decision decision_of(const Config& config) {
  if (config.empty()) return {};
  const auto algorithm = parse_algorithm(config.get_string(algorithm_parameter));
  const auto protocol = parse_protocol(config.get_string(protocol_parameter));
  const std::int64_t channels = config.get_int(channels_parameter);
  if (!algorithm || !protocol || channels < 0 || channels > max_channels ||
      config.entries().size() != 3) {
    throw Error("\"" + config.to_string() +
                "\" is no config of a collective; give algorithm, protocol and 0 to 64 channels");
  }
  return {true, {*algorithm, *protocol}, static_cast<std::uint8_t>(channels)};
}

CostTable::CostTable(const float* table, int algorithms, int protocols) noexcept {
  costs_.fill(illegal);
  for (const Cell& cell : whole_table) {
    const int row = static_cast<int>(cell.algorithm);
    const int column = static_cast<int>(cell.protocol);
    if (row >= algorithms || column >= protocols) continue;
    costs_[cell.index()] = table[row * protocols + column];
  }
}

CellSet CostTable::legal() const noexcept {
  CellSet set;
  for (const Cell& cell : whole_table) {
    // NCCL passes over every negative cost, and no comparison finds what is no number.
    if (cost(cell) >= 0) set.add(cell);
  }
  return set;
}

std::optional<Cell> CostTable::cheapest() const noexcept {
  std::optional<Cell> best;
  for (const Cell& cell : whole_table) {
    if (cost(cell) >= 0 && (!best || cost(cell) < cost(*best))) best = cell;
  }
  return best;
}

std::span<const Cell> all_cells() noexcept {
  return whole_table;
}

}  // namespace contextune::collective
