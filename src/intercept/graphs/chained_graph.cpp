#include "intercept/graphs/chained_graph.hpp"

#include <contextune/error.hpp>

#include <algorithm>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include "intercept/host/hook_arguments.hpp"
#include "intercept/submit/order_attributes.hpp"

namespace contextune::intercept {
namespace {

struct EdgeList {
  std::vector<CUgraphNode> from;
  std::vector<CUgraphNode> to;
  std::vector<CUgraphEdgeData> data;

  void add(CUgraphNode one, CUgraphNode other, const CUgraphEdgeData& how) {
    from.push_back(one);
    to.push_back(other);
    data.push_back(how);
  }
};

EdgeList edges_of(const gpu::Driver& driver, CUgraph graph) {
  EdgeList edges;
  std::size_t count = 0;
  gpu::check(driver, driver.cuGraphGetEdges_v2(graph, nullptr, nullptr, nullptr, &count),
             "cuGraphGetEdges");
  edges.from.resize(count);
  edges.to.resize(count);
  edges.data.resize(count);
  if (count == 0) return edges;
  gpu::check(driver,
             driver.cuGraphGetEdges_v2(graph, edges.from.data(), edges.to.data(), edges.data.data(),
                                       &count),
             "cuGraphGetEdges");
  return edges;
}

bool is_plain_edge(const CUgraphEdgeData& data) {
  return data.type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT && data.from_port == 0 && data.to_port == 0;
}

CUDA_KERNEL_NODE_PARAMS as_now(const CUDA_KERNEL_NODE_PARAMS_v1& old) {
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = old.func;
  params.gridDimX = old.gridDimX;
  params.gridDimY = old.gridDimY;
  params.gridDimZ = old.gridDimZ;
  params.blockDimX = old.blockDimX;
  params.blockDimY = old.blockDimY;
  params.blockDimZ = old.blockDimZ;
  params.sharedMemBytes = old.sharedMemBytes;
  params.kernelParams = old.kernelParams;
  params.extra = old.extra;
  return params;
}

/// The program's call once more, for another instantiation and its node.
template <typename... Rest>
bool set(CUresult (*function)(CUgraphExec, CUgraphNode, Rest...), CUgraphExec exec,
         CUgraphNode node, void* const* args) noexcept {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    return function != nullptr &&
           function(exec, node, argument<Rest>(args, 2 + i)...) == CUDA_SUCCESS;
  }
  (std::index_sequence_for<Rest...>{});
}

}  // namespace

bool ChainedGraph::possible(const gpu::Driver& driver) noexcept {
  return driver.cuGraphClone != nullptr && driver.cuGraphDestroy != nullptr &&
         driver.cuGraphGetEdges_v2 != nullptr && driver.cuGraphRemoveDependencies_v2 != nullptr &&
         driver.cuGraphAddDependencies_v2 != nullptr && driver.cuGraphInstantiate != nullptr &&
         driver.cuGraphExecDestroy != nullptr && driver.cuGraphExecUpdate != nullptr &&
         driver.cuGraphNodeFindInClone != nullptr && driver.cuGraphUpload != nullptr;
}

void ChainedGraph::clear() noexcept {
  const gpu::RelaxedCapture relaxed(driver_);
  if (exec_ != nullptr) (void)driver_.cuGraphExecDestroy(exec_);
  if (graph_ != nullptr) (void)driver_.cuGraphDestroy(graph_);
  exec_ = nullptr;
  graph_ = nullptr;
  clone_ = nullptr;
}

SubmittedKernel* ChainedGraph::kernel_of(CUfunction function, CUkernel kernel,
                                         CUcontext context) noexcept {
  if (function == nullptr) function = reinterpret_cast<CUfunction>(kernel);
  const gpu::CurrentContext current(driver_, context == nullptr ? context_ : context);
  return kernels_.find(function, context == nullptr ? context_ : context, cache_);
}

bool ChainedGraph::is_plain(const GraphKernel& kernel) const {
  if (!std::all_of(kernel.attributes.begin(), kernel.attributes.end(), &leaves_order)) return false;
  CUkernelNodeAttrValue value{};
  if (driver_.cuGraphKernelNodeGetAttribute(kernel.node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
                                            &value) == CUDA_SUCCESS &&
      value.memSyncDomain != CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT) {
    return false;
  }
  value = {};
  return driver_.cuGraphKernelNodeGetAttribute(
             kernel.node, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value) != CUDA_SUCCESS ||
         value.accessPolicyWindow.num_bytes == 0;
}

void ChainedGraph::chain(CUgraph copy, std::set<CUgraphNode>& followed,
                         std::set<CUgraphNode>& waiting) {
  const GraphNodes nodes(driver_, copy);
  std::map<CUgraphNode, SubmittedKernel*> kernels;
  for (const GraphKernel& one : nodes.kernels()) {
    if (!is_plain(one)) continue;
    SubmittedKernel* const known = kernel_of(one.params.func, one.params.kern, one.params.ctx);
    if (known == nullptr) continue;
    known->see();
    kernels[one.node] = known;
  }
  const EdgeList all = edges_of(driver_, copy);
  std::map<CUgraphNode, std::size_t> edges_to;
  for (std::size_t i = 0; i < all.to.size(); ++i) {
    ++edges_to[all.to[i]];
    if (is_plain_edge(all.data[i])) continue;
    kernels.erase(all.from[i]);
    kernels.erase(all.to[i]);
  }
  EdgeList plain;
  EdgeList programmatic;
  CUgraphEdgeData how{};
  how.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
  how.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  for (std::size_t i = 0; i < all.to.size(); ++i) {
    const auto from = kernels.find(all.from[i]);
    const auto to = kernels.find(all.to[i]);
    if (from == kernels.end() || to == kernels.end() || edges_to[all.to[i]] != 1 ||
        !from->second->may_be_followed() || !to->second->may_follow(ordinary)) {
      continue;
    }
    to->second->chained.fetch_add(1, std::memory_order_relaxed);
    plain.add(all.from[i], all.to[i], all.data[i]);
    programmatic.add(all.from[i], all.to[i], how);
    followed.insert(all.from[i]);
    waiting.insert(all.to[i]);
  }
  if (waiting.empty()) {
    if (ordinary != 0) return;
    throw Error("No kernel of the graph may start as the one before it ends.");
  }
  gpu::check(driver_,
             driver_.cuGraphRemoveDependencies_v2(copy, plain.from.data(), plain.to.data(),
                                                  plain.data.data(), plain.to.size()),
             "cuGraphRemoveDependencies");
  gpu::check(
      driver_,
      driver_.cuGraphAddDependencies_v2(copy, programmatic.from.data(), programmatic.to.data(),
                                        programmatic.data.data(), programmatic.to.size()),
      "cuGraphAddDependencies");
}

void ChainedGraph::build(CUgraph graph, bool clone_of_program) {
  clear();
  followed_.clear();
  waiting_.clear();
  const gpu::RelaxedCapture relaxed(driver_);
  const gpu::CurrentContext current(driver_, context_);
  gpu::check(driver_, driver_.cuGraphClone(&graph_, graph), "cuGraphClone");
  chain(graph_, followed_, waiting_);
  if (!waiting_.empty()) {
    std::size_t nodes = 0;
    if (driver_.cuGraphGetNodes != nullptr) (void)driver_.cuGraphGetNodes(graph_, nullptr, &nodes);
    const CUresult made = memory_.instantiate(&exec_, graph_, flags_, nodes);
    if (made == CUDA_ERROR_OUT_OF_MEMORY && memory_.refusal() != nullptr)
      throw Error(memory_.refusal());
    gpu::check(driver_, made, "cuGraphInstantiate");
  }
  clone_ = clone_of_program ? graph : nullptr;
}

CUgraphNode ChainedGraph::node_of(CUgraphNode of_program) const noexcept {
  CUgraphNode node = of_program;
  if (clone_ != nullptr &&
      driver_.cuGraphNodeFindInClone(&node, of_program, clone_) != CUDA_SUCCESS) {
    return nullptr;
  }
  CUgraphNode found = nullptr;
  return driver_.cuGraphNodeFindInClone(&found, node, graph_) == CUDA_SUCCESS ? found : nullptr;
}

bool ChainedGraph::may_become(CUgraphNode node, CUfunction function, CUkernel kernel,
                              CUcontext context) noexcept {
  const SubmittedKernel* const known = kernel_of(function, kernel, context);
  return (!waiting_.contains(node) || (known != nullptr && known->may_follow(0))) &&
         (!followed_.contains(node) || (known != nullptr && known->may_be_followed()));
}

bool ChainedGraph::set_kernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& params) noexcept {
  return driver_.cuGraphExecKernelNodeSetParams != nullptr &&
         may_become(node, params.func, params.kern, params.ctx) &&
         driver_.cuGraphExecKernelNodeSetParams(exec_, node, &params) == CUDA_SUCCESS;
}

bool ChainedGraph::update(CUgraph graph) noexcept {
  CUgraph copy = nullptr;
  const gpu::RelaxedCapture relaxed(driver_);
  const gpu::CurrentContext current(driver_, context_);
  bool updated = false;
  try {
    gpu::check(driver_, driver_.cuGraphClone(&copy, graph), "cuGraphClone");
    std::set<CUgraphNode> followed;
    std::set<CUgraphNode> waiting;
    chain(copy, followed, waiting);
    CUgraphExecUpdateResultInfo info{};
    updated = exec_ == nullptr ? waiting.empty()
                               : driver_.cuGraphExecUpdate(exec_, copy, &info) == CUDA_SUCCESS;
    if (!updated && ++rebuilds_ <= most_rebuilds) {
      build(graph, false);
      updated = true;
    }
  } catch (const std::exception&) {
    updated = false;
  }
  if (copy != nullptr) (void)driver_.cuGraphDestroy(copy);
  return updated;
}

bool ChainedGraph::follow(contextune_fn fn, void* const* args) noexcept {
  if (fn == contextune_fn_cuGraphExecUpdate || fn == contextune_fn_cuGraphExecUpdate_v2) {
    return update(argument<CUgraph>(args, 1));
  }
  if (exec_ == nullptr) return fn != contextune_fn_cuGraphNodeSetEnabled;
  const CUgraphNode node = node_of(argument<CUgraphNode>(args, 1));
  if (node == nullptr) return false;
  switch (fn) {
    case contextune_fn_cuGraphExecKernelNodeSetParams:
      return set_kernel(node, as_now(*argument<const CUDA_KERNEL_NODE_PARAMS_v1*>(args, 2)));
    case contextune_fn_cuGraphExecKernelNodeSetParams_v2:
      return set_kernel(node, *argument<const CUDA_KERNEL_NODE_PARAMS*>(args, 2));
    case contextune_fn_cuGraphExecNodeSetParams: {
      const auto* const params = argument<CUgraphNodeParams*>(args, 2);
      if (params->type == CU_GRAPH_NODE_TYPE_KERNEL &&
          !may_become(node, params->kernel.func, params->kernel.kern, params->kernel.ctx)) {
        return false;
      }
      return set(driver_.cuGraphExecNodeSetParams, exec_, node, args);
    }
    case contextune_fn_cuGraphExecMemcpyNodeSetParams:
      return set(driver_.cuGraphExecMemcpyNodeSetParams, exec_, node, args);
    case contextune_fn_cuGraphExecMemsetNodeSetParams:
      return set(driver_.cuGraphExecMemsetNodeSetParams, exec_, node, args);
    case contextune_fn_cuGraphExecHostNodeSetParams:
      return set(driver_.cuGraphExecHostNodeSetParams, exec_, node, args);
    case contextune_fn_cuGraphExecChildGraphNodeSetParams:
      return set(driver_.cuGraphExecChildGraphNodeSetParams, exec_, node, args);
    case contextune_fn_cuGraphExecEventRecordNodeSetEvent:
      return set(driver_.cuGraphExecEventRecordNodeSetEvent, exec_, node, args);
    case contextune_fn_cuGraphExecEventWaitNodeSetEvent:
      return set(driver_.cuGraphExecEventWaitNodeSetEvent, exec_, node, args);
    case contextune_fn_cuGraphExecExternalSemaphoresSignalNodeSetParams:
      return set(driver_.cuGraphExecExternalSemaphoresSignalNodeSetParams, exec_, node, args);
    case contextune_fn_cuGraphExecExternalSemaphoresWaitNodeSetParams:
      return set(driver_.cuGraphExecExternalSemaphoresWaitNodeSetParams, exec_, node, args);
    case contextune_fn_cuGraphExecBatchMemOpNodeSetParams:
      return set(driver_.cuGraphExecBatchMemOpNodeSetParams, exec_, node, args);
    case contextune_fn_cuGraphNodeSetEnabled:
      // Nobody says whom a kernel waits for whose only one before it is switched off, and when this
      // one is built anew, it would have all nodes on.
      if (argument<unsigned>(args, 2) == 0) return false;
      return set(driver_.cuGraphNodeSetEnabled, exec_, node, args);
    default:
      return false;
  }
}

}  // namespace contextune::intercept
