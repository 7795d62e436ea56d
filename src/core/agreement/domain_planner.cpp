#include "core/agreement/domain_planner.hpp"

#include <algorithm>
#include <set>

#include "core/value/byte_stream.hpp"

namespace contextune {
namespace {

constexpr std::size_t most_regions = 4096;
constexpr std::uint32_t most_communicators = 65536;
// Of a job, as an answer is trusted to have.
constexpr std::size_t most_ranks = std::size_t{1} << 20U;

bool decode(const Payload& bytes, DomainReport& report) {
  ByteReader from(bytes);
  report.region = from.number<std::uint64_t>();
  report.num_ranks = from.number<std::uint32_t>();
  report.attends = from.number<std::uint8_t>() != 0;
  report.waits_no_longer = from.number<std::uint8_t>() != 0;
  report.leaves = from.number<std::uint8_t>() != 0;
  const auto kind = from.number<std::uint8_t>();
  if (kind > static_cast<std::uint8_t>(DomainReport::Kind::Ends)) return false;
  report.kind = static_cast<DomainReport::Kind>(kind);
  const auto count = from.number<std::uint32_t>();
  if (count > most_communicators) return false;
  for (std::uint32_t i = 0; i < count && !from.failed(); ++i) {
    DomainReport::Communicator& one = report.used.emplace_back();
    one.id = from.number<std::uint64_t>();
    one.ranks = from.number<std::uint32_t>();
    one.here = from.number<std::uint32_t>();
  }
  return !from.failed() && from.left() == 0;
}

Payload encode_domain(const RankSet& ranks) {
  Payload bytes;
  ByteWriter to(bytes);
  ranks.write_to(to);
  return bytes;
}

}  // namespace

Payload encode(const DomainReport& report) {
  Payload bytes;
  ByteWriter to(bytes);
  to.number(report.region);
  to.number(report.num_ranks);
  to.number(static_cast<std::uint8_t>(report.attends));
  to.number(static_cast<std::uint8_t>(report.waits_no_longer));
  to.number(static_cast<std::uint8_t>(report.leaves));
  to.number(static_cast<std::uint8_t>(report.kind));
  to.number(static_cast<std::uint32_t>(report.used.size()));
  for (const DomainReport::Communicator& one : report.used) {
    to.number(one.id);
    to.number(one.ranks);
    to.number(one.here);
  }
  return bytes;
}

std::optional<std::vector<std::uint32_t>> decode_domain(const Payload& answer) {
  ByteReader from(answer);
  RankSet ranks;
  if (!ranks.read_from(from) || from.failed() || from.left() != 0 || ranks.size() > most_ranks)
    return std::nullopt;
  return std::vector<std::uint32_t>(ranks.begin(), ranks.end());
}

Payload DomainPlanner::decide(const Topic& topic, std::span<const Payload> said, std::string& why) {
  DomainReport report;
  if (topic.ranks.size() != 1 || said.size() != 1 || !decode(said.front(), report)) {
    why = "a rank's report on its communicators cannot be read";
    return {};
  }
  if (regions_.size() >= most_regions && !regions_.contains(report.region)) {
    why = "there are more than " + std::to_string(most_regions) + " regions";
    return {};
  }
  const std::uint32_t rank = topic.ranks.front();
  if (report.kind != DomainReport::Kind::Asks) {
    note_place(rank, report);
    return encode_domain({});
  }
  const std::uint64_t number = report.region;
  Region& region = regions_[number];
  if (const auto domain = region.domain_of.find(rank); domain != region.domain_of.end())
    return encode_domain(region.domains[domain->second]);
  // It may be back, and counts once.
  forget(region, rank);
  if (report.leaves) {
    leave(region, rank, std::move(report));
    return encode_domain({});
  }
  const bool waits_no_longer = report.waits_no_longer;
  count(region, report);
  if (report.used.empty()) region.use_none.insert(rank);
  for (const DomainReport::Communicator& one : report.used)
    region.sharers[one.id].ranks.insert(rank);
  region.reports[rank] = std::move(report);
  // A rank that does not repeat a body has no part in what others would repeat with it.
  const auto refuse = [&](const Ranks& those) {
    const auto absent = one_that_left(region, those);
    if (!region.reports.at(rank).attends || !absent) return false;
    why =
        "rank " + std::to_string(*absent) + ", of a communicator that it uses, does not repeat it";
    DomainReport own = region.reports.at(rank);
    forget(region, rank);
    leave(region, rank, std::move(own));
    return true;
  };
  if (refuse({rank})) return {};
  if (!waits_no_longer && !may_be_whole(number, rank)) return encode_domain({});
  const Ranks ranks = connected(region, rank);
  if (refuse(ranks)) return {};
  if (!waits_no_longer && !is_whole(number, ranks)) return encode_domain({});
  // No further rank comes to those who wait in other regions either.
  const bool is_complete = region.reports.at(rank).used.empty() && is_whole(number, ranks);
  const auto others = is_complete ? whole_where_none_is_used() : std::map<std::uint64_t, Ranks>();
  settle(region, ranks);
  for (const auto& [other, waiting] : others)
    if (other != number) settle(regions_[other], waiting);
  return encode_domain(region.domains[region.domain_of.at(rank)]);
}

void DomainPlanner::count(Region& region, const DomainReport& report) {
  for (const DomainReport::Communicator& one : report.used) region.sharers[one.id].here += one.here;
}

void DomainPlanner::leave(Region& region, std::uint32_t rank, DomainReport report) {
  count(region, report);
  for (const DomainReport::Communicator& one : report.used)
    region.sharers[one.id].left.insert(rank);
  region.left[rank] = std::move(report);
}

std::optional<std::uint32_t> DomainPlanner::one_that_left(const Region& region,
                                                          const Ranks& ranks) {
  for (const std::uint32_t rank : ranks) {
    for (const DomainReport::Communicator& one : region.reports.at(rank).used) {
      const std::set<std::uint32_t>& left = region.sharers.at(one.id).left;
      if (!left.empty()) return *left.begin();
    }
  }
  return std::nullopt;
}

void DomainPlanner::forget(Region& region, std::uint32_t rank) {
  for (auto* const reports : {&region.reports, &region.left}) {
    const auto report = reports->find(rank);
    if (report == reports->end()) continue;
    for (const DomainReport::Communicator& one : report->second.used) {
      Sharers& sharers = region.sharers[one.id];
      sharers.here -= one.here;
      sharers.ranks.erase(rank);
      sharers.left.erase(rank);
      if (sharers.here == 0 && sharers.ranks.empty()) region.sharers.erase(one.id);
    }
    reports->erase(report);
  }
  region.use_none.erase(rank);
}

// All ranks ask again and again until the last has come: until then nothing more is looked at.
bool DomainPlanner::may_be_whole(std::uint64_t number, std::uint32_t rank) const {
  const Region& region = regions_.at(number);
  const DomainReport& report = region.reports.at(rank);
  if (!report.used.empty())
    return std::all_of(report.used.begin(), report.used.end(), [&](const auto& one) {
      return region.sharers.at(one.id).here >= one.ranks;
    });
  std::size_t most_accounted_for =
      places_.size() - region.num_repeating + region.left.size() + region.domain_of.size();
  for (const auto& [other, waiting] : regions_) most_accounted_for += waiting.reports.size();
  return most_accounted_for >= report.num_ranks;
}

void DomainPlanner::note_place(std::uint32_t rank, const DomainReport& report) {
  if (report.kind == DomainReport::Kind::Begins) {
    Region& region = regions_[report.region];
    region.came.insert(rank);
    if (places_[rank].insert(report.region).second) ++region.num_repeating;
  } else if (const auto place = places_.find(rank); place != places_.end()) {
    if (place->second.erase(report.region) > 0) --regions_.at(report.region).num_repeating;
    if (place->second.empty()) places_.erase(place);
  }
}

void DomainPlanner::settle(Region& region, const Ranks& ranks) {
  for (const std::uint32_t one : ranks) {
    forget(region, one);
    region.domain_of[one] = region.domains.size();
  }
  region.domains.emplace_back(ranks);
}

std::map<std::uint64_t, DomainPlanner::Ranks> DomainPlanner::whole_where_none_is_used() const {
  std::map<std::uint64_t, Ranks> whole;
  for (const auto& [number, region] : regions_) {
    Ranks ranks;
    for (const auto& [rank, report] : region.reports)
      if (report.attends && report.used.empty()) ranks.push_back(rank);
    if (!ranks.empty() && is_whole(number, ranks)) whole[number] = std::move(ranks);
  }
  return whole;
}

DomainPlanner::Ranks DomainPlanner::connected(const Region& region, std::uint32_t rank) {
  if (region.use_none.contains(rank)) return {region.use_none.begin(), region.use_none.end()};
  std::set<std::uint32_t> found{rank};
  std::set<std::uint64_t> followed;
  for (std::vector<std::uint32_t> next{rank}; !next.empty();) {
    const DomainReport& from = region.reports.at(next.back());
    next.pop_back();
    for (const DomainReport::Communicator& one : from.used) {
      if (!followed.insert(one.id).second) continue;
      for (const std::uint32_t other : region.sharers.at(one.id).ranks)
        if (found.insert(other).second) next.push_back(other);
    }
  }
  return {found.begin(), found.end()};
}

bool DomainPlanner::is_elsewhere(std::uint32_t rank, std::uint64_t number,
                                 const Ranks& waiting) const {
  const auto places = places_.find(rank);
  // In this one it has only not asked yet.
  if (places == places_.end() || places->second.contains(number)) return false;
  return std::any_of(places->second.begin(), places->second.end(), [&](std::uint64_t place) {
    const std::set<std::uint32_t>& came = regions_.at(place).came;
    return std::none_of(waiting.begin(), waiting.end(),
                        [&](std::uint32_t one) { return came.contains(one); });
  });
}

std::set<std::uint32_t> DomainPlanner::accounted_for(std::uint64_t number,
                                                     const Ranks& waiting) const {
  std::set<std::uint32_t> ranks;
  for (const auto& [rank, places] : places_)
    if (is_elsewhere(rank, number, waiting)) ranks.insert(rank);
  for (const auto& [other, region] : regions_) {
    for (const auto& [rank, report] : region.reports)
      if (report.attends || (other == number && report.used.empty())) ranks.insert(rank);
    if (other != number) continue;
    for (const auto& [rank, report] : region.left) ranks.insert(rank);
    for (const auto& [rank, domain] : region.domain_of) ranks.insert(rank);
  }
  return ranks;
}

bool DomainPlanner::is_whole(std::uint64_t number, const Ranks& ranks) const {
  const Region& region = regions_.at(number);
  const DomainReport& first = region.reports.at(ranks.front());
  if (first.used.empty()) return accounted_for(number, ranks).size() >= first.num_ranks;
  std::map<std::uint64_t, DomainReport::Communicator> seen;
  for (const std::uint32_t rank : ranks) {
    for (const DomainReport::Communicator& one : region.reports.at(rank).used) {
      DomainReport::Communicator& sum = seen[one.id];
      sum.ranks = std::max(sum.ranks, one.ranks);
      sum.here += one.here;
    }
  }
  for (const auto& [rank, report] : region.left)
    for (const DomainReport::Communicator& one : report.used)
      if (seen.contains(one.id)) seen[one.id].here += one.here;
  return std::all_of(seen.begin(), seen.end(),
                     [](const auto& one) { return one.second.here >= one.second.ranks; });
}

}  // namespace contextune
