/* The user's own tuner plugin, which NCCL would have loaded in place of ours: loaded behind it, in
 * the version that this NCCL would have taken, and asked whatever ours is asked. Its results are
 * passed on as they are, errors included: they are the program's. */
#pragma once

#include "tuner_abi.h"

#include <stdbool.h>

struct contextune_users_tuner {
  int version; /* of its interface, 2 to 6; 0: there is none */
  const void* plugin;
  void* context;
};

/* What NCCL says of a communicator; what a version of the interface does not have is 0. */
struct contextune_tuner_setting {
  int version; /* the one that NCCL speaks */
  uint64_t comm;
  size_t nranks;
  size_t nnodes;
  contextune_tuner_log log;
  void* domains;
  void* constants;
};

struct contextune_tuner_question {
  int function;
  size_t bytes;
  int num_pipelined;
  contextune_tuner_table table;
  int num_algorithms;
  int num_protocols;
  int registered;
  int* num_channels;
};

struct contextune_users_tuner contextune_users_tuner_find(int newest_version);
ncclResult_t contextune_users_tuner_init(struct contextune_users_tuner* tuner,
                                         const struct contextune_tuner_setting* setting);
ncclResult_t contextune_users_tuner_ask(const struct contextune_users_tuner* tuner,
                                        const struct contextune_tuner_question* question);
/* Whether it names sizes of chunks; without it contextune_users_tuner_chunk does nothing. */
bool contextune_users_tuner_sizes_chunks(const struct contextune_users_tuner* tuner);
ncclResult_t contextune_users_tuner_chunk(const struct contextune_users_tuner* tuner, int function,
                                          size_t bytes, int algorithm, int protocol,
                                          int num_channels, size_t* chunk_bytes);
ncclResult_t contextune_users_tuner_end(const struct contextune_users_tuner* tuner);
