#include "intercept/submit/graph_memory.hpp"

#include <algorithm>

namespace contextune::intercept {

CUresult GraphMemory::instantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags,
                                  std::size_t nodes) noexcept {
  std::size_t before = 0;
  std::size_t behind = 0;
  std::size_t all = 0;
  static_assert(most_bytes >> 20 == 64 && least_free_bytes >> 20 == 256);
  if (bytes() >= most_bytes) return refuse("its graphs have taken 64 MiB of device memory");
  if (driver_.cuMemGetInfo(&before, &all) != CUDA_SUCCESS || before < least_free_bytes)
    return refuse("less than 256 MiB of device memory is left for its graphs");
  const CUresult result = driver_.cuGraphInstantiate(exec, graph, flags);
  if (driver_.cuMemGetInfo(&behind, &all) == CUDA_SUCCESS && behind < before)
    bytes_.fetch_add(
        std::min<std::uint64_t>(before - behind, most_bytes_of_step + nodes * most_bytes_of_node),
        std::memory_order_relaxed);
  return result;
}

CUresult GraphMemory::refuse(const char* why) noexcept {
  refusal_.store(why, std::memory_order_relaxed);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace contextune::intercept
