/* What the files of the frontend share. Nothing of this is visible outside the library, except what
 * registry/ lists, `dlsym` and the entry points of an NVTX injector.
 *
 * Threads: everything here may be called from any thread; nothing takes a lock of ours, and nothing
 * on a path that the program calls allocates.
 *
 * errno: every entry point leaves it as the program's own call of the driver, of NCCL, of CUPTI or
 * of an NVTX tool left it; where the core makes that call, as it was before. */
#pragma once

#include "contextune_abi.h"
#include "guards.h"
#include "registry/newer_types.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#define CONTEXTUNE_LIKELY(x) __builtin_expect(!!(x), 1)
#define CONTEXTUNE_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- threads (thread.c) ---- */

/* One cache line, written by one thread only. */
struct contextune_counter {
  uint64_t launches;
  uint32_t calls;    /* how often it has entered and left the driver: odd while it is inside */
  uint32_t shared;   /* not 0: one of the threads for which there was no counter that others read */
  int32_t thread;    /* its number with the system */
  uint32_t messages; /* not 0: it is inside a call of NCCL that is not shown */
  char padding[40];
};

struct contextune_early_stack;

/* Trivially destructible, and small: it lives in the static TLS block. What a launch needs is in
 * its first cache line. */
struct contextune_thread {
  int depth;                            /* not 0: inside a wrapper, or inside the core */
  int nccl_depth;                       /* not 0: inside NCCL, through one of its wrappers */
  struct contextune_counter* counter;   /* NULL: ask contextune_thread_counter */
  struct contextune_counter* own;       /* NULL: ask contextune_take_counter */
  struct contextune_early_stack* early; /* ranges that were opened before there was a core */
  void* of_core;                        /* contextune_launch.thread points here */
  uint32_t nccl_groups;                 /* ncclGroupStarts that are open */
  uint32_t nccl_group_shown;            /* not 0: the core was shown a call of that group */
  struct contextune_counter scratch;    /* its own when all are taken */
};
extern __thread struct contextune_thread contextune_thread
    __attribute__((tls_model("initial-exec")));

struct contextune_counter* contextune_take_counter(void);
struct contextune_counter* contextune_thread_counter(void);
void contextune_count_shared_launch(void);
void contextune_count_shared_call(bool enters);
uint64_t contextune_launches_passed(void);
uint32_t contextune_messages_under_way(void);
int contextune_leave_call(void);
void contextune_enter_call(void);
/* Returns when every other thread has left the calls of the driver that it was in; 0: it has not
 * within that time. */
int contextune_calls_ended(uint64_t nanoseconds);
/* As contextune_frontend says (nccl.c). */
int contextune_nccl_repeat(const struct contextune_nccl_call* call);
int contextune_nccl_can_repeat(const struct contextune_nccl_call* call);
/* While the process has one thread, the system grants in microseconds what the above needs; later
 * it waits for all processors first, 10 to 20 ms. */
void contextune_prepare_calls_ended(void);

static inline void contextune_count_launch(void) {
  struct contextune_counter* counter = contextune_thread.counter;
  if (CONTEXTUNE_UNLIKELY(counter == NULL)) {
    counter = contextune_thread_counter();
  }
  if (CONTEXTUNE_UNLIKELY(counter->shared != 0)) {
    contextune_count_shared_launch();
    return;
  }
  /* Only this thread writes; another may read. */
  __atomic_store_n(&counter->launches, counter->launches + 1, __ATOMIC_RELAXED);
}

/* One call of the driver by this thread, perhaps within another. */
struct contextune_call {
  struct contextune_counter* counter;
  bool outermost;
};

/* To be called before anything is read that says whether the call may go on: whoever changes that
 * makes all threads pass a barrier and then looks who is inside. */
static inline struct contextune_call contextune_begin_call(void) {
  struct contextune_counter* counter = contextune_thread.own;
  if (CONTEXTUNE_UNLIKELY(counter == NULL)) {
    counter = contextune_take_counter();
  }
  const bool outermost = (counter->calls & 1) == 0;
  __atomic_store_n(&counter->calls, counter->calls | 1, __ATOMIC_RELAXED);
  if (CONTEXTUNE_UNLIKELY(counter->shared != 0) && outermost) {
    contextune_count_shared_call(true);
  }
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  return (struct contextune_call){counter, outermost};
}

static inline void contextune_end_call(struct contextune_call call) {
  if (call.outermost) {
    __atomic_store_n(&call.counter->calls, call.counter->calls + 1, __ATOMIC_RELEASE);
    if (CONTEXTUNE_UNLIKELY(call.counter->shared != 0)) {
      contextune_count_shared_call(false);
    }
  }
}

/* ---- the core (attach.c) ---- */

/* The attached core; before it is decided whether there will be one, a stand-in that forwards,
 * remembers and attaches; NULL when this process has none for good. */
extern const struct contextune_core* contextune_core;
extern const struct contextune_core contextune_core_undecided;
CUresult contextune_undecided_launch(const struct contextune_launch* launch);

static inline const struct contextune_core* contextune_load_core(void) {
  return __atomic_load_n(&contextune_core, __ATOMIC_ACQUIRE);
}

/* By CONTEXTUNE_DISABLE. */
bool contextune_is_switched_off(void);

/* Attaches the core, once. Called at depth 1, after the driver was seen to be initialised, by a
 * successful call of `seen_by`. */
void contextune_attach(enum contextune_fn seen_by);

/* Tells the core the ranges that this thread opened before it was there, and forgets them. */
void contextune_early_hand_over_thread(const struct contextune_core* core);

/* Brackets every call of a core: the one that it goes to, which is asked for once, since another
 * thread may be attaching. Whatever happens in between, errno is the program's: the first returns
 * it, and the second puts back what it is given. */
static inline int contextune_enter(const struct contextune_core* core) {
  const int error = errno;
  ++contextune_thread.depth;
  if (CONTEXTUNE_UNLIKELY(contextune_thread.early != NULL) && core != &contextune_core_undecided) {
    contextune_early_hand_over_thread(core);
  }
  return error;
}
static inline void contextune_leave(int error) {
  --contextune_thread.depth;
  errno = error;
}

/* Lets the core submit the launches that it holds back before `fn`, unless that is a call of its
 * own. */
void contextune_hand_over(enum contextune_fn fn);

/* ---- memory (room.c) ---- */

/* False: a limit leaves the program so little that it needs it itself. */
bool contextune_has_room(void);

/* ---- the environment (variables.c) ---- */

enum contextune_variable {
  contextune_variable_disable,
  contextune_variable_nvtx_chain,
  contextune_variable_region,
  contextune_variable_nccl_tuner_plugin,
  contextune_variable_nccl_net_plugin,
  contextune_variable_nccl_algo,
  contextune_variable_nccl_proto,
  contextune_variable_nccl_cta_policy,
  contextune_variable_nccl_conf_file,
  contextune_variable_count
};
/* Its value, as it was when it was kept, if that is so already; NULL: not set. */
const char* contextune_variable(enum contextune_variable which);
const char* contextune_variable_name(enum contextune_variable which);
/* Once, by whoever attaches the core. */
void contextune_keep_variables(void);

/* ---- the loaded driver (driver.c) ---- */

extern void* contextune_libcuda; /* our handle; NULL until it was seen loaded */
/* What a launch reads, in one cache line: the driver evicts all of ours at every launch. */
struct contextune_hot {
  uint32_t armed;     /* launches are shown to the core */
  uint32_t recording; /* entries of the kinds `recorded` and `transfer` are shown to the core */
  uint32_t held;      /* the core holds launches back: see contextune_frontend */
  uint32_t transfers; /* those of the kind `transfer` are shown, whatever `recording` says */
  CUresult (*launch)(const struct contextune_launch*); /* the core's; NULL: there is none */
  void* real[contextune_fn_count]; /* libcuda's own entry points, or a stub; launches come first */
};
extern struct contextune_hot contextune_hot;
_Static_assert(offsetof(struct contextune_hot, real[contextune_fn_cuLaunchKernelEx_ptsz]) < 64,
               "the launches are in the first line");
/* Relaxed: whoever has learned of another thread's launch sees the word as that thread left it. */
static inline void contextune_hand_over_held(enum contextune_fn fn) {
  if (CONTEXTUNE_UNLIKELY(__atomic_load_n(&contextune_hot.held, __ATOMIC_RELAXED) != 0)) {
    contextune_hand_over(fn);
  }
}
extern void* contextune_bound[contextune_fn_count]; /* where a direct call of the program goes */

/* True when libcuda.so.1 is loaded; then the tables above are filled. Never loads it. */
bool contextune_find_driver(void);
/* NULL for CUPTI's entries and for what this driver does not have. */
void* contextune_real_or_null(enum contextune_fn fn);
/* What a direct call of an exported wrapper goes on to; used until contextune_bound is filled. */
void* contextune_bind(enum contextune_fn fn);
/* The wrapper to hand out in place of libcuda's own entry point. */
void* contextune_wrapper(enum contextune_fn fn);
/* What a direct reference to `name` reaches without us: the next definition in the global scope,
 * else the driver's, `real`. Where there is neither: a function that returns an error. */
void* contextune_next_by_name(const char* name, void* real);
/* The wrapper or the guard for a pointer that the driver gave out, or the pointer itself. */
void* contextune_route_pointer(void* pointer, const char* symbol, int version, cuuint64_t flags);

/* ---- wrappers (wrappers.c, launch.c, resolve.c) ---- */

extern void* const contextune_inner[contextune_fn_count];    /* handed out; observed */
extern void* const contextune_exported[contextune_fn_count]; /* bound by direct calls */
CUresult contextune_launch_forward(const struct contextune_launch* launch);

/* ---- functions that the registry does not list (guards.c, guards.S) ---- */

/* What registry/guarded.def lists, followed by what registry/free.def lists. */
enum {
  contextune_num_guarded = 0
#define CONTEXTUNE_GUARDED(name) +1
#include "registry/guarded.def"
#undef CONTEXTUNE_GUARDED
  ,
  contextune_num_others = contextune_num_guarded
#define CONTEXTUNE_FREE(name) +1
#include "registry/free.def"
#undef CONTEXTUNE_FREE
};
extern const char* const contextune_others[contextune_num_others];
extern uint32_t contextune_unguarded; /* as contextune_frontend says */
/* The guard for a function of the driver, or the function itself, if it is free. `other` is its
 * number, or contextune_num_others. */
void* contextune_guard(void* address, unsigned int other);

/* ---- names (names.c) ---- */

/* For names that are looked up, instead of libc's functions: a sanitizer puts its own in their
 * place, which crash until it has looked up libc's, and that begins here. */
static inline bool contextune_begins(const char* text, const char* with) {
  while (*with != '\0' && *text == *with) {
    ++text;
    ++with;
  }
  return *with == '\0';
}
static inline bool contextune_is_same(const char* a, const char* b) {
  while (*a != '\0' && *a == *b) {
    ++a;
    ++b;
  }
  return *a == *b;
}

/* cu[A-Z]: cudnn, cublas, curl_ and the like are told after three bytes. */
static inline bool contextune_is_drivers_name(const char* name) {
  return name != NULL && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

const char* contextune_name(enum contextune_fn fn);
/* contextune_fn_count when the name is not in the registry. */
enum contextune_fn contextune_find_name(const char* name);
_Static_assert(contextune_fn_cuLaunchKernel == 0, "the driver's entries come first");
static inline bool contextune_is_cupti(enum contextune_fn fn) {
  return fn >= contextune_fn_cuptiSubscribe;
}

/* NCCL's, by a registry of their own (nccl_objects.c); contextune_nccl_count likewise. */
const char* contextune_nccl_name(enum contextune_nccl_fn fn);
enum contextune_nccl_fn contextune_find_nccl_name(const char* name);

/* ---- the dynamic linker (linker.c) ---- */

/* The version that libc's first functions have. */
#if defined(__x86_64__)
#define CONTEXTUNE_OLDEST_LIBC "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define CONTEXTUNE_OLDEST_LIBC "GLIBC_2.17"
#endif

typedef void* (*contextune_dlsym_fn)(void*, const char*);
/* libc's, for our own lookups, and the one that the program would have called without us, which is
 * libc's too unless another library interposes it. Valid after contextune_find_dlsym. */
extern contextune_dlsym_fn contextune_real_dlsym;
extern contextune_dlsym_fn contextune_next_dlsym;
void contextune_find_dlsym(void);
/* True for code of the driver, of CUPTI, of NVIDIA's tools and of contextune, whose calls are not
 * the program's. */
bool contextune_is_tool(const void* caller);
/* True when `address` is in the same segment of code as `other`. */
bool contextune_is_code_beside(const void* address, const void* other);
/* A handle for the object that holds `address`, to be closed; NULL for the main program. */
void* contextune_open_object_of(const void* address);
/* The definition of `name` that follows the object of `caller` in load order; ours do not count. Of
 * all objects, or of those that were loaded at start. */
void* contextune_next_definition(const void* caller, const char* name, bool at_start);

/* ---- CUPTI (cupti.c) ---- */

#define CONTEXTUNE_CUPTI_VERSIONS 3 /* of the symbols: none, libcupti.so.12, libcupti.so.13 */
/* The program uses CUPTI through `fn`, called from `caller`. */
void contextune_cupti_use(enum contextune_fn fn, const void* caller);
/* Tells an attached core what was used before it was there. */
void contextune_cupti_hand_over(const struct contextune_core* core);
void contextune_cupti_remember(enum contextune_fn fn);
/* The wrapper for `real` as found by a lookup, or NULL when there is none to spare. */
void* contextune_cupti_wrapper(enum contextune_fn fn, void* real);

/* ---- NVTX ranges that were opened before the core was there (early_ranges.c) ---- */

void contextune_early_range(enum contextune_range_kind kind, const char* domain, const char* name,
                            uint64_t id);
void contextune_early_hand_over_process(const struct contextune_core* core);
