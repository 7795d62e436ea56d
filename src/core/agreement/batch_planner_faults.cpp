// Faults in the reports of ranks: with any of them nothing is planned.
#include <algorithm>
#include <cmath>

#include "core/agreement/batch_message.hpp"
#include "core/agreement/batch_planner.hpp"

namespace contextune {
namespace {

constexpr std::size_t most_sites_of_a_rank = 65536;

bool same_options(const BatchReport& a, const BatchReport& b) {
  BatchReport first;
  BatchReport second;
  first.options = a.options;
  second.options = b.options;
  return a.inputs_hash == b.inputs_hash && encode(first) == encode(second);
}

}  // namespace

std::string BatchPlanner::hopeless(std::span<const std::uint32_t> ranks,
                                   std::span<const BatchReport> reports) {
  const BatchReport& first = reports.front();
  for (std::size_t r = 0; r < reports.size(); ++r) {
    const std::string rank = name_of_rank(ranks[r]);
    if (!reports[r].leaving.empty()) return rank + " is out of it: " + reports[r].leaving;
    if (!same_options(reports[r], first))
      return rank + " has other options or another space than " + name_of_rank(ranks.front());
  }
  const auto repeats = [](const BatchReport& report) { return !report.bounded; };
  const auto one = std::find_if(reports.begin(), reports.end(), repeats);
  const auto other = std::find_if_not(reports.begin(), reports.end(), repeats);
  if (one == reports.end() || other == reports.end()) return {};
  return name_of_rank(ranks[static_cast<std::size_t>(one - reports.begin())]) +
         " repeats the region until it is tuned, and " +
         name_of_rank(ranks[static_cast<std::size_t>(other - reports.begin())]) +
         " tunes it live: the mode has to be the same";
}

std::vector<BatchReport> BatchPlanner::without_pauses(std::span<const BatchReport> reports) const {
  std::vector<BatchReport> all(reports.begin(), reports.end());
  for (BatchReport& report : all) {
    if (!report.pausing) continue;
    // As far as is known it has run nothing since.
    report.batch = last_.number;
    report.batch_hash = last_hash_;
    report.passes.assign(last_.passes.size(), PassReport{true, false, 0, 0, {}});
  }
  return all;
}

std::string BatchPlanner::fault_of(std::span<const std::uint32_t> ranks,
                                   std::span<const BatchReport> reports) const {
  for (std::size_t r = 0; r < reports.size(); ++r) {
    const BatchReport& report = reports[r];
    const std::string rank = name_of_rank(ranks[r]);
    const bool last = report.batch == last_.number && report.batch_hash == last_hash_;
    const bool before = report.batch + 1 == last_.number && report.batch_hash == before_hash_;
    if ((!last && !before) || report.batch != reports.front().batch) {
      return rank + " answers batch " + std::to_string(report.batch) + ", and batch " +
             std::to_string(last_.number) + " was the last: it has not run what the others have";
    }
    const std::size_t due = last ? last_.passes.size() : before_passes_;
    if (report.passes.size() != due) {
      return rank + " reports " + std::to_string(report.passes.size()) + " passes of " +
             std::to_string(due);
    }
    if (report.new_sites.size() > most_sites_of_a_rank) return rank + " reports too many sites";
    const auto known = [&](SharedIndex site, std::uint32_t config) {
      return site < sites_.size() && config < sites_[site].shared.num_configs;
    };
    bool sound = std::isfinite(report.elapsed_seconds);
    for (const auto& one : report.readied) {
      sound = sound && known(one.site, 0);
      for (const std::uint32_t config : one.unusable) sound = sound && known(one.site, config);
    }
    for (const auto& one : report.rejections) sound = sound && known(one.site, one.config);
    for (const BatchReport::Standing& one : report.standings)
      sound = sound && known(one.site, 0) && one.here > 0 && one.entry <= report.horizon;
    for (const PassReport& pass : report.passes)
      for (const SiteResult& seen : pass.sites) sound = sound && known(seen.site, seen.config);
    if (!sound) return rank + " reports on sites or configs that do not exist";
  }
  return {};
}

}  // namespace contextune
