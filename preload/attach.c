#include "nccl_wrappers.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* ---- before it is decided: a core that forwards, remembers, and attaches the real one ---- */

/* Not 0: the program had the driver before the core could see what it does with its memory. */
static uint32_t missed;

CUresult contextune_undecided_launch(const struct contextune_launch* launch) {
  contextune_count_launch();
  const CUresult result = contextune_launch_forward(launch);
  if (result == CUDA_SUCCESS) {
    contextune_attach(launch->fn);
  }
  return result;
}

static CUresult undecided_graph_launch(enum contextune_fn fn, CUgraphExec exec, CUstream stream) {
  const CUresult result = ((PFN_cuGraphLaunch_v10000)contextune_hot.real[fn])(exec, stream);
  if (result == CUDA_SUCCESS) {
    contextune_attach(fn);
  }
  return result;
}

static void undecided_before(enum contextune_fn fn, void* const* args) {
  (void)fn;
  (void)args;
}

static bool changes_memory(enum contextune_fn fn) {
  switch (fn) {
#define CONTEXTUNE_ENTRY(name, ...) case contextune_fn_##name:
#include "registry/memory.def"
#undef CONTEXTUNE_ENTRY
    return true;
    default:
      return false;
  }
}

/* cuInit as a rule; another entry where the program initialised the driver past us. */
static void undecided_after(enum contextune_fn fn, void* const* args, CUresult result) {
  (void)args;
  const bool works_without_init = fn == contextune_fn_cuThreadExchangeStreamCaptureMode ||
                                  fn == contextune_fn_cuProfilerStart ||
                                  fn == contextune_fn_cuProfilerStop;
  if (result == CUDA_SUCCESS && !works_without_init) {
    /* Perhaps while another thread is attaching: then the core is not told of this call. */
    if (changes_memory(fn)) {
      __atomic_store_n(&missed, 1, __ATOMIC_RELEASE);
    }
    contextune_attach(fn);
  }
}

static void undecided_hand_over(enum contextune_fn fn) {
  (void)fn;
}

static void undecided_nccl(const struct contextune_nccl_call* call) {
  (void)call;
}

/* NCCL initialises the driver before it makes a communicator, so there is a core by then if there
 * ever is one. */
static int64_t undecided_tuner_begin(const struct contextune_tuner_comm* comm) {
  (void)comm;
  return -1;
}

const struct contextune_core contextune_core_undecided = {
    .version = CONTEXTUNE_ABI_VERSION,
    .size = sizeof(struct contextune_core),
    .launch = contextune_undecided_launch,
    .before = undecided_before,
    .after = undecided_after,
    .range = contextune_early_range,
    .program_uses_cupti = contextune_cupti_remember,
    .graph_launch = undecided_graph_launch,
    .nccl_before = undecided_nccl,
    .nccl_after = undecided_nccl,
    .tuner_begin = undecided_tuner_begin,
    .hand_over = undecided_hand_over,
};

const struct contextune_core* contextune_core = &contextune_core_undecided;

void contextune_hand_over(enum contextune_fn fn) {
  const struct contextune_core* core = contextune_load_core();
  if (core == NULL || contextune_thread.depth != 0) {
    return;
  }
  const int error = contextune_enter(core);
  core->hand_over(fn);
  contextune_leave(error);
}

/* ---- what the core is given ---- */

static void* unrouted_dlsym(void* handle, const char* name) {
  return contextune_real_dlsym(handle, name);
}

static int* thread_depth(void) {
  return &contextune_thread.depth;
}

static int is_in_message(void) {
  const struct contextune_counter* own = contextune_thread.own;
  return own != NULL && own->messages != 0;
}

static void** thread_word(void) {
  return &contextune_thread.of_core;
}

static struct contextune_frontend frontend = {
    .version = CONTEXTUNE_ABI_VERSION,
    .size = sizeof(struct contextune_frontend),
    .libcuda = NULL,
    .real_dlsym = unrouted_dlsym,
    .real = contextune_real_or_null,
    .name = contextune_name,
    .armed = &contextune_hot.armed,
    .recording = &contextune_hot.recording,
    .transfers = &contextune_hot.transfers,
    .missed = &missed,
    .launches_passed = contextune_launches_passed,
    .depth = thread_depth,
    .leave_call = contextune_leave_call,
    .enter_call = contextune_enter_call,
    .calls_ended = contextune_calls_ended,
    .nccl_repeat = contextune_nccl_repeat,
    .nccl_can_repeat = contextune_nccl_can_repeat,
    .thread = thread_word,
    .held = &contextune_hot.held,
    .unguarded = &contextune_unguarded,
    .messages = &contextune_messages,
    .in_message = is_in_message,
    .messages_under_way = contextune_messages_under_way,
};

/* ---- attaching ---- */

static bool program_has(const char* name) {
  return contextune_real_dlsym(RTLD_DEFAULT, name) != NULL;
}

/* The core in our own folder. `$ORIGIN` was fixed when we were loaded, so it holds where the
 * program has changed its folder since; but the dlopen of a sanitizer that the program is built
 * with takes it for the folder of its own object. */
static void* open_core(void) {
  char path[4096] = "$ORIGIN/libcontextune.so";
  Dl_info own;
  if ((program_has("__asan_init") || program_has("__tsan_init")) &&
      dladdr((void*)&open_core, &own) != 0 && own.dli_fname != NULL && own.dli_fname[0] == '/') {
    const int folder = (int)(strrchr(own.dli_fname, '/') - own.dli_fname);
    if ((size_t)folder + sizeof "/libcontextune.so" <= sizeof path) {
      snprintf(path, sizeof path, "%.*s/libcontextune.so", folder, own.dli_fname);
    }
  }
  return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* One that is linked to the program, else that. */
static contextune_core_v1_fn find_core(void) {
  void* found = contextune_real_dlsym(RTLD_DEFAULT, "contextune_core_v1");
  if (found == NULL) {
    void* library = open_core();
    found = library != NULL ? contextune_real_dlsym(library, "contextune_core_v1") : NULL;
  }
  return (contextune_core_v1_fn)found;
}

/* A forked child cannot use the parent's CUDA state, nor the core's threads. */
static void become_inert(void) {
  __atomic_store_n(&contextune_core, NULL, __ATOMIC_RELEASE);
  __atomic_store_n(&contextune_hot.launch, NULL, __ATOMIC_RELEASE);
  __atomic_store_n(&contextune_hot.armed, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&contextune_hot.recording, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&contextune_hot.transfers, 0, __ATOMIC_RELEASE);
  __atomic_store_n(&contextune_hot.held, 0, __ATOMIC_RELEASE);
}

/* libc's; its usual wrapper, pthread_atfork, lives in a part of libc that wants start files. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void* dso_handle);

/* The words that the core's options know; with any other it starts, and says that it is none. */
bool contextune_is_switched_off(void) {
  static const char* const yes[] = {"1", "on", "true", "yes"};
  const char* disable = contextune_variable(contextune_variable_disable);
  for (size_t i = 0; disable != NULL && i < sizeof yes / sizeof yes[0]; ++i) {
    if (strcasecmp(disable, yes[i]) == 0) {
      return true;
    }
  }
  return false;
}

static const struct contextune_core* start_core(void) {
  contextune_keep_variables();
  /* The memory sanitizer takes whatever code without it writes for uninitialised. */
  if (contextune_is_switched_off() || program_has("__msan_init") || !contextune_has_room()) {
    return NULL;
  }
  const contextune_core_v1_fn start = find_core();
  if (start == NULL || __register_atfork(NULL, NULL, become_inert, NULL) != 0) {
    return NULL;
  }
  frontend.libcuda = contextune_libcuda;
  const struct contextune_core* core = start(&frontend);
  if (core == NULL || core->version != CONTEXTUNE_ABI_VERSION ||
      core->size < sizeof(struct contextune_core) || core->launch == NULL || core->before == NULL ||
      core->after == NULL || core->range == NULL || core->program_uses_cupti == NULL ||
      core->graph_launch == NULL || core->nccl_before == NULL || core->nccl_after == NULL ||
      core->tuner_begin == NULL || core->tuner_decide == NULL || core->tuner_end == NULL ||
      core->exiting == NULL || core->hand_over == NULL || core->load == NULL) {
    return NULL;
  }
  return core;
}

void contextune_attach(enum contextune_fn seen_by) {
  static bool claimed;
  if (__atomic_exchange_n(&claimed, true, __ATOMIC_ACQ_REL)) {
    return; /* another thread is at it; this one goes on untouched */
  }
  if (seen_by != contextune_fn_cuInit) {
    __atomic_store_n(&missed, 1, __ATOMIC_RELEASE);
  }
  if (!contextune_find_driver()) {
    become_inert();
    return;
  }
  /* From here on launches are only counted, until the core asks for them. */
  __atomic_store_n(&contextune_hot.armed, 0, __ATOMIC_RELEASE);
  const struct contextune_core* core = start_core();
  dlerror(); /* whatever failed in there is not the program's */
  if (core == NULL) {
    become_inert();
    contextune_early_hand_over_thread(NULL);
    return;
  }
  /* First, so that whoever shows a range to the core shows it the launches too. */
  __atomic_store_n(&contextune_hot.launch, core->launch, __ATOMIC_RELEASE);
  __atomic_store_n(&contextune_core, core, __ATOMIC_SEQ_CST);
  contextune_cupti_hand_over(core);
  contextune_early_hand_over_process(core);
  contextune_early_hand_over_thread(core);
}
