/* The launch path. Outside regions: one relaxed load, three plain increments, the driver. */
#include "frontend.h"

/* True when the launch goes straight to the driver; it has been counted then. */
static inline bool passes(void) {
  if (CONTEXTUNE_LIKELY(__atomic_load_n(&contextune_hot.armed, __ATOMIC_RELAXED) == 0)) {
    contextune_count_launch();
    return true;
  }
  return false;
}

static inline __attribute__((always_inline)) CUresult show(const struct contextune_launch* launch) {
  CUresult (*const launch_by_core)(const struct contextune_launch*) =
      __atomic_load_n(&contextune_hot.launch, __ATOMIC_ACQUIRE);
  if (launch_by_core == NULL || contextune_thread.depth != 0) {
    contextune_count_launch();
    return contextune_launch_forward(launch);
  }
  /* Only beside the launch that belongs to it: a range that the core learned of before a launch
   * that it did not would be a region with a piece missing. */
  const bool tells = CONTEXTUNE_UNLIKELY(contextune_thread.early != NULL) &&
                     launch_by_core != contextune_undecided_launch;
  const int error = contextune_enter(tells ? contextune_load_core() : &contextune_core_undecided);
  const CUresult result = launch_by_core(launch);
  contextune_leave(error);
  return result;
}

#define PLAIN_PARAMS                                                                               \
  CUfunction f, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,                     \
      unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, \
      CUstream stream, void **kernel_params
#define PLAIN_ARGS \
  f, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, kernel_params

/* What is seldom is out of line, so that the rest needs few registers; but not `cold`, which is
 * made small rather than fast. */
#define DEFINE_LAUNCH(name, pointer_type, passes_too, params, args, ...)                        \
  static __attribute__((noinline)) CUresult show_##name params {                                \
    const struct contextune_launch launch = {.fn = contextune_fn_##name,                        \
                                             .function = f,                                     \
                                             .thread = &contextune_thread.of_core,              \
                                             __VA_ARGS__};                                      \
    return show(&launch);                                                                       \
  }                                                                                             \
  CUresult contextune_inner_##name params;                                                      \
  CUresult contextune_inner_##name params {                                                     \
    const struct contextune_call call = contextune_begin_call();                                \
    const CUresult result = CONTEXTUNE_LIKELY(passes()) || (passes_too)                         \
                                ? ((pointer_type)contextune_hot.real[contextune_fn_##name])args \
                                : show_##name args;                                             \
    contextune_end_call(call);                                                                  \
    return result;                                                                              \
  }

#define DEFINE_PLAIN(name, pointer_type, extra_value, params, args)                        \
  DEFINE_LAUNCH(name, pointer_type, false, params, args, .grid = {grid_x, grid_y, grid_z}, \
                .block = {block_x, block_y, block_z}, .shared_bytes = shared_bytes,        \
                .stream = stream, .kernel_params = kernel_params, .extra = extra_value)

DEFINE_PLAIN(cuLaunchKernel, PFN_cuLaunchKernel_v4000, extra, (PLAIN_PARAMS, void** extra),
             (PLAIN_ARGS, extra))
DEFINE_PLAIN(cuLaunchKernel_ptsz, PFN_cuLaunchKernel_v7000_ptsz, extra,
             (PLAIN_PARAMS, void** extra), (PLAIN_ARGS, extra))
DEFINE_PLAIN(cuLaunchCooperativeKernel, PFN_cuLaunchCooperativeKernel_v9000, NULL, (PLAIN_PARAMS),
             (PLAIN_ARGS))
DEFINE_PLAIN(cuLaunchCooperativeKernel_ptsz, PFN_cuLaunchCooperativeKernel_v9000_ptsz, NULL,
             (PLAIN_PARAMS), (PLAIN_ARGS))

/* Without a config there is nothing to look at, and the driver says so. */
#define DEFINE_EX(name, pointer_type)                                                             \
  DEFINE_LAUNCH(name, pointer_type, config == NULL,                                               \
                (const CUlaunchConfig* config, CUfunction f, void** kernel_params, void** extra), \
                (config, f, kernel_params, extra),                                                \
                .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},                   \
                .block = {config->blockDimX, config->blockDimY, config->blockDimZ},               \
                .shared_bytes = config->sharedMemBytes, .stream = config->hStream,                \
                .kernel_params = kernel_params, .extra = extra, .config = config)

DEFINE_EX(cuLaunchKernelEx, PFN_cuLaunchKernelEx_v11060)
DEFINE_EX(cuLaunchKernelEx_ptsz, PFN_cuLaunchKernelEx_v11060_ptsz)

CUresult contextune_launch_forward(const struct contextune_launch* launch) {
  void* real = contextune_hot.real[launch->fn];
  const unsigned int* grid = launch->grid;
  const unsigned int* block = launch->block;
  switch (launch->fn) {
    case contextune_fn_cuLaunchKernelEx:
    case contextune_fn_cuLaunchKernelEx_ptsz:
      return ((PFN_cuLaunchKernelEx_v11060)real)(launch->config, launch->function,
                                                 launch->kernel_params, launch->extra);
    case contextune_fn_cuLaunchCooperativeKernel:
    case contextune_fn_cuLaunchCooperativeKernel_ptsz:
      return ((PFN_cuLaunchCooperativeKernel_v9000)real)(
          launch->function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
          launch->shared_bytes, launch->stream, launch->kernel_params);
    default:
      return ((PFN_cuLaunchKernel_v4000)real)(launch->function, grid[0], grid[1], grid[2], block[0],
                                              block[1], block[2], launch->shared_bytes,
                                              launch->stream, launch->kernel_params, launch->extra);
  }
}
