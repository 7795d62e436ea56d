#include <algorithm>

#include "modules.hpp"

using namespace simcuda;

namespace {

// A CUkernel that was cast to CUfunction is refused here, as by the real driver.
BlockDemand demand_of(const KernelCode& code, int block_size, std::size_t dynamic_bytes) {
  require(block_size > 0);
  return {static_cast<unsigned>(block_size), code.registers,
          code.source->static_shared_bytes + dynamic_bytes};
}

int resident_blocks(CUfunction handle, int block_size, std::size_t dynamic_bytes) {
  const Context& context = current_context();
  const Callee callee = callee_of(handle, context.device);
  const DeviceProfile& profile = driver().device(context.device).profile;
  const BlockDemand demand = demand_of(*callee.code, block_size, dynamic_bytes);
  if (demand.threads > callee.code->max_threads_per_block) return 0;
  return static_cast<int>(blocks_per_sm(profile, demand, profile.shared_per_sm_bytes));
}

CUresult best_block(int* grid, int* block, CUfunction handle, CUoccupancyB2DSize shared_of_block,
                    std::size_t dynamic_bytes, int limit) {
  require(grid != nullptr && block != nullptr);
  const Context& context = current_context();
  const DeviceProfile& profile = driver().device(context.device).profile;
  const int largest =
      static_cast<int>(callee_of(handle, context.device).code->max_threads_per_block);
  const int top = limit > 0 ? std::min(limit, largest) : largest;
  int best = 0;
  for (int size = top; size >= 32; size = size % 32 == 0 ? size - 32 : size / 32 * 32) {
    const std::size_t bytes = shared_of_block != nullptr ? shared_of_block(size) : dynamic_bytes;
    const int blocks = resident_blocks(handle, size, bytes);
    if (blocks * size <= best) continue;
    best = blocks * size;
    *block = size;
    *grid = blocks * static_cast<int>(profile.num_sms);
  }
  require(best > 0);
  return CUDA_SUCCESS;
}

}  // namespace

SIMCUDA_ENTRY(cuFuncGetAttribute, (int* pi, CUfunction_attribute attrib, CUfunction hfunc), {
  require(pi != nullptr);
  Function& function = function_at(hfunc);
  *pi = get_attribute(*function.code, attributes_of(function), attrib);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuFuncSetAttribute, (CUfunction hfunc, CUfunction_attribute attrib, int value), {
  Function& function = function_at(hfunc);
  set_attribute(*function.code, attributes_of(function), attrib, value);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuFuncSetCacheConfig, (CUfunction hfunc, CUfunc_cache config), {
  attributes_of(function_at(hfunc)).cache_preference = config;
  return CUDA_SUCCESS;
})

// No effect since Maxwell, on a real GPU too.
SIMCUDA_ENTRY(cuFuncSetSharedMemConfig, (CUfunction hfunc, CUsharedconfig), {
  (void)function_at(hfunc);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuFuncGetModule, (CUmodule * hmod, CUfunction hfunc), {
  require(hmod != nullptr);
  *hmod = reinterpret_cast<CUmodule>(function_at(hfunc).module);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuFuncGetName, (const char** name, CUfunction hfunc), {
  require(name != nullptr);
  *name = function_at(hfunc).code->name;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuFuncGetParamInfo,
              (CUfunction func, size_t paramIndex, size_t* paramOffset, size_t* paramSize), {
                get_parameter(*function_at(func).code, paramIndex, paramOffset, paramSize);
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuFuncIsLoaded, (CUfunctionLoadingState * state, CUfunction function), {
  require(state != nullptr);
  (void)function_at(function);
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuFuncLoad, (CUfunction function), {
  (void)function_at(function);
  return CUDA_SUCCESS;
})

SIMCUDA_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor,
              (int* numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize), {
                require(numBlocks != nullptr);
                *numBlocks = resident_blocks(func, blockSize, dynamicSMemSize);
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
              (int* numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize,
               unsigned int flags),
              {
                require(numBlocks != nullptr && flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
                *numBlocks = resident_blocks(func, blockSize, dynamicSMemSize);
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuOccupancyMaxPotentialBlockSize,
              (int* minGridSize, int* blockSize, CUfunction func,
               CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
               int blockSizeLimit),
              {
                return best_block(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
                                  dynamicSMemSize, blockSizeLimit);
              })

SIMCUDA_ENTRY(cuOccupancyMaxPotentialBlockSizeWithFlags,
              (int* minGridSize, int* blockSize, CUfunction func,
               CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
               int blockSizeLimit, unsigned int flags),
              {
                require(flags <= CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE);
                return best_block(minGridSize, blockSize, func, blockSizeToDynamicSMemSize,
                                  dynamicSMemSize, blockSizeLimit);
              })

SIMCUDA_ENTRY(cuOccupancyAvailableDynamicSMemPerBlock,
              (size_t * dynamicSmemSize, CUfunction func, int numBlocks, int blockSize), {
                require(dynamicSmemSize != nullptr && numBlocks > 0);
                const Context& context = current_context();
                const DeviceProfile& profile = driver().device(context.device).profile;
                const Callee callee = callee_of(func, context.device);
                require(resident_blocks(func, blockSize, 0) >= numBlocks);
                const std::size_t each =
                    profile.shared_per_sm_bytes / static_cast<unsigned>(numBlocks);
                const std::size_t taken =
                    profile.shared_reserved_bytes + callee.code->source->static_shared_bytes;
                *dynamicSmemSize = std::min(each > taken ? each - taken : 0,
                                            profile.shared_per_block_optin_bytes -
                                                callee.code->source->static_shared_bytes);
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuOccupancyMaxPotentialClusterSize,
              (int* clusterSize, CUfunction func, const CUlaunchConfig* config), {
                require(clusterSize != nullptr && config != nullptr);
                const Context& context = current_context();
                const DeviceProfile& profile = driver().device(context.device).profile;
                const Callee callee = callee_of(func, context.device);
                *clusterSize = static_cast<int>(callee.attributes->non_portable_cluster != 0
                                                    ? profile.max_cluster_blocks_non_portable
                                                    : profile.max_cluster_blocks);
                return CUDA_SUCCESS;
              })

SIMCUDA_ENTRY(cuOccupancyMaxActiveClusters,
              (int* numClusters, CUfunction func, const CUlaunchConfig* config), {
                require(numClusters != nullptr && config != nullptr);
                const Context& context = current_context();
                const DeviceProfile& profile = driver().device(context.device).profile;
                unsigned blocks = 1;
                for (unsigned i = 0; i < config->numAttrs; ++i)
                  if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION)
                    blocks = config->attrs[i].value.clusterDim.x *
                             config->attrs[i].value.clusterDim.y *
                             config->attrs[i].value.clusterDim.z;
                require(blocks > 0);
                const int block_size =
                    static_cast<int>(config->blockDimX * config->blockDimY * config->blockDimZ);
                const int resident = resident_blocks(func, block_size, config->sharedMemBytes);
                *numClusters = resident * static_cast<int>(profile.num_sms / blocks);
                return CUDA_SUCCESS;
              })
