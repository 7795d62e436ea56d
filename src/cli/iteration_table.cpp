#include "cli/iteration_table.hpp"

#include <algorithm>
#include <map>

#include "cli/summary.hpp"
#include "cli/text.hpp"

namespace contextune::cli {
namespace {

constexpr std::string_view winner_cell = "**winner**";

std::string trial_cell(const log::TrialReport& trial) {
  std::string cell = "config-" + std::to_string(trial.config);
  cell += trial.iteration < 0 ? " (warm-up)" : " (iter-" + std::to_string(trial.iteration) + ")";
  return trial.status.empty() ? cell : cell + " " + trial.status;
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, width_of(text)), ' ');
}

std::string line_of(const std::string& first, const std::vector<std::string>& cells,
                    const std::vector<std::size_t>& widths, std::size_t begin, std::size_t end) {
  std::string line = "| " + padded(first, 5) + " |";
  for (std::size_t i = begin; i < end; ++i) line += " " + padded(cells[i], widths[i]) + " |";
  return line + "\n";
}

}  // namespace

IterationTable iteration_table(const log::RegionReport& region) {
  IterationTable table;
  const std::size_t num_sites = region.sites.size();
  table.sites = site_labels(region, 40);
  std::map<std::uint64_t, std::vector<std::string>> passes;
  std::vector<std::uint64_t> last_pass(num_sites, 0);
  for (std::size_t i = 0; i < num_sites; ++i) {
    const log::SiteReport& site = region.sites[i];
    for (const log::TrialReport& trial : site.trials) {
      auto& cells = passes[trial.pass];
      cells.resize(num_sites);
      cells[i] = trial_cell(trial);
      last_pass[i] = std::max(last_pass[i], trial.pass);
    }
  }
  // A site whose trials are over runs its winner while others go on; before its first one, or where
  // it was not launched, it has nothing to show.
  for (auto& [pass, cells] : passes) {
    for (std::size_t i = 0; i < num_sites; ++i) {
      const bool over = region.sites[i].winner && pass > last_pass[i];
      if (cells[i].empty()) cells[i] = over ? winner_cell : "-";
    }
    table.rows.push_back({std::to_string(pass), cells});
  }
  IterationTable::Row final_row{"final", {}};
  for (const log::SiteReport& site : region.sites) {
    final_row.cells.emplace_back(site.winner ? winner_cell : "undecided");
  }
  if (num_sites > 0) table.rows.push_back(final_row);
  return table;
}

std::string to_markdown(const IterationTable& table, std::size_t width) {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < table.sites.size(); ++i) {
    std::size_t widest = width_of(table.sites[i]);
    for (const auto& row : table.rows) widest = std::max(widest, width_of(row.cells[i]));
    widths.push_back(widest);
  }
  std::string text;
  for (std::size_t begin = 0; begin < widths.size();) {
    std::size_t end = begin;
    std::size_t used = 9;
    while (end < widths.size() && (end == begin || used + widths[end] + 3 <= width)) {
      used += widths[end++] + 3;
    }
    if (!text.empty()) text += "\n";
    text += line_of("pass", table.sites, widths, begin, end) + "|-------|";
    for (std::size_t i = begin; i < end; ++i) text += std::string(widths[i] + 2, '-') + "|";
    text += "\n";
    for (const auto& row : table.rows) text += line_of(row.pass, row.cells, widths, begin, end);
    begin = end;
  }
  return text;
}

}  // namespace contextune::cli
