#define __CUDA_API_VERSION_INTERNAL
#include "fake_driver.h"
#include "fake_others.h"
#include "preload/contextune_abi.h"
#include "preload/registry/newer_types.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* const names[] = {
#define CONTEXTUNE_ENTRY(name, ...) #name,
#include "preload/registry/driver.def"
#undef CONTEXTUNE_ENTRY
};
enum { num_names = sizeof names / sizeof names[0] };

static int calls[num_names];
static int results[num_names];
static __thread uint64_t digest;

static const char* held;
static int left_error;

static CUresult called(enum contextune_fn fn, uint64_t arguments) {
  __atomic_add_fetch(&calls[fn], 1, __ATOMIC_RELAXED);
  digest = arguments;
  while (__atomic_load_n(&held, __ATOMIC_ACQUIRE) == names[fn]) {
    sched_yield();
  }
  if (left_error != 0) {
    errno = left_error;
  }
  return (CUresult)results[fn];
}

static uint64_t mix(uint64_t sum, uint64_t value) {
  return (sum ^ value) * 0x9E3779B97F4A7C15u + (sum >> 7);
}

/* By bytes, as some arguments are structures. */
static uint64_t mix_bytes(uint64_t sum, const void* argument, size_t size) {
  const unsigned char* bytes = argument;
  for (size_t i = 0; i < size; ++i) {
    sum = mix(sum, bytes[i]);
  }
  return mix(sum, size);
}

#define MIX_1(a) sum = mix_bytes(sum, &a, sizeof a);
#define MIX_2(a, ...) MIX_1(a) MIX_1(__VA_ARGS__)
#define MIX_3(a, ...) MIX_1(a) MIX_2(__VA_ARGS__)
#define MIX_4(a, ...) MIX_1(a) MIX_3(__VA_ARGS__)
#define MIX_5(a, ...) MIX_1(a) MIX_4(__VA_ARGS__)
#define MIX_6(a, ...) MIX_1(a) MIX_5(__VA_ARGS__)
#define MIX_7(a, ...) MIX_1(a) MIX_6(__VA_ARGS__)
#define MIX_8(a, ...) MIX_1(a) MIX_7(__VA_ARGS__)
#define MIX_9(a, ...) MIX_1(a) MIX_8(__VA_ARGS__)
#define MIX_10(a, ...) MIX_1(a) MIX_9(__VA_ARGS__)
#define MIX_11(a, ...) MIX_1(a) MIX_10(__VA_ARGS__)
#define PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, picked, ...) picked
#define MIX(...)                                                                                \
  __VA_OPT__(PICK(__VA_ARGS__, MIX_11, MIX_10, MIX_9, MIX_8, MIX_7, MIX_6, MIX_5, MIX_4, MIX_3, \
                  MIX_2, MIX_1, )(__VA_ARGS__))

/* Two pairs of entries share an address, as a driver may do. */
#define ALIAS_cuStreamDestroy ~, 1
#define ALIAS_cuStreamQuery_ptsz ~, 1
#define ALIASED_cuStreamDestroy "cuStreamDestroy_v2"
#define ALIASED_cuStreamQuery_ptsz "cuStreamQuery"
#define CAT(a, b) a##b
#define SECOND(a, b, ...) b
#define IS_ALIAS(...) SECOND(__VA_ARGS__, 0, ~)
#define DEFINE_1(name, params, args) CUresult name params __attribute__((alias(ALIASED_##name)));
#define DEFINE_0(name, params, args)          \
  CUresult name params {                      \
    uint64_t sum = 1;                         \
    MIX args;                                 \
    return called(contextune_fn_##name, sum); \
  }
#define DEFINE(is_alias, name, params, args) DEFINE_##is_alias(name, params, args)
#define EXPAND_DEFINE(is_alias, name, params, args) DEFINE(is_alias, name, params, args)
#define ORDINARY(name, params, args) EXPAND_DEFINE(IS_ALIAS(CAT(ALIAS_, name)), name, params, args)

#define DEFINE_launch ORDINARY
#define DEFINE_graph ORDINARY
#define DEFINE_count ORDINARY
#define DEFINE_load ORDINARY
#define DEFINE_before ORDINARY
#define DEFINE_after ORDINARY
#define DEFINE_both ORDINARY
#define DEFINE_recorded ORDINARY
#define DEFINE_transfer ORDINARY
#define DEFINE_init(name, params, args)
#define DEFINE_resolve(name, params, args)
#define CONTEXTUNE_ENTRY(name, pointer_type, kind, params, args) DEFINE_##kind(name, params, args)
#include "preload/registry/driver.def"
#undef CONTEXTUNE_ENTRY

static int index_of(const char* name) {
  name = strcmp(name, "cuStreamDestroy") == 0 ? "cuStreamDestroy_v2" : name;
  name = strcmp(name, "cuStreamQuery_ptsz") == 0 ? "cuStreamQuery" : name;
  for (int i = 0; i < num_names; ++i) {
    if (strcmp(names[i], name) == 0) {
      return i;
    }
  }
  fprintf(stderr, "fake driver: %s is not in the registry\n", name);
  abort();
}

int fake_calls(const char* name) {
  return __atomic_load_n(&calls[index_of(name)], __ATOMIC_RELAXED);
}
uint64_t fake_digest(void) {
  return digest;
}
void fake_fail(const char* name, int result) {
  results[index_of(name)] = result;
}
void fake_errno(int error) {
  left_error = error;
}
void fake_hold(const char* name) {
  __atomic_store_n(&held, name == NULL ? NULL : names[index_of(name)], __ATOMIC_RELEASE);
}

void* fake_entry(const char* name) {
  static void* const entries[] = {
#define CONTEXTUNE_ENTRY(name, ...) (void*)&name,
#include "preload/registry/driver.def"
#undef CONTEXTUNE_ENTRY
  };
  void* other = fake_other(name);
  return other != NULL ? other : entries[index_of(name)];
}

CUresult cuInit(unsigned int flags) {
  /* Some drivers look themselves up; that must stay among themselves. */
  void* self = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  if (self != NULL && (dlsym(self, "cuInit") != (void*)&cuInit ||
                       dlsym(self, "cuFuncLoad") != fake_other("cuFuncLoad"))) {
    fprintf(stderr, "fake driver: its own lookup was routed\n");
    abort();
  }
  return called(contextune_fn_cuInit, mix(1, flags));
}

/* Free: must reach the program as they are. */
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}

/* An honest map of the names that the tests ask for. */
static const struct version_of {
  const char* symbol;
  int since;
  const char* entry;
  const char* per_thread;
} version_map[] = {
    {"cuInit", 2000, "cuInit", NULL},
    {"cuLaunchKernel", 7000, "cuLaunchKernel", "cuLaunchKernel_ptsz"},
    {"cuLaunchKernel", 4000, "cuLaunchKernel", NULL},
    {"cuLaunchKernelEx", 11060, "cuLaunchKernelEx", "cuLaunchKernelEx_ptsz"},
    {"cuStreamBeginCapture", 10010, "cuStreamBeginCapture_v2", "cuStreamBeginCapture_v2_ptsz"},
    {"cuStreamBeginCapture", 10000, "cuStreamBeginCapture", "cuStreamBeginCapture_ptsz"},
    {"cuStreamSynchronize", 7000, "cuStreamSynchronize", "cuStreamSynchronize_ptsz"},
    {"cuStreamSynchronize", 2000, "cuStreamSynchronize", NULL},
    {"cuStreamQuery", 7000, "cuStreamQuery", "cuStreamQuery_ptsz"},
    {"cuStreamQuery", 2000, "cuStreamQuery", NULL},
    {"cuStreamDestroy", 4000, "cuStreamDestroy_v2", NULL},
    {"cuStreamDestroy", 2000, "cuStreamDestroy", NULL},
    {"cuCtxCreate", 12050, "cuCtxCreate_v4", NULL},
    {"cuCtxCreate", 11040, "cuCtxCreate_v3", NULL},
    {"cuCtxCreate", 3020, "cuCtxCreate_v2", NULL},
    {"cuCtxCreate", 2000, "cuCtxCreate", NULL},
    {"cuCtxSynchronize", 13000, "cuCtxSynchronize_v2", NULL},
    {"cuCtxSynchronize", 2000, "cuCtxSynchronize", NULL},
    {"cuMemAlloc", 3020, "cuMemAlloc_v2", NULL},
    {"cuMemcpyHtoDAsync", 7000, "cuMemcpyHtoDAsync_v2", "cuMemcpyHtoDAsync_v2_ptsz"},
    {"cuMemcpyHtoD", 7000, "cuMemcpyHtoD_v2", "cuMemcpyHtoD_v2_ptds"},
    {"cuMemcpyBatchAsync", 13000, "cuMemcpyBatchAsync_v2", "cuMemcpyBatchAsync_v2_ptsz"},
    {"cuMemcpyBatchAsync", 12080, "cuMemcpyBatchAsync", "cuMemcpyBatchAsync_ptsz"},
    {"cuMemPrefetchAsync", 12020, "cuMemPrefetchAsync_v2", "cuMemPrefetchAsync_v2_ptsz"},
    {"cuMemPrefetchAsync", 8000, "cuMemPrefetchAsync", "cuMemPrefetchAsync_ptsz"},
    {"cuStreamWaitValue32", 11070, "cuStreamWaitValue32_v2", "cuStreamWaitValue32_v2_ptsz"},
    {"cuStreamWaitValue32", 8000, "cuStreamWaitValue32", "cuStreamWaitValue32_ptsz"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2", NULL},
    {"cuGetProcAddress", 11030, "cuGetProcAddress", NULL},
};

static CUresult resolve(const char* symbol, void** pointer, int version, cuuint64_t flags,
                        CUdriverProcAddressQueryResult* status) {
  if (symbol == NULL || pointer == NULL) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *pointer = NULL;
  if (strcmp(symbol, "cuDriverGetVersion") == 0) {
    *pointer = (void*)&cuDriverGetVersion;
  }
  const int per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  for (size_t i = 0; *pointer == NULL && i < sizeof version_map / sizeof version_map[0]; ++i) {
    const struct version_of* entry = &version_map[i];
    if (strcmp(symbol, entry->symbol) == 0 && version >= entry->since) {
      *pointer =
          fake_entry(per_thread && entry->per_thread != NULL ? entry->per_thread : entry->entry);
    }
  }
  if (*pointer == NULL && flags == 0) {
    *pointer = fake_other(symbol);
  }
  if (status != NULL) {
    *status = *pointer != NULL ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return *pointer != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char* symbol, void** pointer, int version, cuuint64_t flags) {
  called(contextune_fn_cuGetProcAddress, 0);
  return resolve(symbol, pointer, version, flags, NULL);
}

CUresult cuGetProcAddress_v2(const char* symbol, void** pointer, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  called(contextune_fn_cuGetProcAddress_v2, 0);
  return resolve(symbol, pointer, version, flags, status);
}
