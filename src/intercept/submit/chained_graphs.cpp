#include "intercept/submit/chained_graphs.hpp"

#include <chrono>
#include <exception>

#include "intercept/hook_arguments.hpp"

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
      seconds_(std::move(seconds)),
      left_(std::move(left)),
      possible_(ChainedGraph::possible(driver)) {}

void ChainedGraphs::build(KnownGraph& graph, CUgraph from, bool clone_of_program) noexcept {
  if (!possible_ || from == nullptr || !graph.may_be_chained || seconds_() <= 0) return;
  const auto begin = std::chrono::steady_clock::now();
  ++attempts_;
  try {
    auto made = std::make_unique<ChainedGraph>(driver_, kernels_, graph.flags(), graph.context());
    made->build(from, clone_of_program);
    ++built_;
    edges_ += made->edges();
    graph.chained = std::move(made);
  } catch (const std::exception& error) {
    drop(graph, error.what());
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  spent_ns_ += static_cast<std::uint64_t>(std::chrono::nanoseconds(took).count());
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
  if (wants && graph->chained == nullptr) {
    if (graph->was_changed())
      ++disturbed_;  // until the program's next update
    else
      build(*graph, graph->clone(), true);
  }
  const CUgraphExec chained =
      wants && graph->chained != nullptr ? graph->chained->exec() : graph->exec;
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

void ChainedGraphs::changed(contextune_fn fn, void* const* args) noexcept {
  const auto graph = graphs_.find(argument<CUgraphExec>(args, 0));
  if (graph == nullptr) return;
  const std::lock_guard lock(graph->mutex);
  const Use use = use_.load(std::memory_order_relaxed);
  if (use == Use::Never) {
    graph->drop_chained();
  } else if (graph->chained != nullptr) {
    if (!graph->chained->follow(fn, args)) drop(*graph, cannot_follow);
  } else if (is_update(fn)) {
    if (use == Use::Now) build(*graph, argument<CUgraph>(args, 1), false);
  } else if (!graph->was_changed()) {
    build(*graph, graph->clone(), true);
    if (graph->chained != nullptr && !graph->chained->follow(fn, args)) drop(*graph, cannot_follow);
  }
  // An update brings parameters into step again, but not which nodes are off.
  if (fn == contextune_fn_cuGraphNodeSetEnabled && graph->chained == nullptr) graph->drop_chained();
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
  if (graph->chained != nullptr) graph->chained->upload(call.stream);
}

ChainedGraphs::Totals ChainedGraphs::totals() const noexcept {
  return {built_, edges_, launches_, disturbed_, attempts_, 1e-9 * static_cast<double>(spent_ns_)};
}

}  // namespace contextune::intercept
