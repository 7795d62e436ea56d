#include "cli/rank_agreements.hpp"

#include <algorithm>
#include <utility>

namespace contextune::cli {

using log::ProcessReport;
using log::RegionReport;
using log::SyncReport;

std::vector<GroupAgreements> agreements_of(const std::string& region,
                                           const std::map<int, const ProcessReport*>& ranks) {
  std::map<std::string, GroupAgreements> groups;
  std::map<int, const ProcessReport*> entered;
  for (const auto& [rank, process] : ranks) {
    if (std::any_of(process->regions.begin(), process->regions.end(),
                    [&](const RegionReport& r) { return r.name == region; }))
      entered[rank] = process;
    for (const SyncReport& sync : process->syncs) {
      if (sync.region != region) continue;
      GroupAgreements& group = groups[sync.group];
      group.members[rank] = process;
      group.questions[sync.question][rank] = &sync;
    }
  }
  if (groups.size() == 1) groups.begin()->second.members.merge(entered);
  std::vector<GroupAgreements> list;
  for (auto& [name, group] : groups) list.push_back(std::move(group));
  return list;
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
