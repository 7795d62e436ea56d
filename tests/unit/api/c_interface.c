/* The C functions as a C program uses them, on the simulated driver: a region with a tunable and a
 * kernel that is declared with callbacks. Ends with 0 if all is as it should be. */
#include <contextune/contextune.h>

#include <cuda.h>
#include <simcuda/simcuda.h>

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void describe(const struct simcuda_launch* launch, struct simcuda_work* work) {
  work->block_cycles = launch->block[0] == 128 ? 20e3 : 60e3;
}
static const struct simcuda_parameter parameters[] = {{4, 4}};
static const struct simcuda_kernel tuned = {"tuned", NULL, describe, parameters, 1, 0, 0, 0, 0, 0};
static const struct simcuda_kernel declared = {"declared", NULL, describe, parameters, 1,
                                               0,          0,    0,        0,          0};
static const struct simcuda_kernel* const kernels[] = {&tuned, &declared};
static const struct simcuda_kernel_table table = {SIMCUDA_VERSION, kernels, 2};

static const char* const blocks[] = {"block=256", "block=128", "block=64"};
static const unsigned block_sizes[] = {256, 128, 64};
static int num_restores;
static int user_data;

static int restore(void* user) {
  CHECK(user == &user_data);
  ++num_restores;
  return 0;
}

static int write_key(void* user, contextune_launch_view* launch, char* key, size_t key_bytes,
                     char* error, size_t error_bytes) {
  int n;
  (void)error;
  (void)error_bytes;
  CHECK(user == &user_data);
  CHECK(launch->num_arguments == 1 && launch->argument_bytes[0] == sizeof n);
  CHECK(strcmp(launch->kernel, "declared") == 0);
  memcpy(&n, launch->arguments[0], sizeof n);
  launch->reads = 0;
  launch->read_arguments = 1;
  snprintf(key, key_bytes, "n=%d", n);
  return 0;
}

static int prune(void* user, size_t config, contextune_launch_view* launch, int* keep, char* error,
                 size_t error_bytes) {
  (void)user;
  (void)error;
  (void)error_bytes;
  *keep = block_sizes[config] != launch->block[0];
  return 0;
}

static int apply(void* user, size_t config, contextune_launch_view* launch,
                 contextune_launch_change* change, char* error, size_t error_bytes) {
  (void)user;
  (void)error;
  (void)error_bytes;
  CHECK(launch->num_sms > 0);
  launch->reads = 0;
  change->block[0] = block_sizes[config];
  return 0;
}

static void check_misuse(void) {
  static const char* const twice[] = {"a=1", "a=1"};
  static const char* const unreadable[] = {"a"};
  contextune_kernel kernel = {0};
  CHECK(contextune_tunable_create("none", NULL, 0) == NULL);
  CHECK(strstr(contextune_error(), "'none' has no configs") != NULL);
  CHECK(contextune_tunable_create("twice", twice, 2) == NULL);
  CHECK(strstr(contextune_error(), "twice") != NULL);
  CHECK(contextune_tunable_create("unreadable", unreadable, 1) == NULL);
  CHECK(strstr(contextune_error(), "name=value") != NULL);
  CHECK(contextune_declare_kernel(&kernel) == -1);
  CHECK(strstr(contextune_error(), "sizeof(contextune_kernel)") != NULL);
  kernel.size = sizeof kernel;
  kernel.kernel = "x";
  CHECK(contextune_declare_kernel(&kernel) == -1);
  CHECK(strstr(contextune_error(), "without `apply`") != NULL);
}

static void check_no_timings(void) {
  contextune_timing timing;
  CHECK(contextune_tunable_timings(contextune_tunable_create("early", blocks, 3), 0, &timing, 1) ==
        0);
  CHECK(strstr(contextune_error(), "CUDA") != NULL);
}

static void check_version(void) {
  contextune_tunable* tunable = contextune_tunable_create("versioned", blocks, 3);
  CHECK(contextune_tunable_version(tunable, "1f") == 0);
  CHECK(contextune_tunable_version(tunable, NULL) == 0);
  CHECK(contextune_tunable_version(NULL, "1f") == -1);
  CHECK(strstr(contextune_error(), "does not exist") != NULL);
}

static void check_options(void) {
  contextune_entry entry;
  contextune_region_begin(&entry, "options");
  CHECK(contextune_region_tunes(&entry) == 1);
  CHECK(contextune_region_option(&entry, "n_repeat", "5") == 0);
  CHECK(contextune_region_option(&entry, "n_repeat", "none") == -1);
  CHECK(strstr(contextune_error(), "n_repeat") != NULL);
  CHECK(contextune_region_option(&entry, "no_such", "5") == -1);
  CHECK(strstr(contextune_error(), "no_such") != NULL);
  CHECK(contextune_region_option(&entry, "log_dir", "x") == -1);
  CHECK(strstr(contextune_error(), "CONTEXTUNE_LOG_DIR") != NULL);
  CHECK(contextune_region_next(&entry) == 1);
  CHECK(contextune_region_option(&entry, "n_repeat", "5") == 0 || *contextune_error() != '\0');
  CHECK(contextune_region_next(&entry) == 0);
  contextune_region_end(&entry);
  contextune_region_end(&entry);
}

/* Of a problem that keeps two of three configs, and has chosen the second. */
static void check_timings(contextune_tunable* tunable, uint32_t key) {
  contextune_timing timings[3] = {{0}};
  const uint32_t other = contextune_tunable_key(tunable, "n=8");
  CHECK(contextune_tunable_timings(tunable, key, NULL, 0) == 3);
  CHECK(contextune_tunable_timings(tunable, key, timings, 3) == 3);
  CHECK(timings[0].config == 0 && timings[1].config == 1 && timings[2].config == 2);
  CHECK(timings[0].state == contextune_timing_measured && timings[0].samples > 0);
  CHECK(timings[1].state == contextune_timing_measured && timings[1].samples > 0);
  CHECK(timings[1].seconds > 0 && timings[1].seconds < timings[0].seconds);
  CHECK(timings[2].state == contextune_timing_unsupported && timings[2].samples == 0);
  CHECK(!timings[0].is_winner && timings[1].is_winner && !timings[2].is_winner);
  CHECK(timings[1].implementation == 0);
  /* One that was not called yet. */
  CHECK(contextune_tunable_timings(tunable, other, timings, 3) == 3);
  CHECK(timings[0].state == contextune_timing_missing && !timings[0].is_winner);
  CHECK(contextune_tunable_timings(tunable, CONTEXTUNE_UNTUNED, timings, 3) == 0);
  CHECK(strstr(contextune_error(), "no such problem") != NULL);
}

/* One problem, tuned by itself without the config that is not kept. */
static void check_one_problem(CUfunction function) {
  static const uint32_t kept[] = {0, 1}, other[] = {1, 0}, twice[] = {1, 1}, beyond[] = {3};
  static const contextune_pruned pruned = {0, 0, 1, 0};
  contextune_tunable* tunable = contextune_tunable_create("one_problem", blocks, 3);
  const uint32_t key = contextune_tunable_key(tunable, "n=7");
  contextune_entry entry;
  unsigned runs = 0;
  CHECK(contextune_tunable_keep(tunable, key, NULL, 0, NULL) == -1);
  CHECK(contextune_tunable_keep(tunable, key, twice, 2, NULL) == -1);
  CHECK(contextune_tunable_keep(tunable, key, beyond, 1, NULL) == -1);
  CHECK(strstr(contextune_error(), "config 3 is kept for 'n=7'") != NULL);
  CHECK(contextune_tunable_keep(tunable, key, kept, 2, &pruned) == 0);
  CHECK(contextune_tunable_keep(tunable, key, kept, 2, &pruned) == 0);
  CHECK(contextune_tunable_keep(tunable, key, other, 2, &pruned) == -1);

  CHECK(contextune_current_place() == contextune_place_free);
  CHECK(contextune_tunable_settled(tunable, key) == CONTEXTUNE_UNSETTLED);
  contextune_tunable_region_begin(&entry, tunable, key);
  CHECK(contextune_current_place() == contextune_place_free);
  CHECK(contextune_region_option(&entry, "repeatable", "true") == 0);
  while (contextune_region_next(&entry)) {
    int n = 7;
    void* arguments[] = {&n};
    contextune_call call;
    const unsigned config = contextune_tunable_begin(tunable, key, &call);
    CHECK(config < 2);
    CHECK(contextune_current_place() == contextune_place_region);
    CHECK(contextune_tunable_settled(tunable, key) == CONTEXTUNE_UNSETTLED);
    ++runs;
    CHECK(cuLaunchKernel(function, 8, 1, 1, block_sizes[config], 1, 1, 0, NULL, arguments, NULL) ==
          CUDA_SUCCESS);
    CHECK(contextune_tunable_end(&call, 1) == 0);
  }
  contextune_region_end(&entry);
  CHECK(runs > 9);
  CHECK(contextune_tunable_settled(tunable, key) == 1);
  check_timings(tunable, key);
}

static contextune_region_report report_of(const char* region) {
  contextune_region_report report = {0};
  report.size = sizeof report;
  CHECK(contextune_region_query(region, &report) == 0);
  CHECK(report.size == sizeof report);
  return report;
}

/* The region "one_problem{n=7}" has a faster config than its default. */
static void check_report(void) {
  contextune_region_report report = report_of("one_problem{n=7}"), old = {0};
  CHECK(report.state == contextune_region_finished);
  CHECK(report.verdict == contextune_verdict_kept && !report.is_stored);
  CHECK(report.pairs >= 4 && report.passes > 9 && report.entries >= report.passes);
  CHECK(report.sites == 1 && report.tuned == 1 && report.tuning_seconds > 0);
  CHECK(report.before_seconds > report.after_seconds && report.after_seconds > 0);
  CHECK(report.gain > 0.1 && report.gain < 1);
  CHECK(report.gain_low > 0 && report.gain_low <= report.gain && report.gain <= report.gain_high);
  report = report_of("options");
  CHECK(report.state == contextune_region_searching);
  CHECK(report.verdict == contextune_verdict_none && report.pairs == 0);
  CHECK(isnan(report.before_seconds));
  report = report_of("nothing");
  CHECK(report.state == contextune_region_unknown && isnan(report.after_seconds));
  /* What was compiled before there was a verdict is told none. */
  old.size = offsetof(contextune_region_report, verdict);
  CHECK(contextune_region_query("one_problem{n=7}", &old) == 0);
  CHECK(old.state == contextune_region_finished && old.pairs == 0);
  old.size = 0;
  CHECK(contextune_region_query("one_problem{n=7}", &old) == -1);
  CHECK(contextune_region_query(NULL, &report) == -1);
}

static void check_limits(CUfunction function) {
  contextune_device device = {0};
  contextune_kernel_limits limits = {0};
  contextune_launch_shape shape = {0};
  CHECK(contextune_current_device(&device) == -1);
  device.size = sizeof device;
  limits.size = sizeof limits;
  CHECK(contextune_current_device(&device) == 0);
  CHECK(device.num_sms > 0 && device.name[0] != '\0');
  CHECK(contextune_limits_of_kernel(NULL, &limits) == -1);
  CHECK(contextune_limits_of_kernel(function, &limits) == 0);
  CHECK(limits.max_threads_per_block > 0);
  CHECK(contextune_launch_fits(&shape, &device, &limits) == -1);
  shape.size = sizeof shape;
  shape.grid[0] = shape.grid[1] = shape.grid[2] = 1;
  shape.block[0] = shape.block[1] = shape.block[2] = 1;
  CHECK(contextune_launch_fits(&shape, &device, &limits) == 1);
  CHECK(contextune_launch_fits(&shape, NULL, NULL) == 1);
  shape.block[0] = 1024;
  limits.max_threads_per_block = 256;
  CHECK(contextune_launch_fits(&shape, &device, NULL) == 1);
  CHECK(contextune_launch_fits(&shape, &device, &limits) == 0);
  CHECK(strcmp(contextune_error(), "threads in a block: 1024, and the kernel allows 256") == 0);
}

/* A key that cannot be read is no problem's number, and the default runs. */
static void check_untuned(contextune_tunable* tunable) {
  const uint32_t key = contextune_tunable_key(tunable, "no key");
  const uint32_t kept[] = {1};
  contextune_call call;
  contextune_entry entry;
  int runs = 0;
  CHECK(key == CONTEXTUNE_UNTUNED);
  CHECK(strstr(contextune_error(), "no") != NULL);
  CHECK(contextune_tunable_key(NULL, "n=7") == CONTEXTUNE_UNTUNED);
  CHECK(contextune_tunable_settled(tunable, key) == 0);
  CHECK(contextune_tunable_keep(tunable, key, kept, 1, NULL) == -1);
  CHECK(contextune_tunable_begin(tunable, key, &call) == 0);
  CHECK(contextune_tunable_end(&call, 1) == 0);
  contextune_tunable_region_begin(&entry, tunable, key);
  CHECK(contextune_region_tunes(&entry) == 0);
  while (contextune_region_next(&entry)) ++runs;
  contextune_region_end(&entry);
  CHECK(runs == 1);
}

/* This process alone is a group, too; where it is of none, nothing is tuned. */
static void check_groups(contextune_tunable* tunable) {
  const int is_alone = getenv("CONTEXTUNE_RANK") == NULL;
  const uint32_t key = contextune_tunable_key(tunable, "n=9");
  const uint32_t own = contextune_tunable_group_key(tunable, "n=9", is_alone ? "0" : "2");
  contextune_entry entry;
  CHECK(contextune_tunable_group_key(tunable, "n=9", NULL) == key);
  CHECK(contextune_tunable_group_key(tunable, "n=9", "") == key);
  CHECK(own != key && own != CONTEXTUNE_UNTUNED);
  CHECK(contextune_tunable_group_key(tunable, "n=9", "0+1") ==
        contextune_tunable_group_key(tunable, "n=9", "0-1"));
  CHECK(contextune_tunable_group_key(tunable, "n=9", "0,1") == CONTEXTUNE_UNTUNED);
  CHECK(strstr(contextune_error(), "0,1") != NULL);
  contextune_tunable_region_begin(&entry, tunable, own);
  CHECK(contextune_region_tunes(&entry) == 1);
  contextune_region_end(&entry);
  contextune_tunable_region_begin(&entry, tunable,
                                  contextune_tunable_group_key(tunable, "n=9", "0-1"));
  CHECK(contextune_region_tunes(&entry) == 0);
  CHECK(contextune_region_next(&entry) == 1);
  CHECK(contextune_region_next(&entry) == 0);
  CHECK(contextune_region_untuned(&entry) == 1);
  contextune_region_end(&entry);
  contextune_region_begin(&entry, "grouped");
  CHECK(contextune_region_group(&entry, "0,1") == -1);
  CHECK(contextune_region_group(&entry, NULL) == 0);
  CHECK(contextune_region_tunes(&entry) == 1);
  CHECK(contextune_region_group(&entry, "1") == -1);
  CHECK(strstr(contextune_error(), "ranks 1 are named, and this is rank ") != NULL);
  CHECK(contextune_region_tunes(&entry) == 0);
  contextune_region_end(&entry);
}

/* Of a launcher, or of none. */
static void check_rank(void) {
  const char* const launched = getenv("CONTEXTUNE_RANK");
  uint32_t rank = 7, num_ranks = 7;
  contextune_rank(&rank, &num_ranks);
  CHECK(rank == (launched == NULL ? 0U : 2U) && num_ranks == (launched == NULL ? 1U : 4U));
  contextune_rank(NULL, NULL);
}

/* In a run after the first, with the same store. */
static void check_stored_report(void) {
  const contextune_region_report report = report_of("c");
  CHECK(report.state == contextune_region_finished);
  CHECK(report.verdict == contextune_verdict_kept && report.is_stored == 1);
  CHECK(report.tuned > 0 && report.gain > 0 && report.before_seconds > report.after_seconds);
}

/* With an argument: an earlier run has tuned its regions. */
int main(int argc, char** argv) {
  const int is_stored = argc == 2;
  CUcontext context;
  CUmodule module;
  CUfunction tuned_function, declared_function;
  contextune_kernel kernel = {0};
  contextune_tunable* tunable;
  contextune_entry entry;
  unsigned last = 0;
  int runs = 0;

  check_misuse();
  CHECK(report_of("options").state == contextune_region_unknown);
  check_rank();
  check_no_timings();
  CHECK(cuInit(0) == CUDA_SUCCESS);
  simcuda_set_noise(0, 1);
  CHECK(simcuda_register_kernels(&table) == 0);
  CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CHECK(cuModuleLoadData(&module, "simcuda image 1\nkernel tuned\nkernel declared\n") ==
        CUDA_SUCCESS);
  CHECK(cuModuleGetFunction(&tuned_function, module, "tuned") == CUDA_SUCCESS);
  CHECK(cuModuleGetFunction(&declared_function, module, "declared") == CUDA_SUCCESS);
  CHECK(contextune_current_state() == contextune_state_full);
  CHECK(*contextune_state_reason() == '\0');
  (void)argv;
  if (!is_stored) {
    check_version();
    check_options();
    check_one_problem(tuned_function);
    check_report();
  }
  check_limits(tuned_function);
  check_rank();

  kernel.size = sizeof kernel;
  kernel.kernel = "declared";
  kernel.configs = blocks;
  kernel.num_configs = 3;
  kernel.n_warmup = -1;
  kernel.n_repeat = -1;
  kernel.user = &user_data;
  kernel.key = write_key;
  kernel.prune = prune;
  kernel.apply = apply;
  CHECK(contextune_declare_kernel(&kernel) == 0);

  tunable = contextune_tunable_create("by_hand", blocks, 3);
  CHECK(tunable != NULL);
  CHECK(tunable == contextune_tunable_create("by_hand", blocks, 3));
  CHECK(contextune_tunable_key(tunable, NULL) == 0);
  CHECK(contextune_tunable_key(tunable, "n=7") == contextune_tunable_key(tunable, "n=7"));
  CHECK(contextune_tunable_key(tunable, "n=7") != contextune_tunable_key(tunable, "n=8"));
  check_untuned(tunable);
  if (!is_stored) check_groups(tunable);

  contextune_region_begin(&entry, "c");
  CHECK(contextune_region_option(&entry, "n_warmup", "1") == 0);
  CHECK(contextune_region_option(&entry, "n_repeat", "2") == 0);
  CHECK(contextune_region_restore_call(&entry, restore, &user_data) == 0);
  CHECK(contextune_region_untuned(&entry) == 0);
  while (contextune_region_next(&entry)) {
    int n = 7;
    void* arguments[] = {&n};
    contextune_call call;
    CUresult result;
    const unsigned config =
        contextune_tunable_begin(tunable, contextune_tunable_key(tunable, "n=7"), &call);
    ++runs;
    last = block_sizes[config];
    result = cuLaunchKernel(tuned_function, 8, 1, 1, last, 1, 1, 0, NULL, arguments, NULL);
    CHECK(contextune_tunable_end(&call, result == CUDA_SUCCESS) == 0);
    contextune_note_failure("nothing is open");
    CHECK(contextune_tunable_end(&call, 0) == 0);
    CHECK(cuLaunchKernel(declared_function, 8, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL) ==
          CUDA_SUCCESS);
  }
  contextune_region_end(&entry);
  CHECK(is_stored || runs > 9);
  CHECK(num_restores == runs - 1);
  CHECK(last == 128);
  if (is_stored) check_stored_report();
  if (failures == 0) printf("ok after %d runs\n", runs);
  return failures == 0 ? 0 : 1;
}
