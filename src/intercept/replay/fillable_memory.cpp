#include "intercept/replay/fillable_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace contextune::intercept {
namespace {

// A rank's report on its own part.
enum class Filling : std::uint32_t { Nothing, Some, Unknown };

/// @param free ascending
bool is_within(const gpu::MemoryRange& block, const std::vector<gpu::MemoryRange>& free) {
  const auto behind = std::upper_bound(
      free.begin(), free.end(), block.begin,
      [](CUdeviceptr begin, const gpu::MemoryRange& one) { return begin < one.begin; });
  return behind != free.begin() && block.end() <= std::prev(behind)->end();
}

}  // namespace

void FillableMemory::find(RegionAccess access, VisitRanks& ranks) {
  access_ = std::move(access);
  free_ = copied(access_.free);
  // Bytes that one rank fills in come to others, whose code has to be known as well.
  const Filling own = !access_.unknown.empty() ? Filling::Unknown
                      : free_.empty()          ? Filling::Nothing
                                               : Filling::Some;
  const auto all = ranks.exchange(true, static_cast<std::uint32_t>(own)).numbers;
  const auto any = [&](Filling filling) {
    return std::ranges::find(all, static_cast<std::uint32_t>(filling)) != all.end();
  };
  fills_ = any(Filling::Some) && !any(Filling::Unknown);
}

void FillableMemory::give_up(std::string why) {
  fills_ = false;
  access_.unknown = std::move(why);
}

FillableMemory::Ranges FillableMemory::copied(const Ranges& ranges) const {
  Ranges found;
  std::copy_if(ranges.begin(), ranges.end(), std::back_inserter(found),
               [this](const gpu::MemoryRange& range) { return memory_.is_copied(range); });
  return found;
}

std::span<const gpu::MemoryRange> FillableMemory::memory_of(const Site& site) const {
  const auto found = access_.sites.find(&site);
  return found == access_.sites.end() ? std::span<const gpu::MemoryRange>() : found->second.memory;
}

bool FillableMemory::has_unknown_code(const Site& site, std::uint32_t config) const {
  const auto found = access_.sites.find(&site);
  return found == access_.sites.end() || found->second.unknown_configs.contains(config);
}

// A function whose code nobody can read computes what the default does, or is wrong. A right one
// depends on nothing but what the default reads, of which the code is known: with other bytes
// anywhere else it runs as in the visit. A function that looks at those bytes all the same is
// wrong. It is found by what it leaves, or, if it crashes, by the journal.
FillableMemory::Ranges FillableMemory::ranges_for_unknown(const Site& site) const {
  const auto found = access_.sites.find(&site);
  if (!fills_ || found == access_.sites.end()) return {};
  Ranges filled = copied(found->second.never_read);
  return is_covered(site, filled) ? filled : Ranges();
}

bool FillableMemory::is_covered(const Site& site, const Ranges& filled) const {
  const auto found = access_.sites.find(&site);
  return fills_ && found != access_.sites.end() && found->second.unknown.empty() &&
         std::ranges::all_of(found->second.written, [&](const gpu::MemoryRange& range) {
           return std::ranges::find(filled, range) != filled.end();
         });
}

std::string FillableMemory::why_not_covered(const Site& site, std::uint32_t config) const {
  if (!access_.unknown.empty()) return access_.unknown;
  const auto found = access_.sites.find(&site);
  if (found != access_.sites.end() && !found->second.unknown.empty()) return found->second.unknown;
  if (fills_ && has_unknown_code(site, config))
    return "the code that it launches is not known, and may read what the region writes";
  return "memory that it writes may decide where the region goes, or has no copy";
}

// A counter that nobody resets, or an index that it wrote itself, would lead a second run out of
// the region's memory, or have it wait for ever. So a region is run on what it left itself only if
// all that it changed is free: where it goes is made of memory that is as it was.
std::string FillableMemory::why_not_on_own_results(const std::vector<const Site*>& sites) const {
  const auto dirty = memory_.dirty();
  if (dirty.empty()) return {};  // each run is on what it left itself
  if (!access_.unknown.empty()) return access_.unknown;
  if (!std::ranges::all_of(
          dirty, [this](const gpu::MemoryRange& block) { return is_within(block, access_.free); }))
    return "memory that it changes may decide where it goes";
  if (!fills_ || free_.size() != access_.free.size()) return "not all that it may write has a copy";
  for (const Site* site : sites) {
    const auto found = access_.sites.find(site);
    if (found == access_.sites.end()) return "a kernel of it is not known";
    const auto& unknown = found->second.unknown_configs;
    if (!unknown.empty() && !is_covered(*site, copied(found->second.never_read)))
      return why_not_covered(*site, *unknown.begin());
  }
  return {};
}

}  // namespace contextune::intercept
