#include "cli/page/pass_data.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/page/columns.hpp"
#include "cli/report/iteration_table.hpp"

namespace contextune::cli {
namespace {

using Json = nlohmann::ordered_json;

// A column a site, top to bottom: many sites run the same one.
Json columns_of(const IterationTable& table, StringTable& strings) {
  Json columns = Json::array();
  for (std::size_t site = 0; site < table.sites.size(); ++site) {
    std::vector<std::uint64_t> cells;
    cells.reserve(table.rows.size());
    for (const IterationTable::Row& row : table.rows)
      cells.push_back(strings.place_of(row.cells[site]));
    columns.push_back(strings.place_of_column(number_column(cells)));
  }
  return columns;
}

Json table_data(const IterationTable& table, const std::vector<std::size_t>& sites,
                StringTable& strings) {
  std::vector<std::uint64_t> passes;
  passes.reserve(table.rows.size());
  for (const IterationTable::Row& row : table.rows) passes.push_back(strings.place_of(row.pass));
  return {{"passes", strings.place_of_column(number_column(passes))},
          {"sites", sites},
          {"cells", columns_of(table, strings)}};
}

std::uint64_t cells_of(const log::RegionReport& region) {
  std::uint64_t cells = 0;
  for (const log::SiteReport& site : region.sites) {
    std::uint64_t passes = site.trials.size();
    for (const log::PassesReport& one : site.passes) passes += one.last - one.first + 1;
    cells += passes;
  }
  return cells;
}

}  // namespace

Json pass_data(const RegionOfJob& of_job, StringTable& strings, CellRoom& room) {
  Json tables = Json::array();
  std::map<std::string, std::size_t> known;
  for (std::size_t rank = 0; rank < of_job.by_rank.size(); ++rank) {
    const log::RegionReport* const region = of_job.by_rank[rank];
    if (region == nullptr || region->sites.empty()) continue;
    const std::uint64_t cells = cells_of(*region);
    if (cells > room.left) continue;
    room.left -= cells;
    const IterationTable table = iteration_table(*region);
    if (table.is_too_large || table.rows.empty()) continue;
    Json data = table_data(table, of_job.places[rank], strings);
    const auto [place, fresh] = known.emplace(data.dump(), tables.size());
    if (fresh) {
      data["ranks"] = Json::array();
      tables.push_back(std::move(data));
    }
    tables[place->second]["ranks"].push_back(rank);
  }
  return tables;
}

}  // namespace contextune::cli
