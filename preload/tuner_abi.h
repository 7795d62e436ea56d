/* The binary interface of NCCL's tuner plugins, versions 2 to 6, in our own words: nccl.h does not
 * contain it, and every plugin brings its own description. */
#pragma once

#include "registry/nccl_types.h"

#include <stdint.h>

/* NCCL hands its table of costs over as a float**, but what it points at is the matrix itself,
 * float[num_algorithms][num_protocols]: there are no pointers in it. */
typedef float** contextune_tuner_table;
typedef void (*contextune_tuner_log)(int level, unsigned long flags, const char* file, int line,
                                     const char* format, ...);

typedef ncclResult_t (*contextune_tuner_init_v2)(size_t nranks, size_t nnodes,
                                                 contextune_tuner_log log, void** context);
typedef ncclResult_t (*contextune_tuner_init_v5)(void** context, uint64_t comm, size_t nranks,
                                                 size_t nnodes, contextune_tuner_log log,
                                                 void* domains, void* constants);
typedef ncclResult_t (*contextune_tuner_end)(void* context);

struct contextune_tuner_v2 {
  const char* name;
  contextune_tuner_init_v2 init;
  ncclResult_t (*get_coll_info)(void* context, int function, size_t bytes, int collnet, int nvls,
                                int num_pipelined, int* algorithm, int* protocol,
                                int* num_channels);
  contextune_tuner_end end;
};

struct contextune_tuner_v3 {
  const char* name;
  contextune_tuner_init_v2 init;
  ncclResult_t (*get_coll_info)(void* context, int function, size_t bytes, int num_pipelined,
                                contextune_tuner_table table, int num_algorithms, int num_protocols,
                                int* num_channels);
  contextune_tuner_end end;
};

typedef ncclResult_t (*contextune_tuner_coll_info_v4)(void* context, int function, size_t bytes,
                                                      int num_pipelined,
                                                      contextune_tuner_table table,
                                                      int num_algorithms, int num_protocols,
                                                      int registered, int* num_channels);

struct contextune_tuner_v4 {
  const char* name;
  contextune_tuner_init_v2 init;
  contextune_tuner_coll_info_v4 get_coll_info;
  contextune_tuner_end end;
};

struct contextune_tuner_v5 {
  const char* name;
  contextune_tuner_init_v5 init;
  contextune_tuner_coll_info_v4 get_coll_info;
  contextune_tuner_end end;
};

struct contextune_tuner_v6 {
  struct contextune_tuner_v5 v5;
  /* NULL: NCCL's own choice stands. */
  ncclResult_t (*get_chunk_size)(void* context, int function, size_t bytes, int algorithm,
                                 int protocol, int num_channels, size_t* chunk_bytes);
};
