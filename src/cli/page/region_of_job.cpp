#include "cli/page/region_of_job.hpp"

#include <set>
#include <utility>

#include "cli/report/summary.hpp"

namespace contextune::cli {
namespace {

constexpr std::size_t label_width = 48;

void add_sites(RegionOfJob& of_job) {
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  std::set<std::string> labels;
  const std::size_t num_ranks = of_job.by_rank.size();
  of_job.places.resize(num_ranks);
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    const log::RegionReport* const region = of_job.by_rank[rank];
    if (region == nullptr) continue;
    const std::vector<std::string> names = site_labels(*region, label_width);
    for (std::size_t i = 0; i < region->sites.size(); ++i) {
      const log::SiteReport& site = region->sites[i];
      const auto [place, fresh] =
          known.emplace(std::pair(site.name, site.key), of_job.sites.size());
      if (fresh) {
        // Names that differ in their middle alone may be shortened to the same.
        std::string label = names[i];
        for (int more = 2; !labels.insert(label).second; ++more)
          label = names[i] + " #" + std::to_string(more);
        SiteOfJob& added = of_job.sites.emplace_back();
        added.label = std::move(label);
        added.by_rank.resize(num_ranks);
      }
      of_job.sites[place->second].by_rank[rank] = &site;
      of_job.places[rank].push_back(place->second);
    }
  }
}

}  // namespace

std::vector<RegionOfJob> regions_of(const std::map<int, const log::ProcessReport*>& ranks) {
  std::vector<RegionOfJob> regions;
  std::map<std::string, std::size_t> known;
  std::size_t rank = 0;
  for (const auto& [number, process] : ranks) {
    for (const log::RegionReport& region : process->regions) {
      const auto [place, fresh] = known.emplace(region.name, regions.size());
      if (fresh) {
        RegionOfJob& added = regions.emplace_back();
        added.name = region.name;
        added.by_rank.resize(ranks.size());
      }
      regions[place->second].by_rank[rank] = &region;
    }
    ++rank;
  }
  for (RegionOfJob& region : regions) add_sites(region);
  return regions;
}

}  // namespace contextune::cli
