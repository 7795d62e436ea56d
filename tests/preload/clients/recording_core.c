/* A core that writes down what the frontend tells it, one line each, to the file that
 * CONTEXTUNE_TEST_RECORD names. CONTEXTUNE_TEST_CORE: `refuse` to start, speak another `version`,
 * `arm` the launches, or see what is `recorded`. */
#include "forward_load.h"
#include "preload/contextune_abi.h"
#include "preload/registry/newer_types.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct contextune_frontend* frontend;

__attribute__((format(printf, 1, 2))) static void record(const char* format, ...) {
  const char* path = getenv("CONTEXTUNE_TEST_RECORD");
  errno = 99; /* what the program does not see */
  if (path == NULL) {
    return;
  }
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || length < 0 || write(file, line, (size_t)length) != length) {
    abort();
  }
  close(file);
  /* The contract: the core is called at depth 1, but where the program exits. */
  if (*frontend->depth() != (strcmp(line, "exit\n") == 0 ? 0 : 1)) {
    abort();
  }
  errno = 99;
}

static CUresult on_launch(const struct contextune_launch* launch) {
  record("launch %s %p grid %u %u %u block %u %u %u shared %u stream %p extra %d config %d\n",
         frontend->name(launch->fn), (void*)launch->function, launch->grid[0], launch->grid[1],
         launch->grid[2], launch->block[0], launch->block[1], launch->block[2],
         launch->shared_bytes, (void*)launch->stream, launch->extra != NULL,
         launch->config != NULL);
  void* real = frontend->real(launch->fn);
  if (launch->config != NULL) {
    return ((PFN_cuLaunchKernelEx_v11060)real)(launch->config, launch->function,
                                               launch->kernel_params, launch->extra);
  }
  /* Right for the cooperative form too, whose parameters are a prefix of these. */
  return ((PFN_cuLaunchKernel_v4000)real)(launch->function, launch->grid[0], launch->grid[1],
                                          launch->grid[2], launch->block[0], launch->block[1],
                                          launch->block[2], launch->shared_bytes, launch->stream,
                                          launch->kernel_params, launch->extra);
}

static CUresult on_graph_launch(enum contextune_fn fn, CUgraphExec exec, CUstream stream) {
  record("graph %s %p stream %p\n", frontend->name(fn), (void*)exec, (void*)stream);
  return ((PFN_cuGraphLaunch_v10000)frontend->real(fn))(exec, stream);
}

static void on_before(enum contextune_fn fn, void* const* args) {
  record("before %s%s\n", frontend->name(fn), args == NULL ? " without arguments" : "");
}

static void on_after(enum contextune_fn fn, void* const* args, CUresult result) {
  if (fn == contextune_fn_cuModuleGetFunction) {
    record("after %s %d name %s\n", frontend->name(fn), (int)result, *(const char* const*)args[2]);
    return;
  }
  record("after %s %d\n", frontend->name(fn), (int)result);
}

static void on_range(enum contextune_range_kind kind, const char* domain, const char* name,
                     uint64_t id) {
  static const char* const kinds[] = {"push", "pop", "start", "end"};
  (void)id;
  record("range %s domain '%s' name '%s'\n", kinds[kind], domain, name != NULL ? name : "(none)");
}

static void on_program_uses_cupti(enum contextune_fn fn) {
  record("cupti %s\n", frontend->name(fn));
}

static const char* const nccl_names[] = {
#define CONTEXTUNE_NCCL(name, ...) #name,
#define CONTEXTUNE_NCCL_LISTED(...)
#include "preload/registry/nccl.def"
#undef CONTEXTUNE_NCCL
#undef CONTEXTUNE_NCCL_LISTED
};

static void record_nccl(const char* when, const struct contextune_nccl_call* call) {
  record(
      "nccl %s %s comm %p count %llu type %d op %d root %d send %p recv %p stream %p groups %u "
      "nranks %d rank %d color %d key %d id %d made %d tuner %d library %d result %d\n",
      when, nccl_names[call->fn], call->comm, (unsigned long long)call->count, call->datatype,
      call->op, call->root, call->sendbuff, call->recvbuff, (void*)call->stream, call->group_depth,
      call->nranks, call->rank, call->color, call->key, call->unique_id != 0, call->num_made,
      (int)call->tuner, call->library != NULL, call->result);
}

static void on_nccl_before(const struct contextune_nccl_call* call) {
  record_nccl("before", call);
}

static void on_nccl_after(const struct contextune_nccl_call* call) {
  record_nccl("after", call);
}

static int64_t on_tuner_begin(const struct contextune_tuner_comm* comm) {
  record("tuner begin id %d nranks %llu nnodes %llu version %u state %d users %d\n", comm->id != 0,
         (unsigned long long)comm->nranks, (unsigned long long)comm->nnodes, comm->version,
         (int)comm->tuner, comm->users_version);
  return comm->tuner == contextune_tuner_offered ? 7 : -1;
}

/* CONTEXTUNE_TEST_DECIDE: algorithm, protocol, channels. */
static int on_tuner_decide(int64_t comm, int function, uint64_t bytes, int num_pipelined,
                           float* table, int num_algorithms, int num_protocols, int registered,
                           int* num_channels) {
  int algorithm = 0;
  int protocol = 0;
  int channels = 0;
  const char* choice = getenv("CONTEXTUNE_TEST_DECIDE");
  int cheapest = 0;
  for (int cell = 0; cell < num_algorithms * num_protocols; ++cell) {
    const int is_better =
        table[cell] >= 0 && (table[cheapest] < 0 || table[cell] < table[cheapest]);
    cheapest = is_better ? cell : cheapest;
  }
  record(
      "tuner asked %d function %d bytes %llu ops %d table %dx%d registered %d cheapest %d %d "
      "channels %d\n",
      (int)comm, function, (unsigned long long)bytes, num_pipelined, num_algorithms, num_protocols,
      registered, cheapest / num_protocols, cheapest % num_protocols, *num_channels);
  if (choice == NULL || sscanf(choice, "%d %d %d", &algorithm, &protocol, &channels) != 3) {
    return 0;
  }
  table[algorithm * num_protocols + protocol] = 0;
  *num_channels = channels;
  return 1;
}

static void on_tuner_end(int64_t comm) {
  record("tuner end %d\n", (int)comm);
}

static void on_exiting(void) {
  record("exit\n");
}

static void on_hand_over(enum contextune_fn fn) {
  (void)fn;
  record("hand over\n");
}

static CUresult on_load(enum contextune_fn fn, void* const* args) {
  record("load %s\n", frontend->name(fn));
  return forward_load(frontend->real(fn), fn, args);
}

static struct contextune_core core = {
    .version = CONTEXTUNE_ABI_VERSION,
    .size = sizeof(struct contextune_core),
    .launch = on_launch,
    .before = on_before,
    .after = on_after,
    .range = on_range,
    .program_uses_cupti = on_program_uses_cupti,
    .graph_launch = on_graph_launch,
    .nccl_before = on_nccl_before,
    .nccl_after = on_nccl_after,
    .tuner_begin = on_tuner_begin,
    .tuner_decide = on_tuner_decide,
    .tuner_end = on_tuner_end,
    .exiting = on_exiting,
    .hand_over = on_hand_over,
    .load = on_load,
};

__attribute__((visibility("default"))) const struct contextune_core* contextune_core_v1(
    const struct contextune_frontend* given) {
  const char* manner = getenv("CONTEXTUNE_TEST_CORE");
  frontend = given;
  record("attach in %d real cuInit %d real cuptiSubscribe %d passed %llu missed %u\n", getpid() > 0,
         frontend->real(contextune_fn_cuInit) == frontend->real_dlsym(frontend->libcuda, "cuInit"),
         frontend->real(contextune_fn_cuptiSubscribe) != NULL,
         (unsigned long long)frontend->launches_passed(),
         __atomic_load_n(frontend->missed, __ATOMIC_ACQUIRE));
  if (manner != NULL && strcmp(manner, "refuse") == 0) {
    return NULL;
  }
  if (manner != NULL && strcmp(manner, "version") == 0) {
    core.version = CONTEXTUNE_ABI_VERSION + 1;
  }
  if (manner != NULL && strcmp(manner, "arm") == 0) {
    __atomic_store_n(frontend->armed, 1, __ATOMIC_RELEASE);
  }
  if (manner != NULL && strcmp(manner, "no messages") == 0) {
    __atomic_store_n(frontend->messages, 0, __ATOMIC_RELEASE);
  }
  if (manner != NULL && strcmp(manner, "recorded") == 0) {
    __atomic_store_n(frontend->recording, 1, __ATOMIC_RELEASE);
  }
  if (manner != NULL && strcmp(manner, "transfers") == 0) {
    __atomic_store_n(frontend->transfers, 1, __ATOMIC_RELEASE);
  }
  return &core;
}

/* For an NCCL that asks whether its caller is seen in a call that is not shown. */
__attribute__((visibility("default"))) void recording_core_messages(int* here, unsigned* others) {
  *here = frontend->in_message();
  *others = frontend->messages_under_way();
}

/* For a client that asks how many launches went past the core. */
__attribute__((visibility("default"))) unsigned long long recording_core_passed(void) {
  return frontend != NULL ? frontend->launches_passed() : 0;
}
