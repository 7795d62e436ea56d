/* A program that brings a core of its own, which holds launches back. Calls every entry of the
 * registry by a direct reference and through dlsym, with different arguments in every place, and
 * prints how often the core handed over, what the driver got, and what errno was then. */
#define __CUDA_API_VERSION_INTERNAL
#include "fake_driver.h"
#include "forward_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { of_program = 5, of_core = 99 };

static const struct contextune_frontend* frontend;
static int num_handed_over;

static CUresult on_launch(const struct contextune_launch* launch) {
  (void)launch;
  return CUDA_ERROR_NOT_SUPPORTED; /* not called: nothing is armed */
}
static CUresult on_graph_launch(enum contextune_fn fn, CUgraphExec exec, CUstream stream) {
  return ((PFN_cuGraphLaunch_v10000)frontend->real(fn))(exec, stream);
}
static void on_before(enum contextune_fn fn, void* const* args) {
  (void)fn, (void)args;
}
static void on_after(enum contextune_fn fn, void* const* args, CUresult result) {
  (void)fn, (void)args, (void)result;
}
static void on_range(enum contextune_range_kind kind, const char* domain, const char* name,
                     uint64_t id) {
  (void)kind, (void)domain, (void)name, (void)id;
}
static void on_program_uses_cupti(enum contextune_fn fn) {
  (void)fn;
}
static void on_nccl(const struct contextune_nccl_call* call) {
  (void)call;
}
static int64_t on_tuner_begin(const struct contextune_tuner_comm* comm) {
  (void)comm;
  return -1;
}
static int on_tuner_decide(int64_t comm, int function, uint64_t bytes, int num_pipelined,
                           float* table, int num_algorithms, int num_protocols, int registered,
                           int* num_channels) {
  (void)comm, (void)function, (void)bytes, (void)num_pipelined, (void)table, (void)num_algorithms;
  (void)num_protocols, (void)registered, (void)num_channels;
  return 0;
}
static void on_tuner_end(int64_t comm) {
  (void)comm;
}
static void on_exiting(void) {}
static CUresult on_load(enum contextune_fn fn, void* const* args) {
  return forward_load(frontend->real(fn), fn, args);
}

/* Calls the driver as a program would: what the core does hands nothing over. */
static void on_hand_over(void) {
  num_handed_over += *frontend->depth() == 1 ? 1 : 1000;
  cuStreamQuery(NULL);
  errno = of_core;
}

static const struct contextune_core core = {
    .version = CONTEXTUNE_ABI_VERSION,
    .size = sizeof(struct contextune_core),
    .launch = on_launch,
    .before = on_before,
    .after = on_after,
    .range = on_range,
    .program_uses_cupti = on_program_uses_cupti,
    .graph_launch = on_graph_launch,
    .nccl_before = on_nccl,
    .nccl_after = on_nccl,
    .tuner_begin = on_tuner_begin,
    .tuner_decide = on_tuner_decide,
    .tuner_end = on_tuner_end,
    .exiting = on_exiting,
    .hand_over = on_hand_over,
    .load = on_load,
};

__attribute__((visibility("default"))) const struct contextune_core* contextune_core_v1(
    const struct contextune_frontend* given) {
  frontend = given;
  return &core;
}

/* Some are not in the headers of older toolkits. */
#define CONTEXTUNE_ENTRY(name, pointer_type, kind, params, args) extern CUresult name params;
#include "preload/registry/driver.def"
#undef CONTEXTUNE_ENTRY

static const struct {
  const char* name;
  const char* kind;
  void* reference;
} entries[] = {
#define CONTEXTUNE_ENTRY(name, pointer_type, kind, params, args) {#name, #kind, (void*)&name},
#include "preload/registry/driver.def"
#undef CONTEXTUNE_ENTRY
};

/* As in entries.c. */
typedef CUresult (*any_fn)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                           uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
                           uintptr_t, uintptr_t, uintptr_t, uintptr_t);

static char memory[16 * 256]; /* every argument points into it, as some are looked into */

static uint64_t call(void* entry) {
  uintptr_t a[16];
  for (size_t i = 0; i < 16; ++i) {
    a[i] = (uintptr_t)&memory[i * 256];
  }
  const CUresult result = ((any_fn)entry)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8],
                                          a[9], a[10], a[11], a[12], a[13], a[14], a[15]);
  return result == 17 ? fake_digest() : 0;
}

static void report(const char* name, const char* kind, const char* way, void* entry,
                   uint64_t expected) {
  printf("%s %s %s:", kind, name, way);
  for (uint32_t held = 0; held < 2; ++held) {
    const int before = num_handed_over;
    __atomic_store_n(frontend->held, held, __ATOMIC_RELEASE);
    errno = of_program;
    const uint64_t digest = call(entry);
    const int error = errno;
    printf(" %s %d %s errno %d", held != 0 ? "held" : "free", num_handed_over - before,
           digest == expected && digest != 0 ? "same" : "DIFFERENT", error);
    __atomic_store_n(frontend->held, 0, __ATOMIC_RELEASE);
  }
  printf("\n");
}

int main(void) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  cuInit(0);
  if (frontend == NULL) {
    return 1;
  }
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; ++i) {
    const char* name = entries[i].name;
    if (strcmp(entries[i].kind, "resolve") == 0) {
      continue; /* looks into its arguments: see resolve.c */
    }
    fake_fail(name, 17); /* so that results are seen to pass */
    const uint64_t expected = call(fake_entry(name));
    report(name, entries[i].kind, "direct", entries[i].reference, expected);
    report(name, entries[i].kind, "dlsym", dlsym(library, name), expected);
  }
  return 0;
}
