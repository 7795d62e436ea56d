#include "intercept/graphs/graph_instances.hpp"

#include <algorithm>

#include "gpu/driver/launch_shape.hpp"

namespace contextune::intercept {

const GraphInstance* GraphInstances::find(const void* owner,
                                          const std::vector<std::uint32_t>& configs) {
  const auto place = std::ranges::find_if(
      all_, [&](const GraphInstance& one) { return one.owner == owner && one.configs == configs; });
  if (place == all_.end()) return nullptr;
  all_.splice(all_.begin(), all_, place);
  return &all_.front();
}

const GraphInstance& GraphInstances::add(GraphInstance instance, CUgraphExec busy) {
  all_.push_front(std::move(instance));
  for (auto last = std::prev(all_.end()); all_.size() > most && last != all_.begin();) {
    const auto one = last--;
    if (one->exec == busy) continue;
    (void)driver_.cuGraphExecDestroy(one->exec);
    all_.erase(one);
  }
  return all_.front();
}

void GraphInstances::keep_only(const void* owner, CUgraphExec kept) {
  std::erase_if(all_, [&](const GraphInstance& one) {
    if (one.owner != owner || one.exec == kept) return false;
    (void)driver_.cuGraphExecDestroy(one.exec);
    return true;
  });
}

void GraphInstances::clear() {
  for (const GraphInstance& one : all_) (void)driver_.cuGraphExecDestroy(one.exec);
  all_.clear();
}

CUresult GraphInstances::change(CUgraph graph, const GraphKernel& kernel,
                                const Variant& variant) const {
  CUgraphNode node = nullptr;
  if (const CUresult result = driver_.cuGraphNodeFindInClone(&node, kernel.node, graph);
      result != CUDA_SUCCESS) {
    return result;
  }
  CUDA_KERNEL_NODE_PARAMS params = kernel.params;
  const char* name = nullptr;
  if (variant.function != params.func || params.func == nullptr) {
    const bool is_function = driver_.cuFuncGetName != nullptr &&
                             driver_.cuFuncGetName(&name, variant.function) == CUDA_SUCCESS;
    params.func = is_function ? variant.function : nullptr;
    params.kern = is_function ? nullptr : reinterpret_cast<CUkernel>(variant.function);
  }
  gpu::set_shape(params, variant.grid, variant.block, variant.shared_bytes);
  const auto set_attributes = [&] {
    for (std::uint32_t i = 0; i < variant.num_attributes; ++i) {
      const CUlaunchAttribute& attribute = variant.attributes[i];
      const CUresult result =
          driver_.cuGraphKernelNodeSetAttribute(node, attribute.id, &attribute.value);
      if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  };
  // A grid and a cluster must fit each other at every step; which goes first depends on both.
  if (driver_.cuGraphKernelNodeSetParams(node, &params) == CUDA_SUCCESS) return set_attributes();
  const CUresult result = set_attributes();
  return result != CUDA_SUCCESS ? result : driver_.cuGraphKernelNodeSetParams(node, &params);
}

CUgraphExec GraphInstances::make(const GraphNodes& nodes,
                                 const std::vector<const Variant*>& variants, CUresult& why,
                                 std::size_t& culprit) const {
  culprit = nobody;
  const gpu::RelaxedCapture relaxed(driver_);
  CUgraph graph = nullptr;
  why = driver_.cuGraphClone(&graph, clone_);
  if (why != CUDA_SUCCESS) return nullptr;
  for (std::size_t i = 0; i < variants.size() && why == CUDA_SUCCESS; ++i) {
    if (variants[i] == nullptr) continue;
    why = change(graph, nodes.kernels()[i], *variants[i]);
    if (why != CUDA_SUCCESS) culprit = i;
  }
  CUgraphExec exec = nullptr;
  if (why == CUDA_SUCCESS) why = driver_.cuGraphInstantiate(&exec, graph, flags_);
  (void)driver_.cuGraphDestroy(graph);
  return why == CUDA_SUCCESS ? exec : nullptr;
}

}  // namespace contextune::intercept
