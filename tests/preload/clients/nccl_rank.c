/* Two ranks in two processes, on the simulated NCCL: MANNER plain, grouped, nonblocking;
 * or, with `all`, in one. Linked
 * with it, or LOOKED_UP in a copy that is opened: then the file is the second argument. Lines begin
 * with the rank. */
#include <cuda.h>
#include <dlfcn.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(condition)                                               \
  do {                                                                  \
    if (!(condition)) {                                                 \
      printf("%d failed in line %d: %s\n", rank, __LINE__, #condition); \
      fflush(stdout);                                                   \
      _exit(1);                                                         \
    }                                                                   \
  } while (0)

#ifdef LOOKED_UP
static void* library;
#define NCCL(name) ((__typeof__(&name))dlsym(library, #name))
#else
#define NCCL(name) (&name)
#endif

enum { num_values = 1 << 16 };
static int rank;
static ncclComm_t comm;
static CUstream stream;
static CUdeviceptr data;
static float values[num_values];

static void fill(void) {
  for (int i = 0; i < num_values; ++i) {
    values[i] = (float)(rank + 1) + (float)i * 0.37f;
  }
  EXPECT(cuMemcpyHtoD(data, values, sizeof values) == CUDA_SUCCESS);
}

/* The sum over all bits: a result that differs anywhere is another number. */
static void show(const char* what) {
  EXPECT(cuStreamSynchronize(stream) == CUDA_SUCCESS);
  EXPECT(cuMemcpyDtoH(values, data, sizeof values) == CUDA_SUCCESS);
  unsigned int digest = 2166136261u;
  for (size_t i = 0; i < sizeof values; ++i) {
    digest = (digest ^ ((const unsigned char*)values)[i]) * 16777619u;
  }
  printf("%d %s %08x\n", rank, what, digest);
}

static void all_reduce(ncclComm_t on, size_t count) {
  EXPECT(NCCL(ncclAllReduce)((void*)data, (void*)data, count, ncclFloat32, ncclSum, on, stream) ==
         ncclSuccess);
}

static void plain(void) {
  fill();
  all_reduce(comm, num_values);
  show("all_reduce");
  fill();
  EXPECT(NCCL(ncclBroadcast)((void*)data, (void*)data, 1024, ncclInt32, 1, comm, stream) ==
         ncclSuccess);
  show("broadcast");
  fill();
  EXPECT(NCCL(ncclGroupStart)() == ncclSuccess);
  all_reduce(comm, 4096);
  EXPECT(NCCL(ncclAllGather)((char*)data, (char*)data, 1024, ncclFloat32, comm, stream) ==
         ncclSuccess);
  EXPECT(NCCL(ncclGroupEnd)() == ncclSuccess);
  show("group");
  ncclComm_t part = NULL;
  EXPECT(NCCL(ncclCommSplit)(comm, 0, -rank, &part, NULL) == ncclSuccess);
  fill();
  all_reduce(part, 256);
  show("part");
  EXPECT(NCCL(ncclCommDestroy)(part) == ncclSuccess);
}

static void wait_for_comm(ncclResult_t begun) {
  EXPECT(begun == ncclSuccess || begun == ncclInProgress);
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) {
    EXPECT(NCCL(ncclCommGetAsyncError)(comm, &state) == ncclSuccess);
  }
  EXPECT(state == ncclSuccess);
}

static void nonblocking(void) {
  fill();
  wait_for_comm(NCCL(ncclAllReduce)((void*)data, (void*)data, num_values, ncclFloat32, ncclSum,
                                    comm, stream));
  show("all_reduce");
}

static void run(const char* manner, ncclUniqueId id) {
  CUcontext context = NULL;
  EXPECT(cuInit(0) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  EXPECT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  EXPECT(cuMemAlloc(&data, sizeof values) == CUDA_SUCCESS);
  const int blocks = strcmp(manner, "nonblocking") != 0;
  if (strcmp(manner, "grouped") == 0) {
    EXPECT(NCCL(ncclGroupStart)() == ncclSuccess);
    EXPECT(NCCL(ncclCommInitRank)(&comm, 2, id, rank) == ncclSuccess);
    EXPECT(NCCL(ncclGroupEnd)() == ncclSuccess);
    plain();
  } else if (blocks) {
    EXPECT(NCCL(ncclCommInitRank)(&comm, 2, id, rank) == ncclSuccess);
    plain();
  } else {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    wait_for_comm(NCCL(ncclCommInitRankConfig)(&comm, 2, id, rank, &config));
    nonblocking();
  }
  EXPECT(NCCL(ncclCommDestroy)(comm) == ncclSuccess);
  const char* plugin = getenv("NCCL_TUNER_PLUGIN");
  printf("%d variable %s\n", rank, plugin != NULL ? plugin : "(none)");
}

/* Both ranks in this process, on a device each. */
static void run_all(void) {
  ncclComm_t comms[2];
  CUcontext contexts[2];
  CUdeviceptr all_data[2];
  CUstream streams[2];
  EXPECT(cuInit(0) == CUDA_SUCCESS);
  for (rank = 0; rank < 2; ++rank) {
    EXPECT(cuDevicePrimaryCtxRetain(&contexts[rank], rank) == CUDA_SUCCESS);
    EXPECT(cuCtxSetCurrent(contexts[rank]) == CUDA_SUCCESS);
    EXPECT(cuStreamCreate(&streams[rank], CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    EXPECT(cuMemAlloc(&data, sizeof values) == CUDA_SUCCESS);
    all_data[rank] = data;
    fill();
  }
  EXPECT(NCCL(ncclCommInitAll)(comms, 2, NULL) == ncclSuccess);
  EXPECT(NCCL(ncclGroupStart)() == ncclSuccess);
  for (rank = 0; rank < 2; ++rank) {
    data = all_data[rank];
    stream = streams[rank];
    all_reduce(comms[rank], num_values);
  }
  EXPECT(NCCL(ncclGroupEnd)() == ncclSuccess);
  for (rank = 0; rank < 2; ++rank) {
    EXPECT(cuCtxSetCurrent(contexts[rank]) == CUDA_SUCCESS);
    data = all_data[rank];
    stream = streams[rank];
    show("all_reduce");
    EXPECT(NCCL(ncclCommDestroy)(comms[rank]) == ncclSuccess);
  }
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (argc >= 2 && strcmp(argv[1], "all") == 0) {
    run_all();
    return 0;
  }
  int ends[2];
  EXPECT(argc >= 2 && pipe(ends) == 0);
  const pid_t child = fork(); /* before anything is done that a fork would break */
  rank = child == 0;
#ifdef LOOKED_UP
  library = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  EXPECT(library != NULL);
#endif
  ncclUniqueId id;
  if (rank == 0) {
    EXPECT(NCCL(ncclGetUniqueId)(&id) == ncclSuccess);
    EXPECT(write(ends[1], &id, sizeof id) == (ssize_t)sizeof id);
  } else {
    EXPECT(read(ends[0], &id, sizeof id) == (ssize_t)sizeof id);
  }
  run(argv[1], id);
  int status = 0;
  if (rank == 0) {
    EXPECT(waitpid(child, &status, 0) == child);
  }
  return status != 0;
}
