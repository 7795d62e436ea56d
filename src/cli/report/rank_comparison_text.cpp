#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "cli/report/rank_comparison.hpp"
#include "cli/words/colour.hpp"
#include "cli/words/text.hpp"
#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

using log::printable;
using log::ProcessReport;
using log::RegionReport;

// With more ranks than that a row holds the fastest and the slowest only.
constexpr std::size_t most_columns = 8;

bool one_column_each(const RankComparison& comparison) {
  return comparison.ranks.size() <= most_columns;
}

std::string mark(const RankComparison& comparison) {
  return comparison.simulated ? " (simulated)" : "";
}

std::string time_of(const TimesOfRanks& times, int rank) {
  const auto place = times.seconds.find(rank);
  return place == times.seconds.end() ? "-" : time_text(place->second);
}

std::vector<std::string> row_of(const RankComparison& comparison, std::string label,
                                std::string config, const TimesOfRanks& times,
                                const std::vector<int>& others) {
  std::vector<std::string> row = {std::move(label), std::move(config)};
  if (one_column_each(comparison)) {
    for (const auto& [rank, process] : comparison.ranks) {
      const bool other = std::find(others.begin(), others.end(), rank) != others.end();
      row.push_back(other ? "other" : time_of(times, rank));
    }
  } else {
    row.push_back(time_of(times, times.fastest));
    row.push_back(time_of(times, times.slowest));
  }
  row.push_back(percent_text(times.spread));
  row.push_back(times.spread > 0 ? "rank " + std::to_string(times.slowest) : "-");
  return row;
}

// Two rows a site: what it was with the default, and what it is with the winner.
std::string sites_text(const RankComparison& comparison, const RegionOfRanks& region,
                       std::size_t width) {
  if (region.sites.empty()) return {};
  std::vector<std::string> head = {"site", ""};
  if (one_column_each(comparison)) {
    for (const auto& [rank, process] : comparison.ranks)
      head.push_back("rank " + std::to_string(rank));
  } else {
    head.insert(head.end(), {"fastest", "slowest"});
  }
  std::vector<std::size_t> right;
  for (std::size_t i = 2; i <= head.size(); ++i) right.push_back(i);
  head.insert(head.end(), {"spread", "slowest"});
  TextTable table(right);
  table.add(std::move(head));
  RegionReport named;  // for the names of sites, as in a table of one rank
  for (const SiteOfRanks& site : region.sites) {
    log::SiteReport& name = named.sites.emplace_back();
    name.name = site.name;
    name.key = site.key;
  }
  const std::vector<std::string> labels = site_labels(named, width / 3);
  const std::size_t config_width = std::max<std::size_t>(width * 2 / 5, 20);
  for (std::size_t i = 0; i < region.sites.size(); ++i) {
    const SiteOfRanks& site = region.sites[i];
    const bool is_default = site.config == 0;
    table.add(
        row_of(comparison, labels[i],
               shortened(site.default_config, config_width) + (is_default ? ", the default" : ""),
               site.defaults, is_default ? site.other_ranks : std::vector<int>()));
    if (!is_default)
      table.add(row_of(comparison, "", shortened(site.winner_config, config_width), site.winners,
                       site.other_ranks));
  }
  if (region.sites.size() > 1 && !region.winners.seconds.empty()) {
    table.add(row_of(comparison, "together", "defaults", region.defaults, {}));
    table.add(row_of(comparison, "", "winners", region.winners, {}));
  }
  return table.to_string("    ");
}

std::string agreement_text(const RankComparison& comparison, const RegionOfRanks& region) {
  if (!comparison.together || region.batches == 0) return {};
  if (region.same_batches == region.batches) {
    return "    all ranks agree on " + count_text(region.batches, "batch", "batches") +
           ", same hashes\n";
  }
  return "    all ranks agree on " + std::to_string(region.same_batches) + " of " +
         count_text(region.batches, "batch", "batches") + " only\n";
}

std::string slowest_text(const RegionOfRanks& region) {
  if (!(region.winners.spread > 0)) return {};
  return "    rank " + std::to_string(region.winners.slowest) +
         " is the slowest: its winners take " +
         time_text(region.winners.seconds.at(region.winners.slowest)) + " together, " +
         percent_text(region.winners.spread) + " more than those of rank " +
         std::to_string(region.winners.fastest) + "\n";
}

std::string regions_text(const RankComparison& comparison, const ProcessReport& shown,
                         std::size_t width) {
  std::string text;
  const RegionModes modes(shown);
  std::unordered_map<std::string_view, const RegionReport*> own_regions;
  for (const RegionReport& region : shown.regions) own_regions.emplace(region.name, &region);
  for (const RegionOfRanks& region : comparison.regions) {
    const auto own = own_regions.find(region.name);
    if (comparison.together && own != own_regions.end()) {
      text += region_lines(shown, modes, *own->second);
    } else {
      text += "\n  region " + printable(region.name) + mark(comparison) + "\n";
    }
    text += agreement_text(comparison, region) + sites_text(comparison, region, width) +
            slowest_text(region);
  }
  return text;
}

std::string waits_text(const RankComparison& comparison) {
  if (comparison.waits.empty()) return {};
  TextTable table({0, 1, 2, 3, 4});
  table.add({"rank", "agreed", "not", "waited", "longest"});
  for (const auto& [rank, wait] : comparison.waits) {
    table.add({std::to_string(rank), std::to_string(wait.committed), std::to_string(wait.aborted),
               time_text(wait.seconds), time_text(wait.longest_seconds)});
  }
  return "\n  agreements, and waiting for other ranks" + mark(comparison) + "\n" +
         table.to_string("    ");
}

std::string title(const RankComparison& comparison, const ProcessReport& shown) {
  std::string text = "contextune: " + printable(shown.program.empty() ? "run" : shown.program);
  text += comparison.runs.size() == 1 ? ", run" : ", runs";
  for (std::size_t i = 0; i < std::min(comparison.runs.size(), most_columns); ++i)
    text += (i == 0 ? " " : ", ") + printable(comparison.runs[i]);
  if (comparison.runs.size() > most_columns) text += ", ...";
  return text + " on " + std::to_string(comparison.ranks.size()) + " ranks" +
         (comparison.together ? "" : ", each tuned for itself") + "\n";
}

}  // namespace

std::string comparison_text(const RankComparison& comparison, const ProcessReport& shown,
                            std::size_t width, Detail detail) {
  std::string text = title(comparison, shown) + device_line(shown);
  text += regions_text(comparison, shown, width) + waits_text(comparison);
  if (comparison.together) text += troubles(shown, detail);
  if (comparison.differences.empty()) return text + "\n  the ranks differ in nothing but times\n";
  text += "\n  " + in_tone(Tone::Warning, "the ranks differ") + "\n";
  for (const std::string& difference : comparison.differences)
    text += "    " + printable(difference) + "\n";
  return text;
}

}  // namespace contextune::cli
