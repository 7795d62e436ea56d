#include "intercept/submit/graph_memory.hpp"

#include <algorithm>

namespace contextune::intercept {

CUresult GraphMemory::instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags,
                                  std::size_t nodes) noexcept {
  std::size_t before = 0;
  std::size_t behind = 0;
  std::size_t all = 0;
  if (bytes() >= most_bytes || driver_.cuMemGetInfo(&before, &all) != CUDA_SUCCESS ||
      before < least_free_bytes) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  const CUresult result = driver_.cuGraphInstantiate(exec, graph, flags);
  if (driver_.cuMemGetInfo(&behind, &all) == CUDA_SUCCESS && behind < before)
    bytes_.fetch_add(
        std::min<std::uint64_t>(before - behind, most_bytes_of_step + nodes * most_bytes_of_node),
        std::memory_order_relaxed);
  return result;
}

}  // namespace contextune::intercept
