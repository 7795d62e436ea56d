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

#define CONTEXTUNE_ABI_VERSION 6U

/* One number for each entry point in preload/registry: contextune_fn_cuLaunchKernel and so on; the
 * driver's come first. */
enum contextune_fn {
#define CONTEXTUNE_ENTRY(name, ...) contextune_fn_##name,
#include "registry/driver.def"
/* and then: */
#include "registry/cupti.def"
#undef CONTEXTUNE_ENTRY
  contextune_fn_count,
  contextune_fn_question /* for `hand_over`: one of questions.def */
};

/* One intercepted kernel launch, in the form of the entry point that the program called. */
struct contextune_launch {
  enum contextune_fn
      fn; /* cuLaunchKernel{,_ptsz}, cuLaunchKernelEx{,_ptsz}, cuLaunchCooperativeKernel{,_ptsz} */
  CUfunction function; /* may be a CUkernel in disguise */
  unsigned int grid[3];
  unsigned int block[3];
  unsigned int shared_bytes;
  CUstream stream; /* as given; NULL means per-thread in the _ptsz forms, legacy otherwise */
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

/* One number for each function of NCCL that is wrapped. */
enum contextune_nccl_fn {
#define CONTEXTUNE_NCCL(name, ...) contextune_fn_##name,
#define CONTEXTUNE_NCCL_LISTED(...)
#include "registry/nccl.def"
#undef CONTEXTUNE_NCCL
#undef CONTEXTUNE_NCCL_LISTED
  contextune_nccl_count
};

enum contextune_nccl_kind {
  contextune_nccl_collective,
  contextune_nccl_point_to_point,
  contextune_nccl_group,
  contextune_nccl_communicator,
  contextune_nccl_other
};

/* Whether NCCL is led to our tuner plugin. Where it is not, it decides as if we were not there. */
enum contextune_tuner_state {
  contextune_tuner_offered,      /* NCCL_TUNER_PLUGIN names us while communicators are made */
  contextune_tuner_not_yet,      /* none was made yet */
  contextune_tuner_users_choice, /* no: the user set NCCL_ALGO or NCCL_PROTO */
  contextune_tuner_users_policy, /* no: the user set NCCL_CTA_POLICY, or the program's config does,
                                  * which NCCL follows only without a plugin */
  contextune_tuner_no_path       /* no: our path, or the user's plugin's, is too long for NCCL */
};

/* One call of NCCL by the program. Pointers are the program's own and valid during the call; what a
 * function does not have is 0, NULL or as said. Calls that NCCL makes of itself are not shown. */
struct contextune_nccl_call {
  enum contextune_nccl_fn fn;
  enum contextune_nccl_kind kind;
  void* library; /* a handle of the NCCL that it goes to: real_dlsym(library, "pnccl...") */
  void* comm;    /* an ncclComm_t: what it works on, or the parent of what it makes */
  const void* sendbuff;
  void* recvbuff;
  uint64_t count;       /* elements, counted as the function does */
  int32_t datatype;     /* -1: none */
  int32_t op;           /* -1: none */
  int32_t root;         /* or the peer; -1: none */
  uint32_t group_depth; /* groups that this thread has opened, as far as it was seen to */
  CUstream stream;
  void** made; /* places of the new communicators, filled in `after` */
  int32_t num_made;
  int32_t nranks; /* of what is made; 0: not said */
  int32_t rank;   /* -1: not said */
  int32_t color;  /* -1: none, or NCCL_SPLIT_NOCOLOR */
  int32_t key;
  uint64_t unique_id;     /* hash of the bytes of all ids, the same on all ranks; 0: none */
  const void* first_id;   /* the first of these, an ncclUniqueId; NULL: none */
  const int32_t* devices; /* ncclCommInitAll's, `nranks` of them; NULL: 0, 1, ... */
  const void* made_id;    /* where ncclGetUniqueId leaves its id; `after` has its hash above */
  const void* config;     /* an ncclConfig_t, which differs from version to version; NULL: none */
  enum contextune_tuner_state tuner;
  int32_t result; /* an ncclResult_t; -1 in `before`. 7, in progress, is no failure */
};

/* A communicator, as NCCL shows it to a tuner plugin. */
struct contextune_tuner_comm {
  uint64_t id; /* the same on all ranks, another in each run; 0 before NCCL 2.28 */
  uint64_t nranks;
  uint64_t nnodes;
  uint32_t version; /* of the plugin interface, 3 to 6 */
  enum contextune_tuner_state tuner;
  int32_t users_version; /* of the interface of the user's own plugin, behind ours; 0: none */
};

/* What the frontend offers to the core; lives as long as the process. */
struct contextune_frontend {
  uint32_t version;
  uint32_t size;
  void* libcuda;                                       /* handle of the loaded driver */
  void* (*real_dlsym)(void* handle, const char* name); /* never routed */
  void* (*real)(enum contextune_fn fn); /* driver's own entry point; NULL if it has none */
  const char* (*name)(enum contextune_fn fn);
  uint32_t* armed; /* atomic; 0: launches go straight to the driver and are only counted */
  uint64_t (*launches_passed)(void); /* launches that were counted but not shown to the core */
  int* (*depth)(void); /* this thread's re-entry depth; while it is not 0 every wrapper forwards */
  uint32_t* recording; /* atomic; 0: entries of the kind `recorded` go straight to the driver */
  uint32_t* transfers; /* atomic; 0, and so is the one above: those of the kind `transfer` do */
  const uint32_t* missed; /* atomic; not 0: memory may have come and gone unseen by the core */
  /* A hook that waits is not inside the call meanwhile, so that nobody waits for it. `leave_call`
   * answers whether it was; then `enter_call` is due, and another look at what it waited for. */
  int (*leave_call)(void);
  void (*enter_call)(void);
  /* Returns when every other thread has left the registered calls that it was in when this was
   * called; 0: it has not within that time. Calls that come later have seen what the core wrote
   * before. */
  int (*calls_ended)(uint64_t nanoseconds);
  /* Makes a call of a collective or about a group once more, after `nccl_can_repeat` has found it
   * and its kind fit for that. It is shown like a call of the program, with all that NCCL does in
   * it, whatever this thread's depth is. Returns its ncclResult_t. Asks nothing of the loader,
   * whose lock another thread may hold that waits for us. */
  int (*nccl_repeat)(const struct contextune_nccl_call* call);
  int (*nccl_can_repeat)(const struct contextune_nccl_call* call);
  void** (*thread)(void); /* this thread's word of the core's own, as contextune_launch.thread */
  /* Atomic; not 0: the core holds launches back, and the program's other calls of the driver begin
   * with `hand_over`, but those in registry/free.def. The core is armed meanwhile, holds nothing
   * while anything captures, and sets the word to 0 after all have been submitted. */
  uint32_t* held;
  /* Atomic; not 0: the program has been given a function of the driver that does not begin with
   * `hand_over`, as no guard was left for it. Then a core holds nothing back any more. */
  const uint32_t* unguarded;
  /* Atomic; 0: messages between two ranks and calls about groups are not shown, but for the end of
   * a group in which a call was. */
  uint32_t* messages;
  int (*in_message)(void);              /* whether this thread is inside a call that is not shown */
  uint32_t (*messages_under_way)(void); /* other threads that are, as seen after `calls_ended` */
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
  /* Around every wrapped call of NCCL by the program that is shown, with the same record; NCCL's
   * own work lies between, on this thread or others, and launches in it are shown as launches. One
   * may come without the other where the core is attached or leaves in between. */
  void (*nccl_before)(const struct contextune_nccl_call* call);
  void (*nccl_after)(const struct contextune_nccl_call* call);
  /* NCCL's tuner plugin, on any thread, as a rule within one of the calls above. `tuner_begin`
   * answers the number under which the other two know the communicator, or a negative one: then
   * they are not called for it. */
  int64_t (*tuner_begin)(const struct contextune_tuner_comm* comm);
  /* Not 0: it has decided, by setting one cell of `table` to 0 and perhaps *num_channels; otherwise
   * it has changed neither. `table` is a matrix [num_algorithms][num_protocols] of microseconds, -1
   * where there is no choice, and with *num_channels as the user's own plugin has left it. May take
   * no lock and wait for nothing. */
  int (*tuner_decide)(int64_t comm, int function, uint64_t bytes, int num_pipelined, float* table,
                      int num_algorithms, int num_protocols, int registered, int* num_channels);
  void (*tuner_end)(int64_t comm);
  /* The program has called exit(), or main has returned, on this thread and at whatever depth; no
   * handler of it has run. Returns when nothing of ours is in the middle of what crashes at the
   * end, or after 2 s. */
  void (*exiting)(void);
  /* Submits all launches that are held back, each in the context in which the program made it, and
   * leaves this thread's current context as it was. Called while *held is not 0, before every call
   * of the driver by the program that is no launch; a launch leaves that to `launch`.
   * contextune_fn_question and contextune_fn_count stand for what the registry does not list. */
  void (*hand_over)(enum contextune_fn fn);
  /* Makes the call, which loads code: once to the program's eyes, with its own result. `after` is
   * called then as for others. */
  CUresult (*load)(enum contextune_fn fn, void* const* args);
};

/* Exported by libcontextune.so under the name "contextune_core_v1". NULL: stay inert. */
const struct contextune_core* contextune_core_v1(const struct contextune_frontend* frontend);
typedef const struct contextune_core* (*contextune_core_v1_fn)(const struct contextune_frontend*);

#ifdef __cplusplus
}
#endif
