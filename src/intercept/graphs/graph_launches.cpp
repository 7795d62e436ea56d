#include "intercept/graphs/graph_launches.hpp"

#include <algorithm>
#include <exception>

#include "intercept/graphs/graph_sites.hpp"
#include "intercept/tuner/open_pass.hpp"
#include "intercept/tuner/search_sites.hpp"

namespace contextune::intercept {

/// The instantiation to launch, with its configs.
struct GraphLaunches::Choice {
  CUgraphExec exec = nullptr;
  std::vector<std::uint32_t> configs;  ///< by site, as they will run
  std::shared_ptr<const GraphWork> work;
  std::vector<Failed> failed;

  void fail(std::size_t site, std::string why) {
    failed.push_back({site, configs[site], std::move(why)});
    configs[site] = 0;
  }
};

GraphLaunches::GraphLaunches(LaunchRegion& region, const RegionServices& services, SiteTable& table,
                             Search& search)
    : region_(region), services_(services), table_(table), search_(search) {}

void GraphLaunches::captured(const Variant& variant) {
  const std::lock_guard lock(mutex_);
  captured_.insert(shape_of(services_.driver, variant.function, variant.grid, variant.block,
                            variant.shared_bytes));
}

bool GraphLaunches::was_captured(const Launch& launch) {
  const std::lock_guard lock(mutex_);
  return !captured_.empty() &&
         captured_.contains(shape_of(services_.driver, launch.function, launch.grid, launch.block,
                                     launch.shared_bytes));
}

std::string GraphLaunches::why(const Sites& sites, const Failed& failed) {
  return "Config " + std::to_string(failed.config) + " (" +
         sites.sites[failed.site]->configs[failed.config].to_string() +
         ") could not be launched in a graph: " + failed.why + "; the default ran in its place.";
}

GraphLaunches::Sites* GraphLaunches::sites_of(KnownGraph& graph) {
  const auto nodes = graph.nodes();
  if (nodes == nullptr) {
    services_.log.fallback(
        graph.was_changed() ? FallbackReason::GraphChanged : FallbackReason::GraphUntunable,
        region_.name(), {}, graph.was_changed() ? "" : graph.why_not());
    return nullptr;
  }
  auto& place = graph.regions[this];
  const std::uint64_t epoch = services_.kernels.epoch();
  if (place != nullptr) {
    auto& known = static_cast<Sites&>(*place);
    if (known.epoch == epoch) return &known;
    graph.drop_instances();  // their functions may be gone
  }
  auto made = std::make_unique<Sites>();
  made->epoch = epoch;
  const bool apart = services_.measurement.tells_graph_kernels_apart();
  if (!apart) services_.log.fallback(FallbackReason::GraphTimes, region_.name(), {}, {});
  std::vector<SiteIndex> indices;
  for (const GraphKernel& kernel : nodes->kernels()) {
    CUlaunchConfig config;
    Launch launch = kernel.launch(config);
    launch.timed_alone = apart;
    CUcontext context = kernel.params.ctx != nullptr ? kernel.params.ctx : graph.context();
    if (services_.several_devices) launch.context = context;
    const gpu::CurrentContext current(services_.driver, context);
    SiteTable::Found found;
    if (!was_captured(launch)) found = table_.find(launch);
    Site* site = found.resolved == nullptr ? nullptr : &found.resolved->site();
    auto at = Sites::none;
    if (site != nullptr) {
      const auto known = std::find(made->sites.begin(), made->sites.end(), site);
      at = static_cast<std::size_t>(known - made->sites.begin());
      if (known == made->sites.end()) made->sites.push_back(site);
    }
    made->launches.push_back(launch);
    made->found.push_back(found);
    made->site_of.push_back(at);
    indices.push_back(site == nullptr ? no_site : site->index);
  }
  made->own = work_of(services_.driver, *nodes, indices,
                      std::vector<const Variant*>(indices.size(), nullptr));
  Sites* sites = made.get();
  place = std::move(made);
  return sites;
}

bool GraphLaunches::make(KnownGraph& graph, Sites& sites, Choice& choice) {
  std::vector<const Variant*> variants(sites.launches.size(), nullptr);
  std::vector<SiteIndex> indices(sites.launches.size(), no_site);
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const std::size_t site = sites.site_of[i];
    if (site == Sites::none) continue;
    indices[i] = sites.sites[site]->index;
    const std::uint32_t config = choice.configs[site];
    if (config == 0) continue;
    const gpu::CurrentContext current(services_.driver, sites.launches[i].context);
    variants[i] = table_.variant(sites.found[i], config, sites.launches[i]);
    if (variants[i] != nullptr && variants[i]->usable) continue;
    choice.fail(site, variants[i] == nullptr ? "it is not built yet" : variants[i]->why);
    return false;
  }
  CUresult result = CUDA_SUCCESS;
  std::size_t culprit = 0;
  const gpu::CurrentContext current(services_.driver, graph.context());
  CUgraphExec exec = graph.instances.make(*graph.nodes(), variants, result, culprit);
  if (exec == nullptr) {
    if (is_sticky_error(result)) services_.broke(result);
    if (culprit != GraphInstances::nobody) {
      choice.fail(sites.site_of[culprit], gpu::describe(services_.driver, result));
    } else {
      find_culprits(graph, sites, variants, result, choice);
    }
    for (const Failed& failed : choice.failed) sites.refused.emplace(failed.site, failed.config);
    return false;
  }
  choice.exec = exec;
  choice.work = work_of(services_.driver, *graph.nodes(), indices, variants);
  (void)graph.instances.add({exec, &sites, choice.configs, choice.work}, graph.last());
  return true;
}

void GraphLaunches::find_culprits(KnownGraph& graph, const Sites& sites,
                                  const std::vector<const Variant*>& variants, CUresult why,
                                  Choice& choice) {
  std::vector<std::size_t> changed;
  for (std::size_t i = 0; i < choice.configs.size(); ++i) {
    if (choice.configs[i] != 0) changed.push_back(i);
  }
  std::vector<std::size_t> refused;
  for (const std::size_t site : changed) {
    if (changed.size() == 1 || is_sticky_error(why)) break;
    std::vector<const Variant*> alone(variants.size(), nullptr);
    for (std::size_t i = 0; i < variants.size(); ++i) {
      if (sites.site_of[i] == site) alone[i] = variants[i];
    }
    CUresult result = CUDA_SUCCESS;
    std::size_t culprit = 0;
    CUgraphExec exec = graph.instances.make(*graph.nodes(), alone, result, culprit);
    if (exec == nullptr) refused.push_back(site);
    if (exec != nullptr) (void)services_.driver.cuGraphExecDestroy(exec);
  }
  // None of them alone: it is all of them together.
  for (const std::size_t site : refused.empty() ? changed : refused) {
    choice.fail(site, gpu::describe(services_.driver, why));
  }
}

GraphLaunches::Choice GraphLaunches::choose(KnownGraph& graph, Sites& sites,
                                            std::vector<std::uint32_t> configs) {
  Choice choice;
  choice.configs = std::move(configs);
  for (std::size_t i = 0; i < choice.configs.size() && !sites.refused.empty(); ++i) {
    if (sites.refused.contains({i, choice.configs[i]})) choice.fail(i, "it was refused before");
  }
  while (true) {
    if (std::all_of(choice.configs.begin(), choice.configs.end(), [](auto c) { return c == 0; })) {
      choice.exec = graph.exec;
      choice.work = sites.own;
      break;
    }
    if (const GraphInstance* known = graph.instances.find(&sites, choice.configs)) {
      choice.exec = known->exec;
      choice.work = known->work;
      break;
    }
    if (make(graph, sites, choice)) break;
  }
  if (!choice.failed.empty()) {
    std::vector<SiteIndex> omitted;
    for (const Failed& failed : choice.failed) omitted.push_back(sites.sites[failed.site]->index);
    choice.work = without(*choice.work, omitted);
  }
  return choice;
}

void GraphLaunches::report(const Sites& sites, const Choice& choice, Watch watch,
                           std::uint64_t tag) {
  for (const Failed& failed : choice.failed) {
    Site& site = *sites.sites[failed.site];
    if (watch == Watch::Nothing) {
      search_.sites().drop_winner(site, why(sites, failed));
      continue;
    }
    services_.log.fallback(FallbackReason::LaunchFailed, region_.name(), site.label(),
                           why(sites, failed));
    search_.pass().failed(tag, site.index);
    search_.pass().launched(tag, site.index, 1, 0);
  }
}

void GraphLaunches::issue_once(KnownGraph& graph, const GraphCall& call, const Sites& sites,
                               const Choice& choice, Watch watch, std::optional<CUresult>& made) {
  LaunchTimer* timer = watch == Watch::Activity ? services_.measurement.timer() : nullptr;
  const bool apart = timer != nullptr && timer->tells_graph_kernels_apart();
  const std::uint64_t tag =
      apart ? search_.pass().begin_graph(choice.work) : search_.pass().tag(no_site);
  if (watch == Watch::Span) search_.pass().touch(call.stream, false);
  const bool may_change = !search_.finished() && !sites.sites.empty();
  CUgraphExec launched = nullptr;
  if (timer != nullptr) timer->launch_begin(tag, call.stream);
  made = graph.launch(services_.graphs.real(call.fn), call, choice.exec, may_change, launched);
  if (timer != nullptr) timer->launch_end(tag, call.stream);
  if (made != CUDA_SUCCESS || watch == Watch::Nothing) return;
  if (launched != choice.exec) search_.pass().spoil(FallbackReason::GraphOrder);
  const std::size_t records = apart ? choice.work->kernels.size() : 1;
  search_.pass().graph_launched(tag, *choice.work, apart,
                                timer == nullptr ? 0 : static_cast<std::uint32_t>(records));
  if (watch == Watch::Span) search_.pass().touch(call.stream, true);
}

void GraphLaunches::issue(KnownGraph& graph, const GraphCall& call, Sites& sites, Choice& choice,
                          Watch watch, std::optional<CUresult>& made) {
  issue_once(graph, call, sites, choice, watch, made);
  if (choice.exec != graph.exec && is_launch_config_error(*made)) {
    const CUresult result = *made;
    made.reset();
    for (std::size_t i = 0; i < choice.configs.size(); ++i) {
      if (choice.configs[i] == 0) continue;
      sites.refused.emplace(i, choice.configs[i]);
      choice.fail(i, gpu::describe(services_.driver, result));
    }
    std::vector<Failed> failed = std::move(choice.failed);
    choice = choose(graph, sites, std::move(choice.configs));
    choice.failed = std::move(failed);
    std::vector<SiteIndex> omitted;
    for (const Failed& one : choice.failed) omitted.push_back(sites.sites[one.site]->index);
    choice.work = without(*choice.work, omitted);
    issue_once(graph, call, sites, choice, watch, made);
  }
  if (is_sticky_error(*made)) services_.broke(*made);
}

CUresult GraphLaunches::launch(const GraphCall& call, Watch watch) noexcept {
  const auto graph = services_.graphs.find(call.exec);
  if (graph == nullptr) {
    services_.log.fallback(FallbackReason::GraphUntunable, region_.name(), {},
                           "A CUDA graph was instantiated where contextune did not see it.");
    return unknown(call, watch);
  }
  std::optional<CUresult> made;
  try {
    const std::lock_guard lock(graph->mutex);
    if (Sites* sites = sites_of(*graph)) {
      Choice choice = choose(*graph, *sites, sites->configs([&](const Site& site) {
        return watch != Watch::Nothing ? site.planned() : site.settled();
      }));
      issue(*graph, call, *sites, choice, watch, made);
      if (made == CUDA_SUCCESS) report(*sites, choice, watch, search_.pass().tag(no_site));
      if (watch == Watch::Nothing && search_.finished() && !sites->trimmed) {
        sites->trimmed = true;
        graph->instances.keep_only(sites, graph->last());
      } else if (watch != Watch::Nothing) {
        sites->trimmed = false;
      }
    }
  } catch (const std::exception& error) {
    region_.stop(FallbackReason::InternalError, error.what());
  }
  return made ? *made : unknown(call, watch);
}

CUresult GraphLaunches::unknown(const GraphCall& call, Watch watch) noexcept {
  if (watch == Watch::Span) search_.pass().touch(call.stream, false);
  const CUresult result = services_.graphs.as_written(call);
  if (watch == Watch::Span && result == CUDA_SUCCESS) search_.pass().touch(call.stream, true);
  return result;
}

CUresult GraphLaunches::launch_with(const GraphCall& call, const ConfigOf& config_of,
                                    std::vector<const Site*>& failed) noexcept {
  const auto graph = services_.graphs.find(call.exec);
  if (graph == nullptr) return services_.graphs.as_written(call);
  std::optional<CUresult> made;
  try {
    const std::lock_guard lock(graph->mutex);
    if (Sites* sites = sites_of(*graph)) {
      Choice choice = choose(*graph, *sites, sites->configs(config_of));
      issue(*graph, call, *sites, choice, Watch::Nothing, made);
      for (const Failed& one : choice.failed) failed.push_back(sites->sites[one.site]);
    }
  } catch (const std::exception& error) {
    region_.stop(FallbackReason::InternalError, error.what());
  }
  return made ? *made : services_.graphs.as_written(call);
}

}  // namespace contextune::intercept
