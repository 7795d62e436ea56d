/* contextune as NCCL's tuner plugin, in the versions that NCCL 2.22 to 2.30 look for. It asks the
 * user's own plugin, whose choice is the default that the core may change: what keeps the default's
 * bits, and what is faster than it, depends on what it is. Without either all stays as NCCL has it.
 * None of our own results is an error: with one NCCL fails the collective or communicator. */
#include "users_tuner.h"

#include "nccl_wrappers.h"

#include <stdlib.h>

struct communicator {
  int64_t number; /* the core's; negative: it is not asked */
  struct contextune_users_tuner users;
};

/* NULL where it may not be asked: inside of itself, and where there is none. */
static const struct contextune_core* enter_core(int* error) {
  const struct contextune_core* core = contextune_load_core();
  if (core == NULL || contextune_thread.depth != 0) {
    return NULL;
  }
  *error = contextune_enter(core);
  return core;
}

static int64_t begin_in_core(const struct contextune_tuner_setting* setting, int users_version) {
  const struct contextune_tuner_comm shown = {
      .id = setting->comm,
      .nranks = setting->nranks,
      .nnodes = setting->nnodes,
      .version = (uint32_t)setting->version,
      .tuner = contextune_tuner_state(),
      .users_version = users_version,
  };
  int64_t number = -1;
  int error = 0;
  const struct contextune_core* core = enter_core(&error);
  if (core != NULL) {
    number = core->tuner_begin(&shown);
    contextune_leave(error);
  }
  return number;
}

static ncclResult_t begin(const struct contextune_tuner_setting* setting, void** context) {
  const int error = errno;
  contextune_tuner_taken();
  struct communicator* comm = malloc(sizeof *comm);
  *context = comm;
  if (comm == NULL) {
    errno = error;
    return ncclSuccess; /* NCCL decides on its own */
  }
  comm->users = contextune_users_tuner_find(setting->version);
  comm->number = -1;
  const ncclResult_t result = contextune_users_tuner_init(&comm->users, setting);
  if (result != ncclSuccess) {
    free(comm); /* there will be no communicator */
    *context = NULL;
  } else {
    comm->number = begin_in_core(setting, comm->users.version);
  }
  errno = error;
  return result;
}

static void decide_in_core(const struct communicator* comm,
                           const struct contextune_tuner_question* question) {
  int error = 0;
  const struct contextune_core* core = comm->number >= 0 ? enter_core(&error) : NULL;
  if (core == NULL) {
    return;
  }
  core->tuner_decide(comm->number, question->function, question->bytes, question->num_pipelined,
                     (float*)question->table, question->num_algorithms, question->num_protocols,
                     question->registered, question->num_channels);
  contextune_leave(error);
}

static ncclResult_t decide(const struct communicator* comm,
                           const struct contextune_tuner_question* question) {
  if (comm == NULL) {
    return ncclSuccess;
  }
  const ncclResult_t result = contextune_users_tuner_ask(&comm->users, question);
  if (result == ncclSuccess) {
    decide_in_core(comm, question); /* counts it, which no other rank can leave out either */
  }
  return result;
}

static ncclResult_t end(void* context) {
  struct communicator* comm = context;
  if (comm == NULL) {
    return ncclSuccess;
  }
  int error = 0;
  const struct contextune_core* core = comm->number >= 0 ? enter_core(&error) : NULL;
  if (core != NULL) {
    core->tuner_end(comm->number);
    contextune_leave(error);
  }
  const ncclResult_t result = contextune_users_tuner_end(&comm->users);
  error = errno;
  free(comm);
  errno = error;
  return result;
}

/* ---- the forms of the versions ---- */

#define DEFINE_OLD_INIT(number)                                                              \
  static ncclResult_t init_v##number(size_t nranks, size_t nnodes, contextune_tuner_log log, \
                                     void** context) {                                       \
    return begin(                                                                            \
        &(struct contextune_tuner_setting){                                                  \
            .version = (number), .nranks = nranks, .nnodes = nnodes, .log = log},            \
        context);                                                                            \
  }
DEFINE_OLD_INIT(3)
DEFINE_OLD_INIT(4)

static ncclResult_t init_newer(int version, void** context, uint64_t comm, size_t nranks,
                               size_t nnodes, contextune_tuner_log log, void* domains,
                               void* constants) {
  return begin(&(struct contextune_tuner_setting){.version = version,
                                                  .comm = comm,
                                                  .nranks = nranks,
                                                  .nnodes = nnodes,
                                                  .log = log,
                                                  .domains = domains,
                                                  .constants = constants},
               context);
}

static ncclResult_t init_v5(void** context, uint64_t comm, size_t nranks, size_t nnodes,
                            contextune_tuner_log log, void* domains, void* constants) {
  return init_newer(5, context, comm, nranks, nnodes, log, domains, constants);
}

static ncclResult_t coll_info_v4(void* context, int function, size_t bytes, int num_pipelined,
                                 contextune_tuner_table table, int num_algorithms,
                                 int num_protocols, int registered, int* num_channels) {
  const struct contextune_tuner_question question = {
      .function = function,
      .bytes = bytes,
      .num_pipelined = num_pipelined,
      .table = table,
      .num_algorithms = num_algorithms,
      .num_protocols = num_protocols,
      .registered = registered,
      .num_channels = num_channels,
  };
  return decide(context, &question);
}

static ncclResult_t coll_info_v3(void* context, int function, size_t bytes, int num_pipelined,
                                 contextune_tuner_table table, int num_algorithms,
                                 int num_protocols, int* num_channels) {
  return coll_info_v4(context, function, bytes, num_pipelined, table, num_algorithms, num_protocols,
                      0, num_channels);
}

static ncclResult_t chunk_size(void* context, int function, size_t bytes, int algorithm,
                               int protocol, int num_channels, size_t* chunk_bytes) {
  const struct communicator* comm = context;
  return comm != NULL ? contextune_users_tuner_chunk(&comm->users, function, bytes, algorithm,
                                                     protocol, num_channels, chunk_bytes)
                      : ncclSuccess;
}

#define EXPORTED __attribute__((visibility("default")))

extern const struct contextune_tuner_v3 ncclTunerPlugin_v3;
extern const struct contextune_tuner_v4 ncclTunerPlugin_v4;
extern const struct contextune_tuner_v5 ncclTunerPlugin_v5;
extern struct contextune_tuner_v6 ncclTunerPlugin_v6;
EXPORTED const struct contextune_tuner_v3 ncclTunerPlugin_v3 = {"contextune", init_v3, coll_info_v3,
                                                                end};
EXPORTED const struct contextune_tuner_v4 ncclTunerPlugin_v4 = {"contextune", init_v4, coll_info_v4,
                                                                end};
EXPORTED const struct contextune_tuner_v5 ncclTunerPlugin_v5 = {"contextune", init_v5, coll_info_v4,
                                                                end};

/* NCCL limits the size of chunks to its buffers where a plugin could name one, and not otherwise:
 * so ours can only where the user's can. */
static ncclResult_t init_v6(void** context, uint64_t comm, size_t nranks, size_t nnodes,
                            contextune_tuner_log log, void* domains, void* constants) {
  const ncclResult_t result = init_newer(6, context, comm, nranks, nnodes, log, domains, constants);
  const struct communicator* made = *context;
  if (result == ncclSuccess && made != NULL && contextune_users_tuner_sizes_chunks(&made->users)) {
    __atomic_store_n(&ncclTunerPlugin_v6.get_chunk_size, &chunk_size, __ATOMIC_RELEASE);
  }
  return result;
}

EXPORTED struct contextune_tuner_v6 ncclTunerPlugin_v6 = {
    {"contextune", init_v6, coll_info_v4, end}, NULL};
