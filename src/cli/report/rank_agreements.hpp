#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "log/run_report.hpp"

namespace contextune::cli {

/// The questions that one group of ranks had to agree on for a region, as each rank logged them.
/// Points into the processes that it was made from.
struct GroupAgreements {
  std::map<int, const log::ProcessReport*> members;
  std::map<std::uint64_t, std::map<int, const log::SyncReport*>> questions;  ///< number -> by rank
};

/// By region, one for each group that has asked something for it. Where there is but one, all of
/// `ranks` that entered the region are in it; else those that have a line of it.
[[nodiscard]] std::map<std::string, std::vector<GroupAgreements>> agreements_of(
    const std::map<int, const log::ProcessReport*>& ranks);

/// Whether any rank committed it.
[[nodiscard]] bool was_committed(const std::map<int, const log::SyncReport*>& by_rank);

/// Whether all members of the group committed it with the same hash.
[[nodiscard]] bool was_agreed_on(const std::map<int, const log::SyncReport*>& by_rank,
                                 const GroupAgreements& group);

}  // namespace contextune::cli
