#include "cli/report/nccl_csv.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "collective/tuner_csv.hpp"
#include "core/value/parse_number.hpp"
#include "core/value/take_until.hpp"

namespace contextune::cli {
namespace {

using collective::TunerRow;
using Fields = std::map<std::string_view, std::string_view>;

/// "ranks=4 nodes=1" by name.
Fields fields_of(std::string_view text) {
  Fields fields;
  while (!text.empty()) {
    const std::string_view word = take_until(text, ' ');
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos)
      fields.emplace(word.substr(0, equals), word.substr(equals + 1));
  }
  return fields;
}

std::string_view field(const Fields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string_view() : found->second;
}

std::optional<int> number(const Fields& fields, std::string_view name) {
  return parse_number<int>(field(fields, name));
}

std::optional<collective::Function> function_named(std::string_view name) {
  for (int nccl = 0; const auto function = collective::function_of_nccl(nccl); ++nccl)
    if (name_of(*function) == name) return function;
  return std::nullopt;
}

/// Sets the row's cell. @return whether it is known
bool set_cell(TunerRow& row, std::string_view algorithm, std::string_view protocol) {
  const auto known_algorithm = collective::parse_algorithm(algorithm);
  const auto known_protocol = collective::parse_protocol(protocol);
  if (!known_algorithm || !known_protocol) return false;
  row.cell = {*known_algorithm, *known_protocol};
  return true;
}

struct SiteRow {
  TunerRow row;
  bool is_default = false;

  [[nodiscard]] auto calls() const {
    return std::tuple(row.function, row.ranks, row.nodes, row.sizes.low, row.sizes.high,
                      row.operations);
  }
  // The plugin takes the first of several rows for the same calls.
  [[nodiscard]] bool operator<(const SiteRow& other) const {
    return std::tuple(calls(), !is_default) < std::tuple(other.calls(), !other.is_default);
  }
  [[nodiscard]] bool operator==(const SiteRow& other) const {
    return calls() == other.calls() && row.cell == other.row.cell &&
           row.channels == other.row.channels;
  }
};

std::optional<SiteRow> row_of(const log::SiteReport& site) {
  const auto function = function_named(site.name);
  const Fields key = fields_of(site.key);
  const auto sizes = Buckets::bucket_of_key(field(key, "bytes"));
  if (site.provider != "collective" || !function || !sizes) return std::nullopt;
  SiteRow made;
  made.row.function = *function;
  made.row.sizes = *sizes;
  made.row.nodes = number(key, "nodes");
  made.row.ranks = number(key, "ranks");
  made.row.operations = number(key, "grouped").value_or(1);
  made.is_default = !site.winner || site.winner->config == 0;
  if (made.is_default) {
    std::string_view choice = site.default_choice;
    const std::string_view algorithm = take_until(choice, ' ');
    if (!set_cell(made.row, algorithm, choice)) return std::nullopt;
    return made;
  }
  const auto config = site.configs.find(site.winner->config);
  if (config == site.configs.end()) return std::nullopt;
  const Fields winner = fields_of(config->second);
  if (!set_cell(made.row, field(winner, "algorithm"), field(winner, "protocol")))
    return std::nullopt;
  made.row.channels = number(winner, "channels").value_or(0);
  return made;
}

}  // namespace

bool is_collective(std::string_view name) {
  return function_named(name).has_value();
}

std::string nccl_csv(const std::vector<log::ProcessReport>& processes, std::size_t& rows) {
  std::vector<const log::SiteReport*> sites;
  for (const log::ProcessReport& process : processes)
    for (const log::RegionReport& region : process.regions)
      for (const log::SiteReport& site : region.sites) sites.push_back(&site);
  return nccl_csv(sites, rows);
}

std::string nccl_csv(const std::vector<const log::SiteReport*>& sites, std::size_t& rows) {
  std::vector<SiteRow> made;
  for (const log::SiteReport* site : sites)
    if (const auto row = row_of(*site)) made.push_back(*row);
  std::stable_sort(made.begin(), made.end());
  made.erase(std::unique(made.begin(), made.end()), made.end());
  std::vector<TunerRow> written;
  rows = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    written.push_back(made[i].row);
    if (i == 0 || made[i - 1].calls() != made[i].calls()) ++rows;
  }
  return to_tuner_csv(written);
}

}  // namespace contextune::cli
