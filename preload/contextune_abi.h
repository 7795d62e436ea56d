/* The contract between the frontend (libcontextune_preload.so: C, libc only) and the core
 * (libcontextune.so: C++). Neither calls the other in any other way.
 *
 * Threads: every pointer here may be called from any thread at any time; hooks never throw, and
 * never block on another thread of the program.
 * Versions: `version` must be equal, `size` may grow at the end; a side that sees another version
 * stays inert and the program runs untouched. */
#pragma once

#include <cuda.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONTEXTUNE_ABI_VERSION 2u

/* One number for each entry point in preload/registry: contextune_fn_cuLaunchKernel and so on; the
 * driver's come first. */
enum contextune_fn {
#define CONTEXTUNE_ENTRY(name, ...) contextune_fn_##name,
#include "registry/driver.def"
/* and then: */
#include "registry/cupti.def"
#undef CONTEXTUNE_ENTRY
  contextune_fn_count
};

/* One intercepted kernel launch, in the form of the entry point that the program called. */
struct contextune_launch {
  enum contextune_fn fn;   /* cuLaunchKernel{,_ptsz}, cuLaunchKernelEx{,_ptsz}, cuLaunchCooperativeKernel{,_ptsz} */
  CUfunction function;     /* may be a CUkernel in disguise */
  unsigned int grid[3];
  unsigned int block[3];
  unsigned int shared_bytes;
  CUstream stream;         /* as given; NULL means per-thread in the _ptsz forms, legacy otherwise */
  void** kernel_params;
  void** extra;
  const CUlaunchConfig* config; /* the caller's, for the Ex forms (attributes); NULL otherwise */
  void** thread; /* the core's own word of this thread, NULL at first: finding its thread-local
                  * variables costs more. NULL: there is none */
};

enum contextune_range_kind {
  contextune_range_push,  /* this thread; nested */
  contextune_range_pop,   /* this thread */
  contextune_range_start, /* process-wide; `id` names it */
  contextune_range_end    /* process-wide; `id` as at start */
};

/* What the frontend offers to the core; lives as long as the process. */
struct contextune_frontend {
  uint32_t version;
  uint32_t size;
  void* libcuda;                                        /* handle of the loaded driver */
  void* (*real_dlsym)(void* handle, const char* name);  /* never routed */
  void* (*real)(enum contextune_fn fn);                 /* driver's own entry point; NULL if it has none */
  const char* (*name)(enum contextune_fn fn);
  uint32_t* armed;      /* atomic; 0: launches go straight to the driver and are only counted */
  uint64_t (*launches_passed)(void); /* launches that were counted but not shown to the core */
  int* (*depth)(void);  /* this thread's re-entry depth; while it is not 0 every wrapper forwards */
  uint32_t* recording;  /* atomic; 0: entries of the kind `recorded` go straight to the driver */
  const uint32_t* missed; /* atomic; not 0: memory may have come and gone unseen by the core */
  /* A hook that waits is not inside the call meanwhile, so that nobody waits for it. `leave_call`
   * answers whether it was; then `enter_call` is due, and another look at what it waited for. */
  int (*leave_call)(void);
  void (*enter_call)(void);
  /* Returns when every other thread has left the registered calls that it was in when this was
   * called; 0: it has not within that time. Calls that come later have seen what the core wrote
   * before. */
  int (*calls_ended)(uint64_t nanoseconds);
};

/* What the core offers to the frontend; lives as long as the process. `args` point at the
 * arguments of the call, in order. Called only with this thread's depth at 1. */
struct contextune_core {
  uint32_t version;
  uint32_t size;
  /* Makes the launch (once, and in the end with the program's own meaning); the result goes to the
   * program. Called only while *armed is not 0. */
  CUresult (*launch)(const struct contextune_launch* launch);
  /* Around every other registered driver call whose entry in the registry asks for it. */
  void (*before)(enum contextune_fn fn, void* const* args);
  void (*after)(enum contextune_fn fn, void* const* args, CUresult result);
  /* NVTX ranges. `domain` is "" for the default domain; `name` is UTF-8, NULL for pop and end. */
  void (*range)(enum contextune_range_kind kind, const char* domain, const char* name, uint64_t id);
  /* The program is about to use CUPTI itself through `fn`; returns when we have let go of it. */
  void (*program_uses_cupti)(enum contextune_fn fn);
  /* Launches the instantiated graph, cuGraphLaunch{,_ptsz}: once, and in the end with the program's
   * own meaning. `stream` is as given. */
  CUresult (*graph_launch)(enum contextune_fn fn, CUgraphExec exec, CUstream stream);
};

/* Exported by libcontextune.so under the name "contextune_core_v1". NULL: stay inert. */
const struct contextune_core* contextune_core_v1(const struct contextune_frontend* frontend);
typedef const struct contextune_core* (*contextune_core_v1_fn)(const struct contextune_frontend*);

#ifdef __cplusplus
}
#endif
