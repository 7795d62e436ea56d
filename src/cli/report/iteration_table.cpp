#include "cli/report/iteration_table.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "cli/report/summary.hpp"
#include "cli/words/text.hpp"

namespace contextune::cli {
namespace {

constexpr std::string_view winner_cell = "**winner**";

/// In the order of the rows: passes of this rank alone come before those that all made.
using Pass = std::pair<bool, std::uint64_t>;

std::string config_cell(std::uint32_t config) {
  return "config-" + std::to_string(config);
}

std::string trial_cell(const log::TrialReport& trial) {
  std::string cell = config_cell(trial.config);
  cell += trial.iteration < 0 ? " (warm-up)" : " (iter-" + std::to_string(trial.iteration) + ")";
  return trial.status.empty() ? cell : cell + " " + trial.status;
}

/// The configs that a site ran, by pass.
std::map<Pass, std::string> cells_of(const log::SiteReport& site) {
  std::map<Pass, std::string> cells;
  std::map<Pass, const log::TrialReport*> trials;
  for (const log::TrialReport& trial : site.trials) {
    trials[{trial.agreed, trial.pass}] = &trial;
    cells[{trial.agreed, trial.pass}] = trial_cell(trial);
  }
  for (const log::PassesReport& passes : site.passes) {
    for (std::uint64_t number = passes.first; number <= passes.last; ++number) {
      const Pass pass{passes.agreed, number};
      std::string& cell = cells[pass];
      const auto tried = trials.find(pass);
      if (!passes.config) {
        cell = "mixed";
      } else if (tried == trials.end()) {
        const bool is_over = !trials.empty() && trials.rbegin()->first < pass;
        const bool has_won = is_over && site.winner && site.winner->config == *passes.config;
        cell = has_won ? winner_cell : config_cell(*passes.config);
      } else if (tried->second->config != *passes.config) {
        const log::TrialReport& trial = *tried->second;
        cell = config_cell(*passes.config) + " (" + config_cell(trial.config) +
               (trial.status.empty() ? "" : " " + trial.status) + ")";
      }
    }
  }
  return cells;
}

/// Whether the log says of all passes which sites ran.
bool tells_all(const log::RegionReport& region) {
  return !region.is_in_table &&
         std::any_of(region.sites.begin(), region.sites.end(),
                     [](const log::SiteReport& site) { return !site.passes.empty(); });
}

/// Whether it says so of this site up to this pass.
bool is_told(const log::SiteReport& site, const Pass& pass) {
  return !site.passes.empty() && pass <= Pass{site.passes.back().agreed, site.passes.back().last};
}

/// Passes of all sites of which the log has a line: at least as many as the table has cells that
/// are not empty.
std::uint64_t num_lines_told(const log::RegionReport& region) {
  std::uint64_t lines = 0;
  for (const log::SiteReport& site : region.sites) {
    lines += site.trials.size();
    for (const log::PassesReport& passes : site.passes) lines += passes.last - passes.first + 1;
  }
  return lines;
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width - std::min(width, width_of(text)), ' ');
}

std::string line_of(const std::string& first, std::size_t first_width,
                    const std::vector<std::string>& cells, const std::vector<std::size_t>& widths,
                    std::size_t begin, std::size_t end) {
  std::string line = "| " + padded(first, first_width) + " |";
  for (std::size_t i = begin; i < end; ++i) line += " " + padded(cells[i], widths[i]) + " |";
  return line + "\n";
}

}  // namespace

IterationTable iteration_table(const log::RegionReport& region) {
  IterationTable table;
  const std::size_t num_sites = region.sites.size();
  table.sites = site_labels(region, 40);
  // A trial and what ran in its pass are two lines of one cell.
  table.is_too_large = num_lines_told(region) > 2 * most_cells;
  if (table.is_too_large) return table;
  std::vector<std::map<Pass, std::string>> cells_of_sites;
  std::map<Pass, std::vector<std::string>> passes;
  for (const log::SiteReport& site : region.sites) {
    for (const auto& [pass, cell] : cells_of_sites.emplace_back(cells_of(site))) passes[pass];
  }
  table.is_too_large = passes.size() * num_sites > most_cells;
  if (table.is_too_large) return table;
  for (auto& [pass, cells] : passes) cells.resize(num_sites);
  for (std::size_t i = 0; i < num_sites; ++i) {
    for (auto& [pass, cell] : cells_of_sites[i]) passes[pass][i] = std::move(cell);
  }
  const bool all_told = tells_all(region);
  const bool any_agreed = !passes.empty() && passes.rbegin()->first.first;
  for (auto& [pass, cells] : passes) {
    for (std::size_t i = 0; i < num_sites; ++i)
      if (cells[i].empty()) cells[i] = all_told || is_told(region.sites[i], pass) ? "-" : "?";
    const bool alone = any_agreed && !pass.first;
    table.rows.push_back({std::to_string(pass.second) + (alone ? " (alone)" : ""), cells});
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
  std::size_t first_width = 5;
  for (const auto& row : table.rows) first_width = std::max(first_width, row.pass.size());
  std::string text;
  for (std::size_t begin = 0; begin < widths.size();) {
    std::size_t end = begin;
    std::size_t used = first_width + 4;
    while (end < widths.size() && (end == begin || used + widths[end] + 3 <= width)) {
      used += widths[end++] + 3;
    }
    if (!text.empty()) text += "\n";
    text += line_of("pass", first_width, table.sites, widths, begin, end) + "|" +
            std::string(first_width + 2, '-') + "|";
    for (std::size_t i = begin; i < end; ++i) text += std::string(widths[i] + 2, '-') + "|";
    text += "\n";
    for (const auto& row : table.rows)
      text += line_of(row.pass, first_width, row.cells, widths, begin, end);
    begin = end;
  }
  return text;
}

}  // namespace contextune::cli
