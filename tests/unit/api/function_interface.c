/* A function as a C program, or another language, has it, on the simulated driver. Ends with 0 if
 * all is as it should be. */
#include <contextune/contextune.h>

#include <cuda.h>
#include <simcuda/simcuda.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void describe(const struct simcuda_launch* launch, struct simcuda_work* work) {
  work->block_cycles = launch->block[0] == 128 ? 20e3 : 60e3;
}

static CUfunction function;
static const char* const blocks[] = {"block=256", "block=64", "block=128"};
static const unsigned sizes[] = {256, 64, 128};

/* One call of a function, and what came of it. */
struct call {
  contextune_function* function;
  int runs, asked, listed, begun, said; /* how often */
  int fails;                            /* bit i: config i cannot be run */
  int leaves;                           /* by a number below 0, where it fails */
  int keeps;                            /* bit i: config i is kept; 0: all are */
  unsigned last;                        /* block of the last run that counts */
  char changed[64], told[128];
};

static int run(void* user, uint32_t config, int counts) {
  struct call* call = user;
  ++call->runs;
  if (counts) call->last = sizes[config];
  if (call->fails & (1 << config)) {
    contextune_note_failure("it is broken");
    return call->leaves ? -1 : 7;
  }
  return cuLaunchKernel(function, 8, 1, 1, sizes[config], 1, 1, 0, NULL, NULL, NULL) !=
         CUDA_SUCCESS;
}

static int prune(void* user, uint32_t config) {
  struct call* call = user;
  ++call->asked;
  if (call->keeps == 0 || (call->keeps & (1 << config))) return contextune_kept;
  contextune_note_failure("it is not wanted");
  return contextune_ruled_out_by_author;
}

static int list(void* user, const contextune_device* device, contextune_space* space) {
  struct call* call = user;
  size_t i;
  ++call->listed;
  CHECK(device->size >= sizeof device->size);
  for (i = 0; i < 3; ++i) CHECK(contextune_space_add(space, blocks[i]) == 0);
  return 0;
}

static int begin(void* user, contextune_entry* entry) {
  ++((struct call*)user)->begun;
  CHECK(contextune_region_option(entry, "confirm_min_pairs", "2") == 0);
  return 0;
}

static int run_changed(void* user, uint32_t base, const char* config) {
  struct call* call = user;
  CHECK(base < 3);
  strncpy(call->changed, config, sizeof call->changed - 1);
  return 0;
}

static void say(void* user, const char* text) {
  struct call* call = user;
  ++call->said;
  strncpy(call->told, text, sizeof call->told - 1);
}

static int hint(void* user, uint64_t of_size);

static contextune_function_run of(struct call* call) {
  contextune_function_run given = {0};
  given.size = sizeof given;
  given.user = call;
  given.run = run;
  given.prune = prune;
  given.space = list;
  given.begin = begin;
  given.hint = hint;
  given.say = say;
  return given;
}

static uint32_t problem_of(contextune_function* made, const char* key, uint64_t of_size) {
  contextune_function_key given = {0};
  given.size = sizeof given;
  given.key = key;
  given.has_size = of_size != 0;
  given.of_size = of_size;
  return contextune_function_problem(made, &given);
}

static int hint(void* user, uint64_t of_size) {
  struct call* call = user;
  const contextune_function_run given = of(call);
  return contextune_function_tune(call->function, problem_of(call->function, NULL, of_size),
                                  &given);
}

static contextune_function_options options(void) {
  contextune_function_options given = {0};
  given.size = sizeof given;
  given.configs = blocks;
  given.num_configs = 3;
  given.n_repeat = 2;
  given.repeatable = 1;
  return given;
}

static contextune_function* make(const char* name, const contextune_function_options* given) {
  const contextune_function_options plain = options();
  contextune_function* made = contextune_function_create(name, given != NULL ? given : &plain);
  CHECK(made != NULL);
  return made;
}

static void check_misuse(void) {
  contextune_function_options given = options();
  contextune_function_run without = {0};
  contextune_function_key key = {0};
  contextune_function* made = make("misused", NULL);
  CHECK(contextune_function_create("", &given) == NULL);
  CHECK(contextune_function_create("x", NULL) == NULL);
  CHECK(strstr(contextune_error(), "sizeof(contextune_function_options)") != NULL);
  given.num_configs = 0;
  CHECK(contextune_function_create("x", &given) == NULL);
  CHECK(strstr(contextune_error(), "function 'x': its config space is empty") != NULL);
  given = options();
  given.buckets = "64K,1K";
  CHECK(contextune_function_create("x", &given) == NULL);
  given = options();
  given.n_warmup = -1;
  CHECK(contextune_function_create("x", &given) == NULL);
  CHECK(strstr(contextune_error(), "n_warmup is -1") != NULL);
  CHECK(contextune_function_problem(made, &key) == CONTEXTUNE_UNTUNED);
  CHECK(problem_of(made, "no key", 0) == CONTEXTUNE_UNTUNED);
  CHECK(contextune_function_call(made, 0, &without) == CONTEXTUNE_FUNCTION_FAILED);
  without.size = sizeof without;
  CHECK(contextune_function_call(made, 0, &without) == CONTEXTUNE_FUNCTION_FAILED);
  CHECK(strstr(contextune_error(), "without `run`") != NULL);
  contextune_function_destroy(made);
  contextune_function_destroy(NULL);
}

/* Before CUDA is initialised the first config runs that is kept. */
static void check_early(void) {
  contextune_function_options given = options();
  contextune_function* made;
  struct call call = {0};
  contextune_function_run run_of = of(&call);
  given.configs = NULL;
  given.num_configs = 0;
  made = make("early", &given);
  call.keeps = 4;
  call.fails = 7;
  CHECK(contextune_function_call(made, problem_of(made, "n=1", 0), &run_of) == 7);
  CHECK(call.runs == 1 && call.last == 128 && call.listed == 1);
  CHECK(contextune_function_settled(made, problem_of(made, "n=1", 0)) == CONTEXTUNE_UNSETTLED);
  CHECK(contextune_function_tune(made, problem_of(made, "n=1", 0), &run_of) == 0);
}

static void check_call(void) {
  contextune_function_options given = options();
  contextune_function* made;
  contextune_timing timings[3];
  contextune_tunable* tunable;
  struct call call = {0};
  contextune_function_run run_of = of(&call);
  uint32_t problem, number, other;
  int before;
  given.configs = NULL;
  given.num_configs = 0;
  made = make("called", &given);
  problem = problem_of(made, "n=1", 0);
  CHECK(problem == problem_of(made, "n=1", 0) && problem != problem_of(made, "n=2", 0));
  CHECK(contextune_function_default(made, problem) == CONTEXTUNE_UNSETTLED);
  CHECK(contextune_function_tunable(made, problem, &number) == NULL);
  CHECK(number == CONTEXTUNE_UNTUNED);

  CHECK(contextune_function_call(made, problem, &run_of) == 0);
  CHECK(call.listed == 1 && call.asked == 3 && call.begun == 1 && call.runs > 6);
  CHECK(call.last == 128 && call.said == 1);
  CHECK(strcmp(call.told, "called{n=1}: was tuned, and runs block=128") == 0);
  CHECK(contextune_function_settled(made, problem) == 2);
  CHECK(contextune_function_default(made, problem) == 0);
  tunable = contextune_function_tunable(made, problem, &number);
  CHECK(tunable != NULL && contextune_tunable_timings(tunable, number, timings, 3) == 3);
  CHECK(timings[2].is_winner && timings[2].seconds < timings[0].seconds);

  /* Once more, at once; then what it has settled on breaks. */
  before = call.runs;
  run_of.says_runs = 1;
  CHECK(contextune_function_call(made, problem, &run_of) == 0);
  CHECK(call.runs == before + 1 && call.last == 128);
  CHECK(strcmp(call.told, "called{n=1}: runs block=128") == 0);
  call.fails = 4;
  CHECK(contextune_function_call(made, problem, &run_of) == 0);
  CHECK(call.runs == before + 3 && call.last == 256);
  CHECK(contextune_function_settled(made, problem) == 0);
  call.fails = 0;

  /* Not tuned for once; then in a region of the program's. */
  other = problem_of(made, "n=3", 0);
  run_of.is_untuned = 1;
  before = call.runs;
  CHECK(contextune_function_call(made, other, &run_of) == 0);
  CHECK(call.runs == before + 1 && call.last == 256);
  CHECK(contextune_function_settled(made, other) == CONTEXTUNE_UNSETTLED);
  run_of.is_untuned = 0;
  {
    contextune_entry entry;
    contextune_region_begin(&entry, "around");
    CHECK(contextune_region_option(&entry, "repeatable", "on") == 0);
    CHECK(contextune_region_option(&entry, "n_repeat", "2") == 0);
    while (contextune_region_next(&entry)) {
      CHECK(contextune_function_tune(made, other, &run_of) == 0);
      CHECK(contextune_function_call(made, other, &run_of) == 0);
    }
    contextune_region_end(&entry);
  }
  CHECK(call.last == 128 && contextune_function_settled(made, other) == 2);

  /* The program drops it. */
  contextune_function_drop(made, other, 2);
  CHECK(contextune_function_settled(made, other) == 0);

  /* Beyond the numbers of problems. */
  call.keeps = 2;
  CHECK(contextune_function_call(made, CONTEXTUNE_UNTUNED, &run_of) == 0);
  CHECK(call.last == 64);
  contextune_function_destroy(made);
}

static void check_failing(void) {
  contextune_function* made = make("failing", NULL);
  struct call call = {0};
  contextune_function_run run_of = of(&call);
  uint32_t problem = problem_of(made, "n=1", 0);
  /* The default leaves its place to the next; the winner is what is left. */
  call.fails = 1;
  CHECK(contextune_function_call(made, problem, &run_of) == 0);
  CHECK(call.last == 128 && contextune_function_default(made, problem) == 1);
  CHECK(contextune_function_settled(made, problem) == 2);
  /* None can run. */
  call.fails = 7;
  call.leaves = 1;
  CHECK(contextune_function_call(made, problem_of(made, "n=2", 0), &run_of) ==
        CONTEXTUNE_FUNCTION_FAILED);
  CHECK(strstr(contextune_error(), "function 'failing': no config can run for 'n=2'") != NULL);
  CHECK(strstr(contextune_error(), "block=64: it is broken") != NULL);
  /* None is kept. */
  call.keeps = 8;
  call.runs = 0;
  CHECK(contextune_function_call(made, problem_of(made, "n=3", 0), &run_of) ==
        CONTEXTUNE_FUNCTION_FAILED);
  CHECK(strstr(contextune_error(), "block=64: it is not wanted") != NULL);
  CHECK(call.runs == 0);
}

static void check_sizes(void) {
  static const uint64_t hints[] = {512};
  contextune_function_options given = options();
  contextune_function* made;
  struct call call = {0};
  contextune_function_run run_of = of(&call);
  int before;
  given.hints = hints;
  given.num_hints = 1;
  given.unseen = contextune_unseen_nearest;
  given.buckets = "512,1024,64K";
  made = make("sized", &given);
  call.function = made;
  CHECK(problem_of(made, NULL, 1) == problem_of(made, NULL, 512));
  CHECK(problem_of(made, NULL, 513) != problem_of(made, NULL, 512));
  CHECK(contextune_function_call(made, problem_of(made, NULL, 1000), &run_of) == 0);
  CHECK(call.last == 128 &&
        strcmp(call.told, "sized{size=0-512}: was tuned, and runs block=128") == 0);
  CHECK(contextune_function_settled(made, problem_of(made, NULL, 512)) == 2);
  CHECK(contextune_function_settled(made, problem_of(made, NULL, 1000)) == 2);
  /* It is borrowed: its own is still to be found out. */
  before = call.runs;
  CHECK(contextune_function_tune(made, problem_of(made, NULL, 1000), &run_of) == 1);
  CHECK(call.runs > before);
  before = call.runs;
  CHECK(contextune_function_tune(made, problem_of(made, NULL, 1000), &run_of) == 1);
  CHECK(call.runs == before);
  /* Without who measures them. */
  made = make("unhinted", &given);
  run_of.hint = NULL;
  CHECK(contextune_function_call(made, problem_of(made, NULL, 9), &run_of) ==
        CONTEXTUNE_FUNCTION_FAILED);
  CHECK(strstr(contextune_error(), "hints") != NULL);
}

static void check_override(void) {
  contextune_function_options given = options();
  struct call call = {0};
  contextune_function_run run_of = of(&call);
  contextune_function* made = make("fixed", NULL);
  run_of.set = "block=64";
  CHECK(contextune_function_call(made, problem_of(made, NULL, 0), &run_of) ==
        CONTEXTUNE_FUNCTION_FAILED);
  CHECK(strstr(contextune_error(), "allow_override") != NULL);
  given.allow_override = 1;
  made = make("overridden", &given);
  CHECK(contextune_function_call(made, problem_of(made, NULL, 0), &run_of) == 0);
  CHECK(call.runs == 1 && call.last == 64);
  run_of.set = "block=32";
  CHECK(contextune_function_call(made, problem_of(made, NULL, 0), &run_of) ==
        CONTEXTUNE_FUNCTION_FAILED);
  CHECK(strstr(contextune_error(), "has no config 'block=32'") != NULL);
  run_of.run_changed = run_changed;
  CHECK(contextune_function_call(made, problem_of(made, NULL, 0), &run_of) == 0);
  CHECK(call.runs == 1 && strcmp(call.changed, "block=32") == 0);
  run_of.set = "blocks=32";
  CHECK(contextune_function_call(made, problem_of(made, NULL, 0), &run_of) ==
        CONTEXTUNE_FUNCTION_FAILED);
  CHECK(strstr(contextune_error(), "no such parameter") != NULL);
}

int main(void) {
  static struct simcuda_kernel kernel;
  static const struct simcuda_kernel* const kernels[] = {&kernel};
  static const struct simcuda_kernel_table table = {SIMCUDA_VERSION, kernels, 1};
  CUcontext context;
  CUmodule module;
  kernel.name = "paced";
  kernel.describe = describe;
  check_misuse();
  check_early();
  CHECK(cuInit(0) == CUDA_SUCCESS);
  simcuda_set_noise(0, 1);
  CHECK(simcuda_register_kernels(&table) == 0);
  CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CHECK(cuModuleLoadData(&module, "simcuda image 1\nkernel paced\n") == CUDA_SUCCESS);
  CHECK(cuModuleGetFunction(&function, module, "paced") == CUDA_SUCCESS);
  check_call();
  check_failing();
  check_sizes();
  check_override();
  if (failures == 0) puts("ok");
  return failures == 0 ? 0 : 1;
}
