/* An NCCL that does nothing but say that it was called, and which copy it is. As in NCCL, each
 * function has a name with a p and is a weak alias of it, and one calls another by its own name.
 * FAKE_NCCL_RESULT: what all return. FAKE_NCCL_QUIET: they say nothing.
 * FAKE_NCCL_VERSION: as NCCL counts versions. */
#include "preload/registry/nccl_types.h"

#include <dlfcn.h>
#include <errno.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ncclResult_t called(const char* name) {
  if (getenv("FAKE_NCCL_QUIET") == NULL) {
    printf("copy " COPY " %s\n", name);
  }
  const char* result = getenv("FAKE_NCCL_RESULT");
  errno = 77;
  return (ncclResult_t)(result != NULL ? atoi(result) : 0);
}

/* To stderr, as it is another one under the frontend. */
static void look_for_plugin(const char* name) {
  const char* value = getenv("NCCL_TUNER_PLUGIN");
  const char* slash = value != NULL ? strrchr(value, '/') : NULL;
  fprintf(stderr, "%s sees plugin %s\n", name,
          value == NULL   ? "(none)"
          : slash != NULL ? slash + 1
                          : value);
}

typedef void (*ask_fn)(int* here, unsigned* others);
struct answer {
  ask_fn ask;
  int here;
  unsigned others;
};

static void* ask_core(void* to) {
  struct answer* answer = to;
  answer->ask(&answer->here, &answer->others);
  return NULL;
}

/* What a core that records knows of this call, here and on another thread; to stderr. */
static void say_who_is_inside(void) {
  void* core = dlopen("libcontextune.so", RTLD_NOLOAD | RTLD_LAZY);
  struct answer here = {.ask =
                            core != NULL ? (ask_fn)dlsym(core, "recording_core_messages") : NULL};
  struct answer other = here;
  pthread_t thread;
  if (here.ask == NULL) {
    return;
  }
  ask_core(&here);
  pthread_create(&thread, NULL, ask_core, &other);
  pthread_join(thread, NULL);
  fprintf(stderr, "message: here %d %u, elsewhere %d %u\n", here.here, here.others, other.here,
          other.others);
}

/* As NCCL marks its own functions. */
static void mark_range(const char* name) {
  static nvtxDomainHandle_t domain;
  if (domain == NULL) {
    domain = nvtxDomainCreateA("NCCL");
  }
  nvtxEventAttributes_t event = {0};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = name;
  nvtxDomainRangePushEx(domain, &event);
  nvtxDomainRangePop(domain);
}

#define CONTEXTUNE_NCCL(name, since, kind, why_not, params, args, fields)  \
  ncclResult_t p##name params;                                             \
  extern __typeof__(p##name) name __attribute__((weak, alias("p" #name))); \
  ncclResult_t p##name params {                                            \
    AROUND_##name;                                                         \
    return called(#name);                                                  \
  }
#define CONTEXTUNE_NCCL_LISTED(...)

extern ncclResult_t ncclBroadcast(const void*, void*, size_t, ncclDataType_t, int, ncclComm_t,
                                  cudaStream_t);
#define AROUND_ncclBcast (void)ncclBroadcast(buff, buff, count, datatype, root, comm, stream)
#define AROUND_ncclCommInitRank        \
  look_for_plugin("ncclCommInitRank"); \
  *comm = (ncclComm_t)(uintptr_t)(0x1000 + rank)
#define AROUND_ncclCommInitRankConfig        \
  look_for_plugin("ncclCommInitRankConfig"); \
  *comm = (ncclComm_t)(uintptr_t)(0x1000 + rank)
#define AROUND_ncclGroupEnd look_for_plugin("ncclGroupEnd")
#define AROUND_ncclCommDestroy look_for_plugin("ncclCommDestroy")
#define AROUND_ncclAllReduce mark_range("ncclAllReduce")
#define AROUND_ncclAllGather
#define AROUND_ncclReduceScatter
#define AROUND_ncclBroadcast
#define AROUND_ncclReduce
#define AROUND_ncclAlltoAll
#define AROUND_ncclGather
#define AROUND_ncclScatter
#define AROUND_ncclSend say_who_is_inside()
#define AROUND_ncclRecv
#define AROUND_ncclGroupStart
#define AROUND_ncclGroupSimulateEnd
#define AROUND_ncclGetUniqueId memset(uniqueId, 1, sizeof *uniqueId)
#define AROUND_ncclCommInitRankScalable
#define AROUND_ncclCommInitAll
#define AROUND_ncclCommSplit *newcomm = NULL
#define AROUND_ncclCommShrink
#define AROUND_ncclCommGrow
#define AROUND_ncclCommFinalize
#define AROUND_ncclCommAbort
#define AROUND_ncclCommRevoke
#include "preload/registry/nccl.def"

extern ncclResult_t ncclGetVersion(int* version);
ncclResult_t ncclGetVersion(int* version) {
  const char* told = getenv("FAKE_NCCL_VERSION");
  *version = told != NULL ? atoi(told) : 22809;
  return ncclSuccess;
}
