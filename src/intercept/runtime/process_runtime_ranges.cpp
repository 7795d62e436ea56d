// What the hooks of NVTX and of the profiler call: entries of regions that are marked so.
#include <exception>
#include <string_view>

#include "intercept/host/hash.hpp"
#include "intercept/host/own_arithmetic.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/runtime/process_runtime.hpp"

namespace contextune::intercept {
namespace {

std::uint64_t mark_of_domain(std::string_view domain) noexcept {
  // Apart from LaunchRegion::api_mark and the like.
  return hash_bytes(2, domain.data(), domain.size()) | 2U;
}

}  // namespace

void ProcessRuntime::range(contextune_range_kind kind, const char* domain, const char* name,
                           std::uint64_t id) noexcept {
  if (domain == nullptr) domain = "";
  if (kind == contextune_range_push) {
    return push(domain, name == nullptr ? "" : name);
  }
  if (kind == contextune_range_pop) {
    const EntryFrame frame = this_thread().close(mark_of_domain(domain));
    if (frame.region != nullptr) frame.region->ended(frame);
    return;
  }
  process_range(kind, domain, name, id);
}

void ProcessRuntime::process_range(contextune_range_kind kind, const char* domain, const char* name,
                                   std::uint64_t id) noexcept {
  const Uncancelled uncancelled;
  const OwnArithmetic arithmetic;
  if (kind == contextune_range_start) {
    for (const RegionMark& mark : marks_) {
      if (name == nullptr || !mark.opens_on(domain, name)) continue;
      LaunchRegion* region = region_of_mark(mark);
      if (region == nullptr) return;
      try {
        const std::lock_guard lock(mutex_);
        if (!ranges_.emplace(id, region).second) return;
      } catch (const std::exception&) {
        return;  // no memory: the range is no entry
      }
      region->begin_in_process();
      return;
    }
    if (name != nullptr) seen_ranges_.saw(domain, name);
  } else {
    LaunchRegion* region = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto place = ranges_.find(id);
      if (place == ranges_.end()) return;
      region = place->second;
      ranges_.erase(place);
    }
    region->end_in_process();
  }
}

void ProcessRuntime::push(const char* domain_text, const char* name_text) noexcept {
  const std::string_view domain = domain_text;
  const std::string_view name = name_text;
  const std::uint64_t mark_number = mark_of_domain(domain);
  for (const RegionMark& mark : marks_) {
    if (!mark.opens_on(domain, name)) continue;
    if (LaunchRegion* region = region_of_mark(mark)) {
      region->begin_on_thread(mark_number, false);
      return;
    }
  }
  seen_ranges_.saw(domain, name);
  (void)this_thread().open({mark_number, nullptr, false, false});
}

void ProcessRuntime::profiler(bool on) noexcept {
  for (const RegionMark& mark : marks_) {
    if (mark.kind != RegionMark::Kind::Profiler) continue;
    LaunchRegion* region = region_of_mark(mark);
    if (region == nullptr) return;
    if (on) {
      region->begin_in_process();
    } else {
      region->end_in_process();
    }
  }
}

}  // namespace contextune::intercept
