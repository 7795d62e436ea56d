#include "intercept/graphs/chained_graphs.hpp"

#include <chrono>
#include <exception>

#include "intercept/host/hook_arguments.hpp"

namespace contextune::intercept {
namespace {

constexpr const char* cannot_follow =
    "the program has changed it in a way that cannot be followed.";

bool is_update(contextune_fn fn) {
  return fn == contextune_fn_cuGraphExecUpdate || fn == contextune_fn_cuGraphExecUpdate_v2;
}

}  // namespace

ChainedGraphs::ChainedGraphs(const gpu::Driver& driver, SubmittedKernels& kernels,
                             GraphTable& graphs, std::function<double()> seconds, Left left)
    : driver_(driver),
      kernels_(kernels),
      graphs_(graphs),
      memory_(driver),
      seconds_(std::move(seconds)),
      left_(std::move(left)),
      possible_(ChainedGraph::possible(driver)) {}

void ChainedGraphs::use(Use use, std::uint32_t ordinary) noexcept {
  if (use == Use::Now) before_.store(ordinary_.exchange(ordinary), std::memory_order_relaxed);
  use_.store(use, std::memory_order_relaxed);
}

ChainedGraph* ChainedGraphs::wanted(const KnownGraph& graph) const noexcept {
  for (const auto& one : graph.chained)
    if (one->ordinary == ordinary_.load(std::memory_order_relaxed)) return one.get();
  return nullptr;
}

ChainedGraph* ChainedGraphs::build(KnownGraph& graph, CUgraph from,
                                   bool clone_of_program) noexcept {
  if (!possible_ || from == nullptr || !graph.may_be_chained || seconds_() <= 0) return nullptr;
  const auto begin = std::chrono::steady_clock::now();
  ++attempts_;
  ChainedGraph* built = nullptr;
  try {
    const std::uint32_t ordinary = ordinary_.load(std::memory_order_relaxed);
    drop_others(graph);
    auto made = std::make_unique<ChainedGraph>(driver_, kernels_, memory_, graph.flags(),
                                               graph.context(), ordinary);
    made->build(from, clone_of_program);
    ++built_;
    edges_ += made->edges();
    built = graph.chained.emplace_back(std::move(made)).get();
  } catch (const std::exception& error) {
    drop(graph, error.what());
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  spent_ns_ += static_cast<std::uint64_t>(std::chrono::nanoseconds(took).count());
  return built;
}

void ChainedGraphs::drop_others(KnownGraph& graph) noexcept {
  const std::uint32_t now = ordinary_.load(std::memory_order_relaxed);
  const std::uint32_t before = before_.load(std::memory_order_relaxed);
  graph.keep_chained(
      [&](const ChainedGraph& one) { return one.ordinary == now || one.ordinary == before; });
}

void ChainedGraphs::drop(KnownGraph& graph, const char* why) noexcept {
  graph.drop_chained();
  try {
    left_(std::string("A graph of the program's is not chained: ") + why);
  } catch (const std::exception&) {
    // No memory to say it.
  }
}

CUresult ChainedGraphs::launch(const GraphCall& call) noexcept {
  const Use use = use_.load(std::memory_order_relaxed);
  const auto graph = use == Use::Never ? nullptr : graphs_.find(call.exec);
  if (graph == nullptr) return graphs_.as_written(call);
  const std::lock_guard lock(graph->mutex);
  const KnownGraph::Launch real = graphs_.real(call.fn);
  const bool wants = use == Use::Now && graph->may_be_chained;
  if (wants && graph->chained.size() > 1) drop_others(*graph);
  const ChainedGraph* to_use = wants ? wanted(*graph) : nullptr;
  if (wants && to_use == nullptr) {
    if (graph->was_changed())
      ++disturbed_;  // until the program's next update
    else
      to_use = build(*graph, graph->clone(), true);
  }
  const CUgraphExec chained =
      to_use != nullptr && to_use->exec() != nullptr ? to_use->exec() : graph->exec;
  CUgraphExec launched = nullptr;
  const CUresult result = graph->launch(real, call, chained, false, launched);
  if (chained == graph->exec) return result;
  if (result != CUDA_SUCCESS && launched == chained) {
    drop(*graph, "its second instantiation could not be launched.");
    return graph->launch(real, call, graph->exec, false, launched);
  }
  if (launched == chained) {
    ++launches_;
  } else {
    ++disturbed_;
  }
  return result;
}

void ChainedGraphs::follow(KnownGraph& graph, contextune_fn fn, void* const* args) noexcept {
  for (const auto& one : graph.chained)
    if (!one->follow(fn, args)) return drop(graph, cannot_follow);
}

void ChainedGraphs::changed(contextune_fn fn, void* const* args) noexcept {
  const auto graph = graphs_.find(argument<CUgraphExec>(args, 0));
  if (graph == nullptr) return;
  const std::lock_guard lock(graph->mutex);
  const Use use = use_.load(std::memory_order_relaxed);
  if (use == Use::Never) {
    graph->drop_chained();
  } else if (is_update(fn)) {
    follow(*graph, fn, args);
    if (use == Use::Now && wanted(*graph) == nullptr)
      (void)build(*graph, argument<CUgraph>(args, 1), false);
  } else {
    if (graph->chained.empty() && !graph->was_changed()) (void)build(*graph, graph->clone(), true);
    follow(*graph, fn, args);
  }
  // An update brings parameters into step again, but not which nodes are off.
  if (fn == contextune_fn_cuGraphNodeSetEnabled && graph->chained.empty()) graph->drop_chained();
  graph->change();
}

void ChainedGraphs::update_failed(CUgraphExec exec) noexcept {
  const auto graph = graphs_.find(exec);
  if (graph == nullptr) return;
  const std::lock_guard lock(graph->mutex);
  graph->drop_chained();
  graph->change();
}

void ChainedGraphs::uploaded(contextune_fn fn, void* const* args) noexcept {
  if (use_.load(std::memory_order_relaxed) == Use::Never) return;
  const auto graph = graphs_.find(argument<CUgraphExec>(args, 0));
  if (graph == nullptr) return;
  const auto launched = fn == contextune_fn_cuGraphUpload_ptsz ? contextune_fn_cuGraphLaunch_ptsz
                                                               : contextune_fn_cuGraphLaunch;
  const GraphCall call(launched, graph->exec, argument<CUstream>(args, 1));
  const std::lock_guard lock(graph->mutex);
  if (const ChainedGraph* const chained = wanted(*graph)) chained->upload(call.stream);
}

ChainedGraphs::Totals ChainedGraphs::totals() const noexcept {
  return {built_,         edges_,    launches_,
          disturbed_,     attempts_, 1e-9 * static_cast<double>(spent_ns_),
          memory_.bytes()};
}

}  // namespace contextune::intercept
