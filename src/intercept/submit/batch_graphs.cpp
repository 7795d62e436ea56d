#include "intercept/submit/batch_graphs.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include "gpu/driver/launch_shape.hpp"
#include "host/own_thread.hpp"

namespace contextune::intercept {
namespace {

/// A batch that is seldom launched is not worth its 8.5 us a node.
constexpr std::uint32_t times_before_built = 2;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

bool BatchGraphs::possible() const noexcept {
  return driver_.cuGraphCreate != nullptr && driver_.cuGraphAddKernelNode != nullptr &&
         driver_.cuGraphAddDependencies_v2 != nullptr && driver_.cuGraphInstantiate != nullptr &&
         driver_.cuGraphExecKernelNodeSetParams != nullptr && driver_.cuGraphLaunch != nullptr &&
         driver_.cuGraphExecDestroy != nullptr && driver_.cuGraphDestroy != nullptr;
}

const char* BatchGraphs::obstacle() const noexcept {
  if (!has_builder_.load(std::memory_order_relaxed))
    return "no thread could be started that builds graphs";
  return memory_.refusal();
}

bool BatchGraphs::launch(LaunchBatch& batch, CUcontext context, CUstream stream,
                         bool is_whole) noexcept {
  std::shared_ptr<Graph> graph;
  {
    const std::lock_guard lock(mutex_);
    const auto known = graphs_.find(batch.sequence());
    if (known != graphs_.end() && known->second->context == context &&
        known->second->last.is_same_sequence(batch)) {
      graph = known->second;
      graph->used = ++clock_;
    }
  }
  if (graph == nullptr) {
    want(batch, context, is_whole);
    return false;
  }
  try {
    set_changed(*graph, batch);
    gpu::check(driver_, driver_.cuGraphLaunch(graph->exec, stream), "cuGraphLaunch");
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    graphs_.erase(batch.sequence());
    note_failure(error.what());
    return false;
  }
  const std::lock_guard lock(mutex_);
  ++totals_.launches;
  totals_.kernels += batch.size();
  return true;
}

void BatchGraphs::note_failure(const char* why) noexcept {
  if (std::exchange(failed_, true)) return;
  try {
    failure_ = "Some launches are gathered and then handed over one by one, without a graph: ";
    failure_ += why;
  } catch (const std::exception&) {
    // Not said, then.
  }
  untold_.store(true, std::memory_order_relaxed);
}

std::string BatchGraphs::take_failure() noexcept {
  if (!untold_.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(mutex_);
  untold_.store(false, std::memory_order_relaxed);
  return std::exchange(failure_, {});
}

CUDA_KERNEL_NODE_PARAMS BatchGraphs::params_of(const LaunchBatch& batch, std::size_t i) {
  const HeldLaunch& held = batch[i];
  CUDA_KERNEL_NODE_PARAMS params{};
  if (held.kernel->kind == gpu::HandleKind::Kernel) {
    params.kern = reinterpret_cast<CUkernel>(held.kernel->handle);
    params.ctx = held.kernel->context;
  } else {
    params.func = held.kernel->handle;
  }
  gpu::set_shape(params, held.grid, held.block, held.shared_bytes);
  return params;
}

void BatchGraphs::set_changed(Graph& graph, LaunchBatch& batch) {
  std::array<void*, SubmittedKernel::most_parameters> pointers;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch.is_same(i, graph.last)) continue;
    CUDA_KERNEL_NODE_PARAMS params = params_of(batch, i);
    batch.arguments_of(i, pointers.data());
    params.kernelParams = pointers.data();
    gpu::check(driver_, driver_.cuGraphExecKernelNodeSetParams(graph.exec, graph.nodes[i], &params),
               "cuGraphExecKernelNodeSetParams");
    graph.last.take(i, batch);
  }
}

void BatchGraphs::want(const LaunchBatch& batch, CUcontext context, bool at_once) noexcept {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  try {
    if (seen_.size() >= most_seen) seen_.clear();
    // Built at this moment; of what is wanted meanwhile nothing is wanted twice.
    std::uint32_t& seen = seen_[batch.sequence()];
    if (seen >= times_before_built) return;
    seen = at_once ? times_before_built : seen + 1;
    if (seen < times_before_built) return;
    wanted_.push_back({batch, context, generation_});
  } catch (const std::exception&) {
    return;  // without memory for it, it is launched singly as until now
  }
  changed_.notify_all();
  if (running_) return;
  try {
    host::start_own_thread("contextune-graph", [this] { work(); });
    running_ = true;
  } catch (const std::exception&) {
    has_builder_ = false;
  }
}

void BatchGraphs::work() noexcept {
  std::unique_lock lock(mutex_);
  constexpr std::chrono::milliseconds patience(200);
  while (changed_.wait_for(lock, patience, [this] { return !wanted_.empty() || stopped_; }) &&
         !stopped_) {
    Wanted wanted = wanted_.front();
    wanted_.pop_front();
    if (wanted.generation != generation_) continue;
    building_ = true;
    lock.unlock();
    const double begin = seconds_now();
    std::shared_ptr<Graph> made;
    try {
      made = build(wanted);
    } catch (const std::exception& error) {
      const std::lock_guard noting(mutex_);
      const bool is_wanted = wanted.generation == generation_;  // else its kernels may have gone
      if (is_wanted && memory_.refusal() == nullptr) note_failure(error.what());
    }
    lock.lock();
    std::shared_ptr<Graph> gone;
    totals_.build_seconds += seconds_now() - begin;
    if (wanted.generation != generation_) {
      gone = std::move(made);
    } else if (made != nullptr) {
      try {
        gone = make_room();
        ++totals_.built;
        made->used = ++clock_;
        graphs_[wanted.batch.sequence()] = std::move(made);
        seen_.erase(wanted.batch.sequence());
      } catch (const std::exception&) {
        gone = std::move(made);
      }
    }
    lock.unlock();
    gone.reset();
    lock.lock();
    building_ = false;
    changed_.notify_all();
  }
  running_ = false;
}

std::shared_ptr<BatchGraphs::Graph> BatchGraphs::build(Wanted& wanted) {
  const gpu::CurrentContext current(driver_, wanted.context);
  const gpu::RelaxedCapture relaxed(driver_);
  auto made = std::make_shared<Graph>(driver_);
  made->context = wanted.context;
  made->last = wanted.batch;
  gpu::check(driver_, driver_.cuGraphCreate(&made->graph, 0), "cuGraphCreate");
  std::array<void*, SubmittedKernel::most_parameters> pointers;
  for (std::size_t i = 0; i < wanted.batch.size(); ++i) {
    CUDA_KERNEL_NODE_PARAMS params = params_of(wanted.batch, i);
    wanted.batch.arguments_of(i, pointers.data());
    params.kernelParams = pointers.data();
    CUgraphNode node = nullptr;
    gpu::check(driver_, driver_.cuGraphAddKernelNode(&node, made->graph, nullptr, 0, &params),
               "cuGraphAddKernelNode");
    made->nodes.push_back(node);
    if (i == 0) continue;
    CUgraphEdgeData edge{};
    if (wanted.batch[i].chained) {
      edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
      edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    }
    gpu::check(driver_,
               driver_.cuGraphAddDependencies_v2(made->graph, &made->nodes[i - 1], &made->nodes[i],
                                                 &edge, 1),
               "cuGraphAddDependencies");
  }
  const CUresult result = memory_.instantiate(&made->exec, made->graph, 0, made->nodes.size());
  if (result != CUDA_SUCCESS) made->exec = nullptr;
  gpu::check(driver_, result, "cuGraphInstantiate");
  return made;
}

BatchGraphs::Graph::~Graph() {
  const gpu::RelaxedCapture relaxed(driver);  // else it would end another thread's capture
  if (exec != nullptr) (void)driver.cuGraphExecDestroy(exec);
  if (graph != nullptr) (void)driver.cuGraphDestroy(graph);
}

std::shared_ptr<BatchGraphs::Graph> BatchGraphs::make_room() noexcept {
  if (graphs_.size() < most_graphs) return nullptr;
  const auto oldest = std::min_element(
      graphs_.begin(), graphs_.end(),
      [](const auto& a, const auto& b) { return a.second->used < b.second->used; });
  std::shared_ptr<Graph> gone = std::move(oldest->second);
  graphs_.erase(oldest);
  return gone;
}

void BatchGraphs::clear() noexcept {
  std::unique_lock lock(mutex_);
  ++generation_;
  wanted_.clear();
  seen_.clear();
  // A graph that is being built uses kernels that are about to go.
  constexpr std::chrono::seconds patience(2);
  (void)changed_.wait_for(lock, patience, [this] { return !building_; });
  auto gone = std::exchange(graphs_, {});
  lock.unlock();
  gone.clear();  // the driver may wait for what is under way
}

void BatchGraphs::stop() noexcept {
  std::unique_lock lock(mutex_);
  stopped_ = true;
  wanted_.clear();
  changed_.notify_all();
  constexpr std::chrono::milliseconds patience(500);
  (void)changed_.wait_for(lock, patience, [this] { return !building_; });
}

BatchGraphs::Totals BatchGraphs::totals() noexcept {
  const std::lock_guard lock(mutex_);
  Totals totals = totals_;
  totals.bytes = memory_.bytes();
  return totals;
}

}  // namespace contextune::intercept
