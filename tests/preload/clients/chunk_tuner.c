/* A tuner plugin of version 6 that names the size of chunks, and nothing else. */
#include "preload/tuner_abi.h"

static ncclResult_t init(void** context, uint64_t comm, size_t nranks, size_t nnodes,
                         contextune_tuner_log log, void* domains, void* constants) {
  (void)comm, (void)nranks, (void)nnodes, (void)log, (void)domains, (void)constants;
  *context = NULL;
  return ncclSuccess;
}

static ncclResult_t coll_info(void* context, int function, size_t bytes, int num_pipelined,
                              contextune_tuner_table table, int num_algorithms, int num_protocols,
                              int registered, int* num_channels) {
  (void)context, (void)function, (void)bytes, (void)num_pipelined, (void)table;
  (void)num_algorithms, (void)num_protocols, (void)registered, (void)num_channels;
  return ncclSuccess;
}

static ncclResult_t chunk_size(void* context, int function, size_t bytes, int algorithm,
                               int protocol, int num_channels, size_t* chunk_bytes) {
  (void)context, (void)function, (void)bytes, (void)algorithm, (void)protocol, (void)num_channels;
  *chunk_bytes = 4096;
  return ncclSuccess;
}

static ncclResult_t end(void* context) {
  (void)context;
  return ncclSuccess;
}

extern const struct contextune_tuner_v6 ncclTunerPlugin_v6;
__attribute__((visibility("default")))
const struct contextune_tuner_v6 ncclTunerPlugin_v6 = {{"chunk", init, coll_info, end}, chunk_size};
