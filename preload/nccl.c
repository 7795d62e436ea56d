/* The wrappers of NCCL's functions, generated from registry/nccl.def. They call NCCL and nothing
 * else between the two words to the core: its launches are launches of the program like any other,
 * so contextune_thread.depth stays as it is. What NCCL calls of its own interface passes. */
#include "nccl_wrappers.h"

#include <dlfcn.h>
#include <string.h>

uint64_t contextune_nccl_hash(const ncclUniqueId* ids, int num_ids) {
  if (ids == NULL || num_ids <= 0) {
    return 0;
  }
  uint64_t hash = 14695981039346656037U;
  for (int i = 0; i < num_ids; ++i) {
    for (size_t byte = 0; byte < sizeof ids[i].internal; ++byte) {
      hash = (hash ^ (unsigned char)ids[i].internal[byte]) * 1099511628211U;
    }
  }
  return hash != 0 ? hash : 1;
}

/* ---- before and after ---- */

static bool is_shown(const struct contextune_core* core) {
  return core != NULL && contextune_thread.depth == 0 && contextune_thread.nccl_depth == 0;
}

static void tell(void (*hook)(const struct contextune_nccl_call*),
                 const struct contextune_core* core, const struct contextune_nccl_call* call) {
  const int error = contextune_enter(core);
  hook(call);
  contextune_leave(error);
}

static void begin(struct contextune_nccl_call* call) {
  const int error = errno;
  if (contextune_thread.nccl_groups != 0 || call->fn == contextune_fn_ncclGroupStart) {
    contextune_thread.nccl_group_shown = 1;
  }
  if (call->num_made != 0) {
    contextune_tuner_offer(call);
  }
  call->tuner = contextune_tuner_state();
  call->group_depth = contextune_thread.nccl_groups;
  const struct contextune_core* core = contextune_load_core();
  if (core != NULL) {
    tell(core->nccl_before, core, call);
  }
  contextune_thread.nccl_depth = 1;
  errno = error;
}

static void count_groups(enum contextune_nccl_fn fn, enum contextune_nccl_kind kind,
                         ncclResult_t result) {
  struct contextune_thread* thread = &contextune_thread;
  if (fn == contextune_fn_ncclGroupStart) {
    thread->nccl_groups += result == ncclSuccess;
  } else if (kind == contextune_nccl_group && thread->nccl_groups > 0) {
    --thread->nccl_groups; /* also where NCCL found something wrong: it forgets the group */
  }
  if (thread->nccl_groups == 0) {
    thread->nccl_group_shown = 0;
  }
}

/* The plugin is looked for when the communicator is made: at the end of the outermost group, and
 * later on another thread where the communicator does not block. */
static void end_offer(enum contextune_nccl_fn fn, int num_made, ncclResult_t result) {
  if (num_made != 0) {
    contextune_tuner_offer_ends();
  }
  const bool makes_now = num_made != 0 || fn == contextune_fn_ncclGroupEnd;
  const bool ends = fn == contextune_fn_ncclCommDestroy || fn == contextune_fn_ncclCommAbort ||
                    fn == contextune_fn_ncclCommFinalize;
  if (contextune_thread.nccl_groups == 0 && (makes_now || ends) && result != ncclInProgress) {
    contextune_tuner_withdraw();
  }
}

static void end(struct contextune_nccl_call* call) {
  const int error = errno;
  contextune_thread.nccl_depth = 0;
  if (call->kind != contextune_nccl_collective) {
    count_groups(call->fn, call->kind, (ncclResult_t)call->result);
    end_offer(call->fn, call->num_made, (ncclResult_t)call->result);
  }
  if (call->made_id != NULL && call->result == ncclSuccess) {
    call->unique_id = contextune_nccl_hash(call->made_id, 1);
  }
  call->tuner = contextune_tuner_state();
  const struct contextune_core* core = contextune_load_core(); /* it may have come meanwhile */
  if (core != NULL) {
    tell(core->nccl_after, core, call);
  }
  errno = error;
}

/* ---- calls that are not shown ---- */

uint32_t contextune_messages = 1; /* until a core says otherwise */

static bool may_pass(enum contextune_nccl_fn fn, enum contextune_nccl_kind kind) {
  const bool ends_group = kind == contextune_nccl_group && fn != contextune_fn_ncclGroupStart;
  return kind == contextune_nccl_point_to_point ||
         (kind == contextune_nccl_group &&
          !(ends_group && contextune_thread.nccl_group_shown != 0));
}

/* The thread is counted as inside before the word is read, as in contextune_begin_call. */
static bool begin_unshown(void) {
  struct contextune_counter* counter = contextune_thread.own;
  if (counter == NULL) {
    counter = contextune_take_counter();
  }
  if (counter->shared != 0) {
    return false; /* nobody would see that it is inside */
  }
  __atomic_store_n(&counter->messages, 1, __ATOMIC_RELAXED);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if (__atomic_load_n(&contextune_messages, __ATOMIC_RELAXED) == 0) {
    contextune_thread.nccl_depth = 1;
    return true;
  }
  __atomic_store_n(&counter->messages, 0, __ATOMIC_RELEASE);
  return false;
}

static void end_unshown(enum contextune_nccl_fn fn, enum contextune_nccl_kind kind,
                        ncclResult_t result) {
  const int error = errno;
  contextune_thread.nccl_depth = 0;
  if (kind == contextune_nccl_group) {
    count_groups(fn, kind, result);
    end_offer(fn, 0, result);
  }
  __atomic_store_n(&contextune_thread.own->messages, 0, __ATOMIC_RELEASE);
  errno = error;
}

/* ---- wrappers ---- */

#define LIST(...) __VA_ARGS__

/* Members that the entry does not name stay as here, which the compiler would warn of. */
#define RECORD(name, kind_, fields)                                                               \
  _Pragma("GCC diagnostic push")                                                                  \
      _Pragma("GCC diagnostic ignored \"-Woverride-init\"") struct contextune_nccl_call call_ = { \
          .fn = contextune_fn_##name,                                                             \
          .kind = contextune_nccl_##kind_,                                                        \
          .library = target_.library,                                                             \
          .datatype = -1,                                                                         \
          .op = -1,                                                                               \
          .root = -1,                                                                             \
          .rank = -1,                                                                             \
          .color = -1,                                                                            \
          .result = -1,                                                                           \
          LIST fields};                                                                           \
  _Pragma("GCC diagnostic pop")

/* Names end in _ here: the registry names its parameters as it likes. */
#define WRAPPER(wrapper, name, kind, params, args, fields, target)                   \
  ncclResult_t wrapper params;                                                       \
  ncclResult_t wrapper params {                                                      \
    const struct contextune_nccl_target target_ = (target);                          \
    if (target_.real == NULL) {                                                      \
      return ncclSystemError; /* a weak reference, and no NCCL */                    \
    }                                                                                \
    ncclResult_t(*const real_) params = (ncclResult_t(*) params)target_.real;        \
    if (!is_shown(contextune_load_core())) {                                         \
      return real_ args;                                                             \
    }                                                                                \
    if (may_pass(contextune_fn_##name, contextune_nccl_##kind) && begin_unshown()) { \
      const ncclResult_t passed_ = real_ args;                                       \
      end_unshown(contextune_fn_##name, contextune_nccl_##kind, passed_);            \
      return passed_;                                                                \
    }                                                                                \
    RECORD(name, kind, fields)                                                       \
    begin(&call_);                                                                   \
    const ncclResult_t result_ = real_ args;                                         \
    call_.result = (int32_t)result_;                                                 \
    end(&call_);                                                                     \
    return result_;                                                                  \
  }

/* Each entry has one that direct calls reach, which leaves the library under the entry's name and
 * our hidden version as the driver's do (wrappers.c), and one for each copy that lookups find. */
#define OF_COPY(copy, name, kind, params, args, fields)                          \
  WRAPPER(contextune_nccl_copy##copy##_##name, name, kind, params, args, fields, \
          contextune_nccl_of_copy(copy, contextune_fn_##name))

#define CONTEXTUNE_NCCL(name, since, kind, why_not, params, args, fields)               \
  WRAPPER(contextune_bound_##name, name, kind, params, args, fields,                    \
          contextune_nccl_of_caller(contextune_fn_##name, __builtin_return_address(0))) \
  OF_COPY(0, name, kind, params, args, fields)                                          \
  OF_COPY(1, name, kind, params, args, fields)                                          \
  OF_COPY(2, name, kind, params, args, fields)                                          \
  OF_COPY(3, name, kind, params, args, fields)                                          \
  extern __typeof__(contextune_bound_##name) contextune_export_##name                   \
      __attribute__((alias("contextune_bound_" #name), visibility("default")));         \
  __asm__(".symver contextune_export_" #name ", " #name "@CONTEXTUNE_1, remove");
#define CONTEXTUNE_NCCL_LISTED(...)
#include "registry/nccl.def"
#undef CONTEXTUNE_NCCL

_Static_assert(CONTEXTUNE_NCCL_COPIES == 4, "there is a wrapper for each copy");

static void* const of_copy[CONTEXTUNE_NCCL_COPIES][contextune_nccl_count] = {
#define CONTEXTUNE_NCCL(name, ...) (void*)&contextune_nccl_copy0_##name,
    {
#include "registry/nccl.def"
    },
#undef CONTEXTUNE_NCCL
#define CONTEXTUNE_NCCL(name, ...) (void*)&contextune_nccl_copy1_##name,
    {
#include "registry/nccl.def"
    },
#undef CONTEXTUNE_NCCL
#define CONTEXTUNE_NCCL(name, ...) (void*)&contextune_nccl_copy2_##name,
    {
#include "registry/nccl.def"
    },
#undef CONTEXTUNE_NCCL
#define CONTEXTUNE_NCCL(name, ...) (void*)&contextune_nccl_copy3_##name,
    {
#include "registry/nccl.def"
    },
#undef CONTEXTUNE_NCCL
};

static void* const for_direct_calls[contextune_nccl_count] = {
#define CONTEXTUNE_NCCL(name, ...) (void*)&contextune_bound_##name,
#include "registry/nccl.def"
#undef CONTEXTUNE_NCCL
};

void* contextune_nccl_wrapper(enum contextune_nccl_fn fn, unsigned int copy, void* real) {
  /* As a rule a function has one address, however it was obtained. */
  return contextune_real_dlsym(RTLD_NEXT, contextune_nccl_name(fn)) == real ? for_direct_calls[fn]
                                                                            : of_copy[copy][fn];
}

/* ---- again ---- */

#define REAL(name) ((__typeof__(&contextune_bound_##name))real)

static ncclResult_t repeat(void* real, const struct contextune_nccl_call* call) {
  const ncclDataType_t type = (ncclDataType_t)call->datatype;
  const ncclRedOp_t op = (ncclRedOp_t)call->op;
  const ncclComm_t comm = call->comm;
  const cudaStream_t stream = call->stream;
  const void* const from = call->sendbuff;
  void* const to = call->recvbuff;
  switch (call->fn) {
    case contextune_fn_ncclAllReduce:
      return REAL(ncclAllReduce)(from, to, call->count, type, op, comm, stream);
    case contextune_fn_ncclAllGather:
      return REAL(ncclAllGather)(from, to, call->count, type, comm, stream);
    case contextune_fn_ncclReduceScatter:
      return REAL(ncclReduceScatter)(from, to, call->count, type, op, comm, stream);
    case contextune_fn_ncclBroadcast:
      return REAL(ncclBroadcast)(from, to, call->count, type, call->root, comm, stream);
    case contextune_fn_ncclBcast:
      return REAL(ncclBcast)(to, call->count, type, call->root, comm, stream);
    case contextune_fn_ncclReduce:
      return REAL(ncclReduce)(from, to, call->count, type, op, call->root, comm, stream);
    case contextune_fn_ncclGroupStart:
      return REAL(ncclGroupStart)();
    case contextune_fn_ncclGroupEnd:
      return REAL(ncclGroupEnd)();
    default:
      return ncclSystemError;
  }
}

/* Functions of the profiling interface, behind which no wrapper stands. */
enum { most_found = 64 };
static struct {
  void* library;
  enum contextune_nccl_fn fn;
  void* real; /* set last */
} found[most_found];
static uint32_t num_found;

static void* find_again(const struct contextune_nccl_call* call) {
  const uint32_t num = __atomic_load_n(&num_found, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < num && i < most_found; ++i) {
    void* const real = __atomic_load_n(&found[i].real, __ATOMIC_ACQUIRE);
    if (real != NULL && found[i].fn == call->fn && found[i].library == call->library) {
      return real;
    }
  }
  return NULL;
}

static bool is_repeatable(enum contextune_nccl_fn fn) {
  return fn == contextune_fn_ncclAllReduce || fn == contextune_fn_ncclAllGather ||
         fn == contextune_fn_ncclReduceScatter || fn == contextune_fn_ncclBroadcast ||
         fn == contextune_fn_ncclBcast || fn == contextune_fn_ncclReduce ||
         fn == contextune_fn_ncclGroupStart || fn == contextune_fn_ncclGroupEnd;
}

int contextune_nccl_can_repeat(const struct contextune_nccl_call* call) {
  if (!is_repeatable(call->fn) || find_again(call) != NULL) {
    return is_repeatable(call->fn);
  }
  char name[64] = "p";
  strncat(name, contextune_nccl_name(call->fn), sizeof name - 2);
  void* const real = contextune_real_dlsym(call->library, name);
  const uint32_t place =
      real == NULL ? most_found : __atomic_fetch_add(&num_found, 1, __ATOMIC_ACQ_REL);
  if (place >= most_found) {
    return 0;
  }
  found[place].library = call->library;
  found[place].fn = call->fn;
  __atomic_store_n(&found[place].real, real, __ATOMIC_RELEASE);
  return 1;
}

int contextune_nccl_repeat(const struct contextune_nccl_call* call) {
  void* const real = find_again(call);
  if (real == NULL) {
    return ncclSystemError;
  }
  struct contextune_nccl_call again = *call;
  again.result = -1;
  const int depth = contextune_thread.depth;
  contextune_thread.depth = 0;
  begin(&again);
  again.result = (int32_t)repeat(real, &again);
  end(&again);
  contextune_thread.depth = depth;
  return again.result;
}
