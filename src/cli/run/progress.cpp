#include "cli/run/progress.hpp"

#include <algorithm>

#include "cli/words/text.hpp"
#include "log/logfmt.hpp"

namespace contextune::cli {
namespace {

std::size_t num_decided(const log::RegionReport& region) {
  return static_cast<std::size_t>(std::ranges::count_if(
      region.sites, [](const log::SiteReport& site) { return site.winner.has_value(); }));
}

std::string where(const log::RegionReport& region) {
  std::string text = region.stage.empty() ? "entered" : region.stage;
  text += ", " + count_text(region.passes, "pass", "passes");
  text += ", " + count_text(region.sites.size(), "site", "sites");
  if (const std::size_t decided = num_decided(region); decided > 0) {
    text += ", " + std::to_string(decided) + " decided";
  }
  return text;
}

std::string who(const log::ProcessReport& process, std::size_t num_processes) {
  if (num_processes == 1) return {};
  return "rank " + std::to_string(process.rank) + ", pid " + std::to_string(process.pid) + ": ";
}

}  // namespace

std::vector<std::string> Progress::news(const std::vector<log::ProcessReport>& processes) {
  std::vector<std::string> lines;
  for (const log::ProcessReport& process : processes) {
    for (const log::RegionReport& region : process.regions) {
      const std::string key =
          std::to_string(process.rank) + ' ' + std::to_string(process.pid) + ' ' + region.name;
      const auto [known, fresh] = stages_.emplace(key, region.stage);
      if (!fresh && known->second == region.stage) continue;
      known->second = region.stage;
      lines.push_back("contextune: " + who(process, processes.size()) +
                      log::printable(region.name) + ": " + log::printable(where(region)));
    }
  }
  return lines;
}

std::string status_text(const std::vector<log::ProcessReport>& processes) {
  std::string text;
  for (const log::ProcessReport& process : processes) {
    for (const log::RegionReport& region : process.regions) {
      text += text.empty() ? "contextune: " : "; ";
      text += who(process, processes.size()) + log::printable(region.name) + ": " +
              log::printable(where(region));
    }
  }
  return text;
}

}  // namespace contextune::cli
