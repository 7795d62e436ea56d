/* The types in the signatures of nccl.def's wrapped entries, as far as calling needs them: the
 * frontend is built without nccl.h, and one build serves every NCCL. A test compares the signatures
 * with the machine's nccl.h. */
#pragma once

#include <cuda.h>
#include <stddef.h>

typedef struct ncclComm* ncclComm_t;
typedef struct {
  char internal[128];
} ncclUniqueId;
typedef struct ncclConfig ncclConfig_t;   /* differs from version to version */
typedef struct ncclSimInfo ncclSimInfo_t; /* this too */
typedef CUstream cudaStream_t;
typedef enum {
  ncclSuccess = 0,
  ncclSystemError = 2,
  ncclInProgress = 7,
  ncclResult_largest = 0x7fffffff
} ncclResult_t;
typedef enum { ncclDataType_largest = 0x7fffffff } ncclDataType_t;
typedef enum { ncclRedOp_largest = 0x7fffffff } ncclRedOp_t;
