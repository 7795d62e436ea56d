/* A tool that wraps a function of NCCL, the old way, and another, the way that NCCL documents. */
#include "preload/registry/nccl_types.h"

#include <dlfcn.h>
#include <stdio.h>

typedef ncclResult_t all_reduce_fn(const void*, void*, size_t, ncclDataType_t, ncclRedOp_t,
                                   ncclComm_t, cudaStream_t);

__attribute__((visibility("default"))) all_reduce_fn ncclAllReduce;
ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count,
                           ncclDataType_t datatype, ncclRedOp_t op, ncclComm_t comm,
                           cudaStream_t stream) {
  all_reduce_fn* next = (all_reduce_fn*)dlsym(RTLD_NEXT, "ncclAllReduce");
  printf("tool %d\n", next != NULL);
  return next(sendbuff, recvbuff, count, datatype, op, comm, stream);
}

extern ncclResult_t pncclGroupStart(void) __attribute__((weak));
__attribute__((visibility("default"))) ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupStart(void) {
  printf("tool's group\n");
  return pncclGroupStart();
}
