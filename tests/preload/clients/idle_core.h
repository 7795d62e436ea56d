/* A core that does nothing: a program that brings one of its own changes what it wants of it. */
#pragma once

#include "forward_load.h"
#include "preload/contextune_abi.h"
#include "preload/registry/newer_types.h"

static const struct contextune_frontend* frontend;

static CUresult idle_launch(const struct contextune_launch* launch) {
  (void)launch;
  return CUDA_ERROR_NOT_SUPPORTED;
}
static CUresult idle_graph_launch(enum contextune_fn fn, CUgraphExec exec, CUstream stream) {
  return ((PFN_cuGraphLaunch_v10000)frontend->real(fn))(exec, stream);
}
static void idle_before(enum contextune_fn fn, void* const* args) {
  (void)fn, (void)args;
}
static void idle_after(enum contextune_fn fn, void* const* args, CUresult result) {
  (void)fn, (void)args, (void)result;
}
static void idle_range(enum contextune_range_kind kind, const char* domain, const char* name,
                       uint64_t id) {
  (void)kind, (void)domain, (void)name, (void)id;
}
static void idle_of_function(enum contextune_fn fn) {
  (void)fn;
}
static void idle_nccl(const struct contextune_nccl_call* call) {
  (void)call;
}
static int64_t idle_tuner_begin(const struct contextune_tuner_comm* comm) {
  (void)comm;
  return -1;
}
static int idle_tuner_decide(int64_t comm, int function, uint64_t bytes, int num_pipelined,
                             float* table, int num_algorithms, int num_protocols, int registered,
                             int* num_channels) {
  (void)comm, (void)function, (void)bytes, (void)num_pipelined, (void)table, (void)num_algorithms;
  (void)num_protocols, (void)registered, (void)num_channels;
  return 0;
}
static void idle_tuner_end(int64_t comm) {
  (void)comm;
}
static void idle_exiting(void) {}
static CUresult idle_load(enum contextune_fn fn, void* const* args) {
  return forward_load(frontend->real(fn), fn, args);
}

static struct contextune_core core = {
    .version = CONTEXTUNE_ABI_VERSION,
    .size = sizeof(struct contextune_core),
    .launch = idle_launch,
    .before = idle_before,
    .after = idle_after,
    .range = idle_range,
    .program_uses_cupti = idle_of_function,
    .graph_launch = idle_graph_launch,
    .nccl_before = idle_nccl,
    .nccl_after = idle_nccl,
    .tuner_begin = idle_tuner_begin,
    .tuner_decide = idle_tuner_decide,
    .tuner_end = idle_tuner_end,
    .exiting = idle_exiting,
    .hand_over = idle_of_function,
    .load = idle_load,
};
