#include "intercept/replay/region_access.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "intercept/graphs/graph_table.hpp"
#include "intercept/measuring/measurement.hpp"
#include "intercept/memory/process_memory.hpp"
#include "intercept/program/arguments.hpp"

namespace contextune::intercept {
namespace {

using gpu::KernelAccess;
using gpu::MemoryRange;

/// An operation of the region, with the allocations by their beginnings.
struct Step {
  std::set<CUdeviceptr> reads;
  std::set<CUdeviceptr> writes;
  std::set<CUdeviceptr> steers;  ///< what is read there decides where it goes
  const Site* site = nullptr;    ///< whose default it is
};

bool may_be_filled(const Allocation& one) {
  // Some variables are constants, of whose readers nothing is known.
  const bool is_own = one.kind == AllocationKind::Device || one.kind == AllocationKind::Pool ||
                      one.kind == AllocationKind::Virtual;
  return is_own && one.accessible && !one.exported && !one.of_nccl;
}

class Finder {
 public:
  Finder(const LaunchRegion& region, SiteTable& table) : region_(region), table_(table) {}

  RegionAccess run(const Recording& recording) {
    for (const Operation& operation : recording.operations) add(operation);
    find_free();
    return std::move(found_);
  }

 private:
  [[nodiscard]] const RegionServices& services() const { return region_.services(); }

  void fail(const std::string& why) {
    if (found_.unknown.empty()) found_.unknown = why;
  }

  std::optional<CUdeviceptr> allocation_of(std::uint64_t address) {
    const auto found = services().memory.allocations().find(address);
    if (!found) return std::nullopt;
    known_.emplace(found->begin, *found);
    return found->begin;
  }

  void add(const Operation& operation) {
    switch (operation.kind) {
      case Operation::Kind::Launch:
        return add_launch(*operation.launch);
      case Operation::Kind::Graph:
        return add_graph(operation.graph);
      case Operation::Kind::Call:
        return add_call(operation);
      case Operation::Kind::Collective:
        return add_collective(*operation.collective);
      case Operation::Kind::Record:
      case Operation::Kind::Wait:
      case Operation::Kind::Synchronise:
        return;
    }
  }

  void add_call(const Operation& operation) {
    const std::string_view name = services().frontend->name(operation.fn);
    Step step;
    const auto to = allocation_of(operation.arguments[0]);
    if (to) step.writes.insert(*to);
    if (!name.starts_with("cuMemset")) {
      if (const auto from = allocation_of(operation.arguments[1])) step.reads.insert(*from);
    }
    // A variable in constant memory is no allocation.
    const bool is_to_host = operation.host && operation.host->writes;
    if (!to && !is_to_host) step.steers = step.reads;
    steps_.push_back(std::move(step));
  }

  void add_collective(const contextune_nccl_call& call) {
    Step step;
    if (const auto from = allocation_of(reinterpret_cast<std::uint64_t>(call.sendbuff)))
      step.reads.insert(*from);
    if (const auto to = allocation_of(reinterpret_cast<std::uint64_t>(call.recvbuff)))
      step.writes.insert(*to);
    received_.insert(step.writes.begin(), step.writes.end());
    steps_.push_back(std::move(step));
  }

  /// Memory that the graph sets is made of nothing, and left out.
  void add_graph(CUgraphExec exec) {
    const auto graph = services().graphs.find(exec);
    std::shared_ptr<const GraphNodes> nodes;
    if (graph != nullptr) {
      const std::lock_guard lock(graph->mutex);
      nodes = graph->nodes();
    }
    if (nodes == nullptr) return fail("the nodes of a CUDA graph are not known");
    const auto launch_of = [&](const GraphKernel& one, CUlaunchConfig& config) {
      Launch launch = one.launch(config);
      launch.timed_alone = services().measurement.tells_graph_kernels_apart();
      if (services().several_devices)
        launch.context = one.params.ctx != nullptr ? one.params.ctx : graph->context();
      return launch;
    };
    CUlaunchConfig config{};
    for (const GraphKernel& one : nodes->kernels()) {
      const Launch launch = launch_of(one, config);
      const SiteTable::Found found = table_.find_known(launch);
      if (found.binding == nullptr) return fail("a kernel of a CUDA graph is not known");
      add_launch(launch, found);
    }
    for (const GraphKernel& one : nodes->inner_kernels()) add_launch(launch_of(one, config), {});
    for (const GraphCopy& copy : copies_of(services().driver, graph->clone())) {
      Step step;
      if (const auto to = allocation_of(copy.to)) step.writes.insert(*to);
      if (const auto from = allocation_of(copy.from)) step.reads.insert(*from);
      if (step.writes.empty()) step.steers = step.reads;
      steps_.push_back(std::move(step));
    }
  }

  void add_launch(const RecordedLaunch& recorded) {
    const Launch launch = region_.launch_of(recorded.call());
    add_launch(launch, table_.find(launch));
  }

  void add_launch(const Launch& launch, const SiteTable::Found& found) {
    const KnownKernel* const kernel = services().kernels.find(launch.function, launch.context);
    if (kernel == nullptr) return fail("a kernel of the region is not known");
    const Site* const site = found.resolved == nullptr ? nullptr : &found.resolved->site();
    const KernelAccess access = access_of(*kernel);
    Step step;
    const std::string why = resolve(access, *kernel, launch, step);
    if (!why.empty()) fail("kernel " + kernel->identity.name + ": " + why);
    step.site = site;
    if (site != nullptr) add_site(*site, *kernel, launch, step, why);
    if (site != nullptr) add_variants(*site, found, launch, *kernel);
    steps_.push_back(std::move(step));
  }

  KernelAccess access_of(const KnownKernel& kernel) {
    const auto known = accesses_.find(&kernel);
    if (known != accesses_.end()) return known->second;
    KernelAccess access;
    const auto image = services().variables.image_of(kernel.identity);
    if (image != nullptr) {
      access = image->access_of(kernel.identity.symbol, kernel.identity.binary_version);
    } else {
      access.unknown = "its image is not known";
    }
    return accesses_.emplace(&kernel, std::move(access)).first->second;
  }

  /// Addresses that a parameter may hold at such a place.
  static std::vector<std::uint64_t> words_at(const KernelAccess::Place& place,
                                             const KnownKernel& kernel, const Launch& launch) {
    std::vector<std::uint64_t> words;
    if (place.parameter >= kernel.identity.parameters.size()) return words;
    const ArgumentLayout& layout = kernel.identity.parameters[place.parameter];
    const auto* const bytes =
        static_cast<const std::byte*>(argument_of(launch, place.parameter, layout));
    if (bytes == nullptr) return words;
    const bool is_anywhere = place.offset_bytes == KernelAccess::Place::anywhere;
    for (std::size_t at = is_anywhere ? 0 : place.offset_bytes; at + 8 <= layout.size_bytes;
         at += 8) {
      std::memcpy(&words.emplace_back(), bytes + at, 8);
      if (!is_anywhere) break;
    }
    return words;
  }

  /// The variable that a place is.
  std::optional<gpu::VariableRange> variable_at(const KernelAccess::Place& place,
                                                const KnownKernel& kernel) {
    const auto use = services().variables.of(kernel.identity);
    const auto found = std::ranges::find_if(
        use->variables, [&](const gpu::VariableRange& one) { return one.name == place.variable; });
    return found == use->variables.end() ? std::nullopt : std::optional(*found);
  }

  /// Memory that a kernel may find at one of its places.
  struct Found {
    std::vector<CUdeviceptr> memory;
    bool is_unknown = false;  ///< memory that nobody knows may be there
    bool is_nothing = false;  ///< a null pointer, which nobody follows, or a constant
  };
  Found found_at(const KernelAccess::Place& place, const KnownKernel& kernel,
                 const Launch& launch) {
    Found found;
    std::vector<std::uint64_t> words;
    if (place.variable.empty()) {
      words = words_at(place, kernel, launch);
      found.is_nothing =
          !words.empty() && std::ranges::all_of(words, [](std::uint64_t one) { return one == 0; });
    } else if (const auto variable = variable_at(place, kernel)) {
      found.is_nothing = variable->kind == gpu::VariableKind::Constant;
      if (!found.is_nothing) words.push_back(variable->address);
    }
    for (const std::uint64_t word : words)
      if (const auto begin = allocation_of(word)) found.memory.push_back(*begin);
    found.is_unknown = !place.variable.empty() && found.memory.empty() && !found.is_nothing;
    return found;
  }

  /// @return why it cannot be told, as a clause
  std::string resolve(const KernelAccess& access, const KnownKernel& kernel, const Launch& launch,
                      Step& step) {
    if (!access.unknown.empty()) return access.unknown;
    std::vector<Found> places;
    for (const KernelAccess::Place& place : access.places) {
      const Found& one = places.emplace_back(found_at(place, kernel, launch));
      if (place.steers) step.steers.insert(one.memory.begin(), one.memory.end());
    }
    for (const KernelAccess::Use& use : access.uses) {
      bool any = false;
      for (std::size_t i = 0; i < places.size(); ++i) {
        if ((use.bases >> i & 1U) == 0) continue;
        const Found& one = places[i];
        if (one.is_unknown)
          return "it uses the variable " + access.places[i].variable + ", which is not known";
        any = any || !one.memory.empty() || (one.is_nothing && !use.is_indirect);
        if (use.reads) step.reads.insert(one.memory.begin(), one.memory.end());
        if (use.writes) step.writes.insert(one.memory.begin(), one.memory.end());
      }
      if (!any) return "none of its arguments is the address that it uses";
    }
    return {};
  }

  void add_site(const Site& site, const KnownKernel& kernel, const Launch& launch, const Step& step,
                const std::string& why) {
    RegionAccess::OfSite& of_site = found_.sites[&site];
    if (of_site.unknown.empty()) of_site.unknown = why;
    const auto add = [&](std::vector<MemoryRange>& ranges, CUdeviceptr begin) {
      const MemoryRange range{begin, known_.at(begin).bytes};
      if (std::ranges::find(ranges, range) == ranges.end()) ranges.push_back(range);
    };
    for (std::uint32_t i = 0; i < kernel.identity.parameters.size(); ++i) {
      for (const std::uint64_t word :
           words_at({i, KernelAccess::Place::anywhere, false}, kernel, launch))
        if (const auto begin = allocation_of(word)) add(of_site.memory, *begin);
    }
    for (const CUdeviceptr begin : step.writes) add(of_site.written, begin);
    const auto use = services().variables.of(kernel.identity);
    for (const gpu::VariableRange& variable : use->variables)
      if (const auto begin = allocation_of(variable.address)) add(of_site.memory, *begin);
  }

  /// Adds the steps of other functions that configs launch in its place.
  void add_variants(const Site& site, const SiteTable::Found& found, const Launch& launch,
                    const KnownKernel& kernel) {
    for (std::uint32_t config = 1; config < site.configs.size(); ++config) {
      const Variant* const variant = table_.variant(found, config, launch);
      if (variant == nullptr || !variant->usable || variant->function == nullptr ||
          variant->function == launch.function)
        continue;
      const KnownKernel* const other = services().kernels.find(variant->function, launch.context);
      Step step;
      const bool is_known =
          other != nullptr &&
          other->identity.parameters.size() == kernel.identity.parameters.size() &&
          resolve(access_of(*other), *other, launch, step).empty();
      if (!is_known) {
        found_.sites[&site].unknown_configs.insert(config);
        continue;
      }
      steps_.push_back(std::move(step));
    }
  }

  void find_free() {
    if (!found_.unknown.empty()) return;
    std::set<CUdeviceptr> steering;
    for (const auto& [begin, one] : known_)
      if (!may_be_filled(one)) steering.insert(begin);
    for (const Step& step : steps_) steering.insert(step.steers.begin(), step.steers.end());
    add_sources(steering);  // what steers is made of it
    if (std::ranges::any_of(received_, [&](CUdeviceptr begin) { return steering.contains(begin); }))
      return fail("data from other ranks decides where the region goes");
    std::set<CUdeviceptr> written;
    for (const Step& step : steps_) written.insert(step.writes.begin(), step.writes.end());
    for (const CUdeviceptr begin : written) {
      if (steering.contains(begin)) continue;
      found_.free.push_back({begin, known_.at(begin).bytes});
      found_.reads_free = found_.reads_free || std::ranges::any_of(steps_, [&](const Step& step) {
                            return step.reads.contains(begin);
                          });
    }
    for (auto& [site, of_site] : found_.sites)
      if (!of_site.unknown_configs.empty()) of_site.never_read = find_never_read(*site);
  }

  /// All that the region makes any of it of.
  void add_sources(std::set<CUdeviceptr>& memory) const {
    const auto makes_any = [&](const Step& step) {
      return std::ranges::any_of(step.writes,
                                 [&](CUdeviceptr begin) { return memory.contains(begin); });
    };
    for (bool more = true; more;) {
      more = false;
      for (const Step& step : steps_) {
        if (!makes_any(step)) continue;
        for (const CUdeviceptr begin : step.reads) more = memory.insert(begin).second || more;
      }
    }
  }

  [[nodiscard]] std::vector<MemoryRange> find_never_read(const Site& site) const {
    std::set<CUdeviceptr> read;
    for (const Step& step : steps_)
      if (step.site == &site) read.insert(step.reads.begin(), step.reads.end());
    add_sources(read);
    std::vector<MemoryRange> others = found_.free;
    std::erase_if(others, [&](const MemoryRange& one) { return read.contains(one.begin); });
    return others;
  }

  const LaunchRegion& region_;
  SiteTable& table_;
  RegionAccess found_;
  std::vector<Step> steps_;
  std::set<CUdeviceptr> received_;  ///< by collectives
  std::map<CUdeviceptr, Allocation> known_;
  std::map<const KnownKernel*, KernelAccess> accesses_;
};

}  // namespace

RegionAccess find_access(const LaunchRegion& region, SiteTable& table, const Recording& recording) {
  return Finder(region, table).run(recording);
}

}  // namespace contextune::intercept
