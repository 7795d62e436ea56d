/* Calls NCCL. MANNER: direct (linked to copy a), default, next, absent, copies A B, plugin P,
 * messages, variable, policy, chunk, threads, late. What differs under the frontend is said on
 * stderr. */
#include "preload/tuner_abi.h"

#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef ncclResult_t (*all_reduce_fn)(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t,
                                      ncclComm_t, cudaStream_t);

static void reduce_with(all_reduce_fn all_reduce) {
  errno = 5;
  const ncclResult_t result = all_reduce((void*)0x10, (void*)0x20, 1000, (ncclDataType_t)7,
                                         (ncclRedOp_t)2, (ncclComm_t)0x1001, (cudaStream_t)0x30);
  printf("result %d errno %d\n", (int)result, errno);
}

static void look_up_in(void* scope) {
  void* found = dlsym(scope, "ncclAllReduce");
  printf("found %d error %d\n", found != NULL, dlerror() != NULL);
  if (found != NULL) {
    reduce_with((all_reduce_fn)found);
  }
}

static int run_plugin(const char* file) {
  void* plugin = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  int (*run)(void) = plugin != NULL ? (int (*)(void))dlsym(plugin, "plugin_run") : NULL;
  return run != NULL ? run() : 3;
}

#ifdef DIRECT
extern ncclResult_t ncclAllReduce(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t,
                                  ncclComm_t, cudaStream_t);
extern ncclResult_t ncclBcast(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
extern ncclResult_t ncclSend(const void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
extern ncclResult_t ncclRecv(void*, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t);
extern ncclResult_t ncclGroupStart(void);
extern ncclResult_t ncclGroupEnd(void);
extern ncclResult_t ncclGetUniqueId(ncclUniqueId*);
extern ncclResult_t ncclCommInitRank(ncclComm_t*, int, ncclUniqueId, int);
extern ncclResult_t ncclCommInitRankConfig(ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*);
extern ncclResult_t ncclCommSplit(ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*);
extern ncclResult_t ncclCommInitRankScalable(ncclComm_t*, int, int, int, ncclUniqueId*,
                                             ncclConfig_t*);
extern ncclResult_t ncclCommDestroy(ncclComm_t);

static void call_directly(void) {
  ncclUniqueId id;
  ncclComm_t comm = NULL;
  ncclComm_t part = NULL;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&comm, 4, id, 1);
  reduce_with(ncclAllReduce);
  ncclBcast(NULL, 8, (ncclDataType_t)1, 3, comm, NULL);
  ncclGroupStart();
  ncclGroupStart();
  reduce_with(ncclAllReduce);
  ncclGroupEnd();
  ncclGroupEnd();
  ncclCommSplit(comm, 2, 5, &part, NULL);
  ncclCommDestroy(comm);
}

static void exchange(ncclComm_t comm) {
  ncclGroupStart();
  errno = 5;
  const ncclResult_t result = ncclSend((void*)0x10, 8, (ncclDataType_t)1, 3, comm, NULL);
  printf("result %d errno %d\n", (int)result, errno);
  ncclRecv((void*)0x20, 8, (ncclDataType_t)1, 3, comm, NULL);
  ncclGroupEnd();
}

static void send_messages(void) {
  ncclUniqueId id;
  ncclComm_t comm = NULL;
  ncclGetUniqueId(&id);
  ncclCommInitRank(&comm, 4, id, 1);
  exchange(comm);
  ncclGroupStart();
  ncclGroupStart();
  reduce_with(ncclAllReduce);
  ncclGroupEnd();
  ncclSend((void*)0x10, 8, (ncclDataType_t)1, 3, comm, NULL);
  ncclGroupEnd();
  exchange(comm);
  ncclCommDestroy(comm);
}

static void say_variable(const char* when) {
  const char* value = getenv("NCCL_TUNER_PLUGIN");
  printf("%s: %s\n", when, value != NULL ? value : "(none)");
}

/* What the program and its children see of the variable, however communicators are made. */
static void watch_variable(void) {
  ncclUniqueId id = {{0}};
  ncclComm_t comm = NULL;
  say_variable("before");
  ncclCommInitRank(&comm, 2, id, 0);
  say_variable("made");
  (void)system("echo child: ${NCCL_TUNER_PLUGIN-unset}");
  ncclGroupStart();
  ncclCommInitRank(&comm, 2, id, 0);
  ncclGroupEnd();
  say_variable("grouped");
  setenv("NEW_ONE", "value", 1);
  ncclCommInitRank(&comm, 2, id, 0);
  say_variable("again");
  /* One that does not block: the plugin would be taken later. */
  setenv("FAKE_NCCL_RESULT", "7", 1);
  ncclCommInitRankConfig(&comm, 2, id, 0, NULL);
  setenv("FAKE_NCCL_RESULT", "0", 1);
  ncclCommDestroy(comm);
  say_variable("destroyed");
  printf("NEW_ONE %s\n", getenv("NEW_ONE"));
}

/* As nccl.h of 2.28 has it. */
static struct {
  size_t size;
  unsigned int magic;
  unsigned int version;
  int until_net_name[4];
  const char* net_name;
  int until_comm_name[2];
  const char* comm_name;
  int collnet;
  int policy;
  int after[4];
} policy_config = {.size = sizeof policy_config, .magic = 0xcafebeef, .version = 22809};

/* A communicator whose config asks for a policy, and others. */
static void set_policy(int policy) {
  ncclUniqueId id = {{0}};
  ncclComm_t comm = NULL;
  policy_config.policy = policy;
  ncclCommInitRankConfig(&comm, 2, id, 0, (ncclConfig_t*)&policy_config);
  ncclCommInitRank(&comm, 2, id, 0);
  policy_config.policy = INT_MIN;
  ncclCommInitRankConfig(&comm, 2, id, 0, (ncclConfig_t*)&policy_config);
  say_variable("in the end");
}

/* What is set once the core is attached is not looked at. */
static void set_late(void) {
  ncclUniqueId id = {{0}};
  ncclComm_t comm = NULL;
  setenv("NCCL_ALGO", "RING", 1);
  setenv("NCCL_TUNER_PLUGIN", "late", 1);
  ncclCommInitRank(&comm, 2, id, 0);
  say_variable("in the end");
}

/* Whether NCCL 2.30 would ask the plugin for the size of chunks. */
static void ask_chunk(void) {
  ncclUniqueId id = {{0}};
  ncclComm_t comm = NULL;
  void* context = NULL;
  ncclCommInitRank(&comm, 2, id, 0);
  const struct contextune_tuner_v6* plugin = dlsym(RTLD_DEFAULT, "ncclTunerPlugin_v6");
  if (plugin == NULL || plugin->v5.init(&context, 1, 2, 1, NULL, NULL, NULL) != ncclSuccess) {
    return;
  }
  size_t bytes = 1;
  if (plugin->get_chunk_size != NULL) {
    plugin->get_chunk_size(context, 4, 8, 1, 2, 1, &bytes);
  }
  fprintf(stderr, "asked %d chunk %zu\n", plugin->get_chunk_size != NULL, bytes);
  plugin->v5.end(context);
}

static int stop;

static void* make_communicators(void* argument) {
  (void)argument;
  ncclUniqueId id = {{0}};
  ncclComm_t comm = NULL;
  ncclConfig_t* config = NULL;
  for (int i = 0; i < 2000; ++i) {
    ncclCommSplit(comm, 0, 0, &comm, config);
  }
  ncclCommInitRankScalable(&comm, 1, 0, 1, &id, config);
  return NULL;
}

static void* read_variables(void* lost) {
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    for (int i = 0; i < 100; ++i) {
      *(int*)lost += getenv("LAST_ONE") == NULL;
    }
  }
  return NULL;
}

/* Communicators are made by several threads while another reads the environment. */
static void use_threads(void) {
  enum { num_makers = 4 };
  pthread_t makers[num_makers];
  pthread_t reader;
  int lost = 0;
  setenv("FAKE_NCCL_QUIET", "1", 1);
  setenv("LAST_ONE", "1", 1);
  pthread_create(&reader, NULL, read_variables, &lost);
  for (int i = 0; i < num_makers; ++i) {
    pthread_create(&makers[i], NULL, make_communicators, NULL);
  }
  for (int i = 0; i < num_makers; ++i) {
    pthread_join(makers[i], NULL);
  }
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  pthread_join(reader, NULL);
  printf("lost %d\n", lost);
  say_variable("in the end");
}
#endif

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  const char* manner = argc > 1 ? argv[1] : "";
  cuInit(0);
  if (strcmp(manner, "default") == 0 || strcmp(manner, "absent") == 0) {
    look_up_in(RTLD_DEFAULT);
  } else if (strcmp(manner, "next") == 0) {
    look_up_in(RTLD_NEXT);
  } else if (strcmp(manner, "copies") == 0) {
    for (int i = 2; i < argc; ++i) {
      look_up_in(dlopen(argv[i], RTLD_NOW | RTLD_LOCAL));
    }
    look_up_in(RTLD_DEFAULT); /* which finds none of them */
    look_up_in(dlopen(argv[2], RTLD_NOW | RTLD_LOCAL));
  } else if (strcmp(manner, "plugin") == 0) {
    return run_plugin(argv[2]);
#ifdef DIRECT
  } else if (strcmp(manner, "direct") == 0) {
    call_directly();
  } else if (strcmp(manner, "messages") == 0) {
    send_messages();
  } else if (strcmp(manner, "variable") == 0) {
    watch_variable();
  } else if (strcmp(manner, "policy") == 0) {
    set_policy(atoi(argv[2]));
  } else if (strcmp(manner, "late") == 0) {
    set_late();
  } else if (strcmp(manner, "chunk") == 0) {
    ask_chunk();
  } else if (strcmp(manner, "threads") == 0) {
    use_threads();
#endif
  }
  return 0;
}
