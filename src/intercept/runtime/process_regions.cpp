#include "intercept/runtime/process_regions.hpp"

#include <algorithm>
#include <exception>
#include <string_view>

#include "environment/variables.hpp"
#include "intercept/host/hash.hpp"
#include "intercept/host/own_arithmetic.hpp"
#include "intercept/host/uncancelled.hpp"
#include "intercept/marks/open_regions.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/program/thread_state.hpp"
#include "intercept/regions/discovered_region.hpp"
#include "intercept/regions/process_region.hpp"
#include "intercept/regions/tuned_region.hpp"
#include "intercept/runtime/runtime.hpp"

namespace contextune::intercept {
namespace {

constexpr std::size_t most_regions = 1024;

std::uint64_t mark_of_domain(std::string_view domain) noexcept {
  // Apart from RegionEntries::api_mark and the like.
  return hash_bytes(2, domain.data(), domain.size()) | 2U;
}

}  // namespace

void ProcessRegions::read_marks() {
  std::vector<std::string> faults;
  marks_ = parse_region_marks(options_.region, faults);
  for (const std::string& one : faults) services_.log.fault(one);
  of_marks_ = std::vector<std::atomic<LaunchRegion*>>(marks_.size());
}

bool ProcessRegions::has_marked_stretch() const noexcept {
  return std::ranges::any_of(marks_, [](const RegionMark& mark) {
    return mark.kind != RegionMark::Kind::Process && mark.kind != RegionMark::Kind::Auto;
  });
}

bool ProcessRegions::has_mark(RegionMark::Kind kind) const noexcept {
  return std::ranges::any_of(marks_, [kind](const RegionMark& mark) { return mark.kind == kind; });
}

LaunchRegion* ProcessRegions::find(std::string_view name) {
  const std::lock_guard lock(mutex_);
  const auto known = by_name_.find(name);
  return known == by_name_.end() ? nullptr : known->second.get();
}

LaunchRegion& ProcessRegions::find_or_make(const std::string& name, const Options& options,
                                           Kind kind, const StoredAs& as) {
  const auto check_room = [&] {
    if (by_name_.size() < most_regions || by_name_.contains(name)) return;
    throw TooManyRegions("there are " + std::to_string(most_regions) +
                         " regions already; give regions fixed names");
  };
  if (!options_.discover) {
    {
      const std::lock_guard lock(mutex_);
      check_room();  // before anything is read and kept for it
    }
    (void)services_.store.entry_of(name, as);  // reads files, which nobody is to wait for
  }
  const std::lock_guard lock(mutex_);
  check_room();
  if (const auto known = by_name_.find(name); known != by_name_.end()) return *known->second;
  std::shared_ptr<LaunchRegion> made;
  if (options_.discover) {
    made = std::make_shared<DiscoveredRegion>(name, services_);
  } else if (kind == Kind::Process) {
    made = std::make_shared<ProcessRegion>(name, options, services_);
  } else {
    using Takes = TunedRegion::Takes;
    const bool is_found = kind == Kind::FoundCollectives;
    made = std::make_shared<TunedRegion>(name, options, services_, as,
                                         is_found ? Takes::Collectives : Takes::All);
  }
  LaunchRegion& region = *by_name_.emplace(name, std::move(made)).first->second;
  // What finds collectives asks for itself.
  if (kind != Kind::FoundCollectives) services_.gate.show_messages(true);
  return region;
}

LaunchRegion* ProcessRegions::of_mark(const RegionMark& mark) noexcept {
  std::atomic<LaunchRegion*>& known = of_marks_[static_cast<std::size_t>(&mark - marks_.data())];
  if (LaunchRegion* const region = known.load(std::memory_order_acquire)) return region;
  const Uncancelled uncancelled;
  const OwnArithmetic arithmetic;
  try {
    Options options = options_;
    if (options.mode == Mode::Body) options.mode = Mode::Auto;  // nobody can run its code again
    // Kernels that have knobs and are in no other region are tuned as the process.
    const bool is_auto = mark.kind == RegionMark::Kind::Auto;
    LaunchRegion& made = find_or_make(
        is_auto ? "process" : mark.name, options,
        is_auto || mark.kind == RegionMark::Kind::Process ? Kind::Process : Kind::Marked);
    known.store(&made, std::memory_order_release);
    return &made;
  } catch (const std::exception& error) {
    services_.log.fallback(FallbackReason::InternalError, mark.name, {}, error.what());
    return nullptr;
  }
}

void ProcessRegions::begin_process(const RegionMark& mark) {
  has_process_ = true;
  services_.open.set_background(of_mark(mark));
}

void ProcessRegions::work_was_waited_for() noexcept {
  if (!services_.store.any_on_probation() || services_.stopped.load(std::memory_order_acquire))
    return;
  for (LaunchRegion* region : all()) region->check_probation();
}

LaunchRegion* ProcessRegions::of_graph(CUgraphExec exec) noexcept {
  const auto graph = services_.graphs.find(exec);
  if (graph == nullptr) return nullptr;
  try {
    const std::lock_guard lock(graph->mutex);
    if (graph->own_region == nullptr && graph->nodes() != nullptr) {
      graph->own_region = &find_or_make("graph:" + graph->name(), options_, Kind::Marked);
    }
    if (graph->own_region == nullptr) {
      services_.log.fallback(
          graph->was_changed() ? FallbackReason::GraphChanged : FallbackReason::GraphUntunable,
          "graph", {}, graph->was_changed() ? "" : graph->why_not());
    }
    return graph->own_region;
  } catch (const std::exception& error) {
    services_.log.fallback(FallbackReason::InternalError, "graph", {}, error.what());
    return nullptr;
  }
}

std::vector<LaunchRegion*> ProcessRegions::all() noexcept {
  std::vector<LaunchRegion*> all;
  const std::lock_guard lock(mutex_);
  try {
    all.reserve(by_name_.size());
    for (const auto& [name, region] : by_name_) all.push_back(region.get());
  } catch (const std::exception&) {
    all.clear();  // no memory
  }
  return all;
}

void ProcessRegions::range(contextune_range_kind kind, const char* domain, const char* name,
                           std::uint64_t id) noexcept {
  if (domain == nullptr) domain = "";
  if (kind == contextune_range_push) {
    return push(domain, name == nullptr ? "" : name);
  }
  if (kind == contextune_range_pop) {
    const EntryFrame frame = this_thread().close(mark_of_domain(domain));
    if (frame.region != nullptr) frame.region->entries().ended(frame);
    return;
  }
  process_range(kind, domain, name, id);
}

void ProcessRegions::process_range(contextune_range_kind kind, const char* domain, const char* name,
                                   std::uint64_t id) noexcept {
  const Uncancelled uncancelled;
  const OwnArithmetic arithmetic;
  if (kind == contextune_range_start) {
    for (const RegionMark& mark : marks_) {
      if (name == nullptr || !mark.opens_on(domain, name)) continue;
      LaunchRegion* region = of_mark(mark);
      if (region == nullptr) return;
      try {
        const std::lock_guard lock(mutex_);
        if (!by_range_.emplace(id, region).second) return;
      } catch (const std::exception&) {
        return;  // no memory: the range is no entry
      }
      region->entries().begin_in_process();
      return;
    }
    if (name != nullptr) seen_ranges_.saw(domain, name);
  } else {
    LaunchRegion* region = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto place = by_range_.find(id);
      if (place == by_range_.end()) return;
      region = place->second;
      by_range_.erase(place);
    }
    region->entries().end_in_process();
  }
}

void ProcessRegions::push(const char* domain_text, const char* name_text) noexcept {
  const std::string_view domain = domain_text;
  const std::string_view name = name_text;
  const std::uint64_t mark_number = mark_of_domain(domain);
  for (const RegionMark& mark : marks_) {
    if (!mark.opens_on(domain, name)) continue;
    if (LaunchRegion* region = of_mark(mark)) {
      region->entries().begin_on_thread(mark_number, false);
      return;
    }
  }
  seen_ranges_.saw(domain, name);
  (void)this_thread().open({mark_number, nullptr, false, false});
}

void ProcessRegions::profiler(bool on) noexcept {
  for (const RegionMark& mark : marks_) {
    if (mark.kind != RegionMark::Kind::Profiler) continue;
    LaunchRegion* region = of_mark(mark);
    if (region == nullptr) return;
    if (on) {
      region->entries().begin_in_process();
    } else {
      region->entries().end_in_process();
    }
  }
}

bool ProcessRegions::was_entered(const RegionMark& mark) noexcept {
  if (mark.kind == RegionMark::Kind::Auto) return true;
  const std::lock_guard lock(mutex_);
  const auto first = by_name_.lower_bound(mark.name);
  if (first == by_name_.end()) return false;
  // A graph's region is named after the mark and the graph.
  return mark.kind == RegionMark::Kind::Graph ? first->first.rfind(mark.name + ":", 0) == 0
                                              : first->first == mark.name;
}

std::string ProcessRegions::why_not(const RegionMark& mark) const noexcept {
  if (mark.kind != RegionMark::Kind::Nvtx) return {};
  try {
    const std::string text = "The region was never entered. ";
    const std::string ranges = seen_ranges_.text();
    if (!ranges.empty()) return text + "NVTX ranges that were seen: " + ranges + ".";
    const char* const injection = variable("NVTX_INJECTION64_PATH");
    if (injection != nullptr && *injection != '\0') return text + "No NVTX range was seen.";
    return text +
           "No NVTX range was seen, since NVTX_INJECTION64_PATH is not set: set it to "
           "libcontextune_preload.so, as `contextune run` does.";
  } catch (const std::exception&) {
    return {};  // no memory: what it always says
  }
}

void ProcessRegions::report_never_entered() noexcept {
  for (const RegionMark& mark : marks_) {
    if (mark.kind == RegionMark::Kind::Nvtx && was_entered(mark))
      seen_ranges_.add(mark.domain, mark.name);
  }
  for (const RegionMark& mark : marks_) {
    if (!was_entered(mark))
      services_.log.fallback(FallbackReason::RegionNeverEntered, mark.name, {}, why_not(mark));
  }
}

}  // namespace contextune::intercept
