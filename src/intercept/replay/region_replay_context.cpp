// The caches that a pass of a replay finds, as one entry of the program leaves them to the next.
#include <algorithm>
#include <iterator>

#include "intercept/replay/region_replay.hpp"

namespace contextune::intercept {
namespace {

/// @param free ascending
bool is_within(const gpu::MemoryRange& block, const std::vector<gpu::MemoryRange>& free) {
  const auto behind = std::upper_bound(
      free.begin(), free.end(), block.begin,
      [](CUdeviceptr begin, const gpu::MemoryRange& one) { return begin < one.begin; });
  return behind != free.begin() && block.end() <= std::prev(behind)->end();
}

}  // namespace

void RegionReplay::find_whether_it_repeats(Replayer& replayer) {
  if (repeats_) return;
  why_restored_ = why_not_on_own_results(replayer);
  if (why_restored_.empty() && !computes_the_same_again(replayer))
    why_restored_ = "run on its own results it computes something else";
  repeats_ = why_restored_.empty();
}

// A counter that nobody resets, or an index that it wrote itself, would lead a second run out of
// the region's memory, or have it wait for ever. So a region is run on what it left itself only if
// all that it changed is free: where it goes is made of memory that is as it was.
std::string RegionReplay::why_not_on_own_results(const Replayer& replayer) const {
  if (together_) return "its ranks repeat it together";
  const auto dirty = memory_->dirty();
  if (dirty.empty()) return {};  // each run is on what it left itself
  if (!access_.unknown.empty()) return access_.unknown;
  if (!std::all_of(dirty.begin(), dirty.end(), [this](const gpu::MemoryRange& block) {
        return is_within(block, access_.free);
      }))
    return "memory that it changes may decide where it goes";
  if (!fills_ || free_.size() != access_.free.size()) return "not all that it may write has a copy";
  for (const Site* site : replayer.sites()) {
    const auto found = access_.sites.find(site);
    if (found == access_.sites.end()) return "a kernel of it is not known";
    const auto& unknown = found->second.unknown_configs;
    if (!unknown.empty() && !is_covered(*site, copied(found->second.never_read)))
      return why_not_covered({site, *unknown.begin()});
  }
  return {};
}

bool RegionReplay::computes_the_same_again(Replayer& replayer) {
  if (memory_->dirty().empty()) return true;
  memory_->restore_final();
  run_with(replayer, {});
  const bool memory = memory_->is_final();
  return replayer.host_results_agree() && memory;
}

void RegionReplay::follow_itself(Replayer& replayer) {
  // A lease counts the collectives of the passes, and of nothing else.
  if (together_) return;
  // Comparing what the pass before left, and putting it back, has gone through the caches.
  replayer.run([](const Site& site) { return site.planned(); });
  ++replays_;
  if (*repeats_) return;
  // Putting memory back now leaves the caches as they are, as far as it can.
  memory_->restore_initial();
}

}  // namespace contextune::intercept
