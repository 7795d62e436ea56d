#include "cli/report/rank_agreements.hpp"

#include <algorithm>
#include <utility>

namespace contextune::cli {

using log::ProcessReport;
using log::RegionReport;
using log::SyncReport;

std::map<std::string, std::vector<GroupAgreements>> agreements_of(
    const std::map<int, const ProcessReport*>& ranks) {
  std::map<std::string, std::map<std::string, GroupAgreements>> groups;  // by region, then by name
  for (const auto& [rank, process] : ranks) {
    for (const SyncReport& sync : process->syncs) {
      GroupAgreements& group = groups[sync.region][sync.group];
      group.members[rank] = process;
      group.questions[sync.question][rank] = &sync;
    }
  }
  for (const auto& [rank, process] : ranks) {
    for (const RegionReport& region : process->regions) {
      const auto asked = groups.find(region.name);
      if (asked != groups.end() && asked->second.size() == 1)
        asked->second.begin()->second.members.emplace(rank, process);
    }
  }
  std::map<std::string, std::vector<GroupAgreements>> lists;
  for (auto& [region, named] : groups) {
    for (auto& [name, group] : named) lists[region].push_back(std::move(group));
  }
  return lists;
}

bool was_committed(const std::map<int, const SyncReport*>& by_rank) {
  return std::any_of(by_rank.begin(), by_rank.end(),
                     [](const auto& one) { return one.second->verdict == "committed"; });
}

bool was_agreed_on(const std::map<int, const SyncReport*>& by_rank, const GroupAgreements& group) {
  return by_rank.size() == group.members.size() &&
         std::all_of(by_rank.begin(), by_rank.end(), [&](const auto& one) {
           return one.second->verdict == "committed" &&
                  one.second->hash == by_rank.begin()->second->hash;
         });
}

}  // namespace contextune::cli
