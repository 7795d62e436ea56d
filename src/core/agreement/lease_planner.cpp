#include "core/agreement/lease_planner.hpp"

#include <algorithm>

namespace contextune {

std::string name_of_rank(std::uint32_t rank) {
  return "rank " + std::to_string(rank);
}

void LeasePlanner::hear(std::span<const std::uint32_t> ranks, std::span<const BatchReport> reports,
                        std::uint64_t first_entry) {
  streams_.clear();
  for (std::size_t r = 0; r < reports.size(); ++r) {
    for (const BatchReport::Standing& standing : reports[r].standings) {
      // Where it repeats the region for us it makes no decision until it has been told.
      const std::uint64_t entries = reports[r].bounded ? first_entry - standing.entry : 0;
      streams_[{standing.site, standing.communicator}].push_back(
          {ranks[r], standing, standing.decisions + entries * standing.per_entry});
    }
  }
}

void LeasePlanner::committed(const Batch& batch) {
  for (const Batch::Lease& lease : batch.leases) {
    last_first_[{lease.site, lease.communicator}] = lease.first_decision;
    held_[lease.site] = lease.afterwards;
  }
}

std::string LeasePlanner::out_of_step(const StreamKey& key, std::span<const Member> members) const {
  const Member& first = members.front();
  const auto begun = last_first_.find(key);
  std::uint64_t here = 0;
  for (const Member& member : members) {
    const std::string rank = name_of_rank(member.rank);
    const BatchReport::Standing& standing = member.standing;
    here += standing.here;
    if (standing.per_entry == 0) {
      return rank + " does not make the same number of them in every entry, or makes some on " +
             "another thread while one begins";
    }
    if (standing.per_entry != first.standing.per_entry) {
      return rank + " makes " + std::to_string(standing.per_entry) + " of them in an entry and " +
             name_of_rank(first.rank) + " " + std::to_string(first.standing.per_entry);
    }
    if (member.start != first.start) {
      return rank + " will be at number " + std::to_string(member.start) + " of them where " +
             name_of_rank(first.rank) + " is at number " + std::to_string(first.start);
    }
    if (begun != last_first_.end() && standing.decisions <= begun->second) {
      return rank + " has not come to those that were agreed on last";
    }
  }
  if (here != first.standing.ranks) {
    return std::to_string(here) + " of the " + std::to_string(first.standing.ranks) +
           " ranks of their communicator make them in this region, as far as it is tuned together";
  }
  return {};
}

std::string LeasePlanner::out_of_step(SharedIndex site) const {
  bool known = false;
  for (const auto& [key, members] : streams_) {
    if (key.first != site) continue;
    known = true;
    std::string why = out_of_step(key, members);
    if (!why.empty()) return why;
  }
  return known ? std::string() : "no rank has said where it stands";
}

void LeasePlanner::lease_to_new_streams(SharedIndex site, std::uint32_t held, Batch& batch) const {
  for (const auto& [key, members] : streams_) {
    if (key.first != site || last_first_.contains(key)) continue;
    if (!out_of_step(key, members).empty()) continue;
    const Member& any = members.front();
    batch.leases.push_back({site, key.second, any.start, any.standing.per_entry, held});
  }
}

double LeasePlanner::cost(SharedIndex site, std::span<const SecondsOfRank> by_rank) const {
  double slowest = 0;
  for (auto at = streams_.lower_bound({site, 0}); at != streams_.end() && at->first.first == site;
       ++at) {
    double least = 0;
    for (const Member& member : at->second) {
      const auto seen = std::lower_bound(
          by_rank.begin(), by_rank.end(), member.rank,
          [](const SecondsOfRank& one, std::uint32_t rank) { return one.rank < rank; });
      if (seen == by_rank.end() || seen->rank != member.rank) continue;
      if (least <= 0 || seen->seconds < least) least = seen->seconds;
    }
    slowest = std::max(slowest, least);
  }
  if (slowest > 0) return slowest;
  double least = by_rank.front().seconds;  // its communicators have ended
  for (const SecondsOfRank& one : by_rank) least = std::min(least, one.seconds);
  return least;
}

std::vector<LeasePlanner::OutOfStep> LeasePlanner::lease(std::span<const SharedIndex> sites,
                                                         Batch& batch) {
  std::vector<OutOfStep> failed;
  batch.leases.clear();
  for (const SharedIndex site : sites) {
    const auto held_at = held_.find(site);
    const std::uint32_t held = held_at == held_.end() ? 0 : held_at->second;
    const std::uint32_t afterwards =
        batch.finished && site < batch.winners.size() ? batch.winners[site] : held;
    const bool is_tried = std::ranges::any_of(batch.passes, [&](const Batch::Pass& pass) {
      return site < pass.configs.size() && pass.configs[site] != held;
    });
    // A site that is measured at its default must run that, and not what won at another size.
    const bool is_first = held_at == held_.end() && !batch.passes.empty();
    const bool must_be_told = is_tried || afterwards != held;
    if (!must_be_told && !is_first) {
      if (held != 0) lease_to_new_streams(site, held, batch);
      continue;
    }
    std::string why = out_of_step(site);
    if (!must_be_told && !why.empty()) continue;
    if (why.empty()) {
      for (const auto& [key, members] : streams_) {
        if (key.first != site) continue;
        const Member& any = members.front();
        batch.leases.push_back({site, key.second, any.start, any.standing.per_entry, afterwards});
      }
      continue;
    }
    for (Batch::Pass& pass : batch.passes)
      if (site < pass.configs.size()) pass.configs[site] = held;
    if (site < batch.winners.size()) batch.winners[site] = held;
    failed.push_back({site, std::move(why)});
  }
  return failed;
}

}  // namespace contextune
