#include "intercept/graphs/graph_table.hpp"

#include <array>
#include <charconv>
#include <exception>

#include "core/value/stable_hash.hpp"

namespace contextune::intercept {
namespace {

constexpr std::size_t most_graphs = 4096;

// Ours get these flags of the program's; the upload that it asked for is not for ours.
constexpr unsigned long long kept_flags =
    CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

/// All that making other instantiations needs.
bool has_everything(const gpu::Driver& driver) {
  return driver.cuGraphClone != nullptr && driver.cuGraphDestroy != nullptr &&
         driver.cuGraphGetNodes != nullptr && driver.cuGraphGetEdges != nullptr &&
         driver.cuGraphNodeGetType != nullptr && driver.cuGraphNodeFindInClone != nullptr &&
         driver.cuGraphKernelNodeGetParams != nullptr &&
         driver.cuGraphKernelNodeSetParams != nullptr &&
         driver.cuGraphKernelNodeGetAttribute != nullptr &&
         driver.cuGraphKernelNodeSetAttribute != nullptr && driver.cuGraphInstantiate != nullptr &&
         driver.cuGraphExecDestroy != nullptr && driver.cuStreamWaitEvent != nullptr;
}

template <typename T>
T given(void* const* args, std::size_t index) noexcept {
  return *static_cast<const T*>(args[index]);
}

unsigned long long flags_of(contextune_fn fn, void* const* args) noexcept {
  switch (fn) {
    case contextune_fn_cuGraphInstantiateWithFlags:
      return given<unsigned long long>(args, 2);
    case contextune_fn_cuGraphInstantiateWithParams:
    case contextune_fn_cuGraphInstantiateWithParams_ptsz:
      return given<const CUDA_GRAPH_INSTANTIATE_PARAMS*>(args, 2)->flags;
    default:
      return 0;
  }
}

}  // namespace

KnownGraph::KnownGraph(const gpu::Driver& driver, CUgraphExec of, CUgraph clone,
                       unsigned long long flags, std::string why_not)
    : exec(of),
      instances(driver, clone, flags),
      driver_(driver),
      clone_(clone),
      flags_(flags),
      why_not_(std::move(why_not)),
      order_(driver) {
  if (driver.cuCtxGetCurrent(&context_) != CUDA_SUCCESS) context_ = nullptr;
}

KnownGraph::~KnownGraph() {
  chained.clear();
  instances.clear();
  if (clone_ != nullptr) (void)driver_.cuGraphDestroy(clone_);
}

std::shared_ptr<const GraphNodes> KnownGraph::nodes() {
  if (nodes_ == nullptr && why_not_.empty()) {
    try {
      nodes_ = std::make_shared<const GraphNodes>(driver_, clone_);
    } catch (const std::exception& error) {
      why_not_ = error.what();
    }
  }
  return why_not_.empty() ? nodes_ : nullptr;
}

std::string KnownGraph::name() {
  if (name_.empty() && nodes() != nullptr) {
    StableHash hash;
    for (const GraphKernel& kernel : nodes_->kernels()) {
      CUlaunchConfig config;
      const intercept::Launch launch = kernel.launch(config);
      hash.add(shape_of(driver_, launch.function, launch.grid, launch.block, launch.shared_bytes));
    }
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(),
                                   static_cast<std::uint32_t>(hash.value()), 16);
    name_.assign(digits.data(), end.ptr);
  }
  return name_;
}

CUresult KnownGraph::launch(Launch real, const GraphCall& call, CUgraphExec wanted, bool may_change,
                            CUgraphExec& launched) noexcept {
  launched = order_.before(wanted, call.stream);
  const CUresult result = real(launched, call.given_stream);
  if (result == CUDA_SUCCESS) order_.after(launched, call.stream, may_change);
  return result;
}

void KnownGraph::drop_instances() noexcept {
  const CUgraphExec last = order_.last();
  const bool is_chained = std::any_of(chained.begin(), chained.end(),
                                      [&](const auto& one) { return one->exec() == last; });
  if (last != exec && !is_chained) order_.outdate();
  instances.clear();
}

void KnownGraph::drop_chained() noexcept {
  may_be_chained = false;
  keep_chained([](const ChainedGraph&) { return false; });
}

void KnownGraph::keep_chained(const std::function<bool(const ChainedGraph&)>& which) noexcept {
  std::erase_if(chained, [&](const auto& one) {
    if (which(*one)) return false;
    if (one->exec() != nullptr && one->exec() == order_.last()) order_.outdate();
    return true;
  });
}

void KnownGraph::change() noexcept {
  changed_ = true;
  drop_instances();
  regions.clear();
  try {
    why_not_ = "The program has changed the graph since.";
  } catch (const std::exception&) {
    nodes_.reset();
  }
}

GraphTable::GraphTable(const gpu::Driver& driver, const contextune_frontend* frontend,
                       const std::atomic<bool>& stopped)
    : driver_(driver), stopped_(stopped), usable_(has_everything(driver)) {
  if (frontend == nullptr) return;
  launch_[0] = reinterpret_cast<KnownGraph::Launch>(frontend->real(contextune_fn_cuGraphLaunch));
  launch_[1] =
      reinterpret_cast<KnownGraph::Launch>(frontend->real(contextune_fn_cuGraphLaunch_ptsz));
}

std::string GraphTable::clone(CUgraph graph, unsigned long long flags, CUgraph& made) const {
  if (!usable_) return "The driver lacks functions that other instantiations of the graph need.";
  if ((flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) != 0) {
    return "The graph may be launched from the device.";
  }
  const gpu::RelaxedCapture relaxed(driver_);
  const CUresult result = driver_.cuGraphClone(&made, graph);
  if (result == CUDA_SUCCESS) return {};
  made = nullptr;
  return "The graph cannot be cloned: " + gpu::describe(driver_, result) + ".";
}

void GraphTable::instantiated(contextune_fn fn, void* const* args) noexcept {
  if (stopped_.load(std::memory_order_acquire)) return;
  CUgraph made = nullptr;
  try {
    const CUgraphExec exec = *given<CUgraphExec*>(args, 0);
    auto* const graph = given<CUgraph>(args, 1);
    const unsigned long long flags = flags_of(fn, args);
    {
      const std::lock_guard lock(mutex_);
      if (graphs_.size() >= most_graphs) return;
    }
    std::string why_not = clone(graph, flags, made);
    const auto known =
        std::make_shared<KnownGraph>(driver_, exec, made, flags & kept_flags, std::move(why_not));
    made = nullptr;  // the graph has it
    const std::lock_guard lock(mutex_);
    graphs_.insert_or_assign(exec, known);
    empty_.store(false, std::memory_order_release);
  } catch (const std::exception&) {
    if (made != nullptr) (void)driver_.cuGraphDestroy(made);
  }
}

std::shared_ptr<KnownGraph> GraphTable::find(CUgraphExec exec) noexcept {
  if (empty_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto place = graphs_.find(exec);
  return place == graphs_.end() ? nullptr : place->second;
}

void GraphTable::destroyed(CUgraphExec exec) noexcept {
  std::shared_ptr<KnownGraph> last;
  const std::lock_guard lock(mutex_);
  const auto place = graphs_.find(exec);
  if (place == graphs_.end()) return;
  last = std::move(place->second);
  graphs_.erase(place);
}

std::vector<std::shared_ptr<KnownGraph>> GraphTable::all() noexcept {
  std::vector<std::shared_ptr<KnownGraph>> found;
  if (empty_.load(std::memory_order_acquire)) return found;
  const std::lock_guard lock(mutex_);
  try {
    found.reserve(graphs_.size());
    for (const auto& [exec, graph] : graphs_) found.push_back(graph);
  } catch (const std::exception&) {
    found.clear();  // no memory
  }
  return found;
}

void GraphTable::forget_stream(CUstream stream) noexcept {
  for (const auto& graph : all()) {
    const std::lock_guard lock(graph->mutex);
    graph->forget_stream(stream);
  }
}

void GraphTable::forget_context(CUcontext context, bool gone) noexcept {
  if (context == nullptr) return;
  for (const auto& graph : all()) {
    if (graph->context() != context) continue;
    try {
      const std::lock_guard lock(mutex_);
      if (gone) gone_.push_back(graph);
    } catch (const std::exception&) {
      continue;  // no memory: it stays until its handle is another graph's
    }
    destroyed(graph->exec);
  }
}

CUresult GraphTable::as_written(const GraphCall& call) noexcept {
  const KnownGraph::Launch launch = real(call.fn);
  if (launch == nullptr) return CUDA_ERROR_NOT_FOUND;
  const auto graph = find(call.exec);
  if (graph == nullptr) return launch(call.exec, call.given_stream);
  const std::lock_guard lock(graph->mutex);
  CUgraphExec launched = nullptr;
  return graph->launch(launch, call, graph->exec, false, launched);
}

std::string GraphTable::unreplayable(CUgraphExec exec) noexcept {
  try {
    const auto graph = find(exec);
    if (graph == nullptr) return "A CUDA graph was instantiated where contextune did not see it.";
    const std::lock_guard lock(graph->mutex);
    if (graph->clone() == nullptr || graph->was_changed()) return graph->why_not();
    return why_unreplayable(driver_, graph->clone());
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace contextune::intercept
