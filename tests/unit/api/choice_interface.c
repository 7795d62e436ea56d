/* A choice as a C program uses it, on the simulated driver. Ends with 0 if all is as it should be.
 */
#include <contextune/contextune.h>

#include <cuda.h>
#include <simcuda/simcuda.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

/* Writes its value: what is compared. */
static void write_value(const struct simcuda_launch* launch) {
  unsigned value;
  unsigned* to;
  memcpy(&value, launch->arguments[0], sizeof value);
  memcpy(&to, launch->arguments[1], sizeof to);
  *to = value;
}
static void describe(const struct simcuda_launch* launch, struct simcuda_work* work) {
  work->block_cycles = launch->block[0] == 128 ? 20e3 : launch->block[0] == 64 ? 40e3 : 90e3;
}

static CUfunction function;
static CUdeviceptr memory;
static const char* const blocks[] = {"block=64", "block=128"};
static const unsigned sizes[] = {64, 128};
static unsigned last_block;
static int num_runs, num_asked, user_data;

static CUresult launch(unsigned value, unsigned block) {
  void* arguments[] = {&value, &memory};
  last_block = block;
  return cuLaunchKernel(function, 1, 1, 1, block, 1, 1, 0, NULL, arguments, NULL);
}

/* 0: plain. 1: blocked. 2: wrong, and as fast as anything. */
static int run(void* user, size_t implementation, size_t config) {
  CHECK(user == &user_data);
  ++num_runs;
  if (implementation == 0) return launch(7, 256) != CUDA_SUCCESS;
  if (implementation == 1) return launch(7, sizes[config]) != CUDA_SUCCESS;
  return launch(8, 128) != CUDA_SUCCESS;
}

static int supports(void* user, const contextune_problem* problem) {
  CHECK(user == &user_data);
  ++num_asked;
  CHECK(problem->size >= sizeof *problem && strcmp(problem->type, "u32") == 0);
  return problem->bytes <= 4096;
}

static void add(contextune_choice* choice, const char* name, size_t num_configs) {
  contextune_implementation one = {0};
  CHECK(contextune_choice_add(choice, &one) == -1);
  CHECK(strstr(contextune_error(), "sizeof(contextune_implementation)") != NULL);
  one.size = sizeof one;
  one.name = name;
  one.configs = blocks;
  one.num_configs = num_configs;
  one.user = &user_data;
  one.supports = supports;
  CHECK(contextune_choice_add(choice, &one) == 0);
}

static contextune_choice* make(const char* name) {
  contextune_choice_options options = {0};
  contextune_choice* choice;
  options.size = sizeof options;
  options.n_repeat = 2;
  choice = contextune_choice_create(name, &options);
  CHECK(choice != NULL);
  add(choice, "plain", 0);
  add(choice, "blocked", 2);
  add(choice, "wrong", 0);
  return choice;
}

static void check_misuse(void) {
  contextune_choice_options options = {0};
  contextune_problem problem = {0};
  CHECK(contextune_choice_create("", NULL) == NULL);
  CHECK(contextune_choice_create("x", &options) == NULL);
  CHECK(strstr(contextune_error(), "sizeof(contextune_choice_options)") != NULL);
  options.size = sizeof options;
  options.buckets = "64K,1K";
  CHECK(contextune_choice_create("x", &options) == NULL);
  CHECK(strstr(contextune_error(), "choice 'x'") != NULL &&
        strstr(contextune_error(), "1024") != NULL);
  /* What was compiled before there were buckets has none. */
  options.size = offsetof(contextune_choice_options, buckets);
  CHECK(contextune_choice_create("x", &options) != NULL);
  options.size = sizeof options;
  options.buckets = NULL;
  options.group = "0,1";
  CHECK(contextune_choice_create("x", &options) == NULL);
  CHECK(strstr(contextune_error(), "0,1") != NULL);
  options.group = "0-1";
  options.communicator = &options;
  CHECK(contextune_choice_create("x", &options) == NULL);
  CHECK(strstr(contextune_error(), "one of the two") != NULL);
  options.communicator = NULL;
  options.ranks = 3;
  CHECK(contextune_choice_create("x", &options) == NULL);
  CHECK(strstr(contextune_error(), "3 ranks") != NULL);
  options.ranks = 0;
  options.group = NULL;
  options.tolerance = "f31:1e-5";
  CHECK(contextune_choice_create("x", &options) == NULL);
  CHECK(strstr(contextune_error(), "f31:1e-5") != NULL);
  problem.size = sizeof problem;
  CHECK(contextune_choice_problem(contextune_choice_create("empty", NULL), &problem) == 0xffffffff);
  CHECK(strstr(contextune_error(), "without implementations") != NULL);
}

static unsigned value_there(void) {
  unsigned value = 0;
  CHECK(cuMemcpyDtoH(&value, memory, sizeof value) == CUDA_SUCCESS);
  return value;
}

/* What is known to run, as 10 * implementation + config; -1: nothing yet. */
static int settled(contextune_choice* choice, uint32_t number) {
  size_t implementation = 7, config = 7;
  const int known = contextune_choice_settled(choice, number, &implementation, &config);
  CHECK(known == 0 || known == 1);
  CHECK(contextune_choice_settled_number(choice, number) ==
        (known ? (int64_t)implementation << 32 | (int64_t)config : -1));
  return known ? (int)(10 * implementation + config) : -1;
}

/* Before CUDA is initialised nothing is tuned. */
static void check_settled_early(void) {
  contextune_choice* choice = make("early_in_c");
  contextune_problem problem = {0};
  size_t implementation, config;
  uint32_t number;
  problem.size = sizeof problem;
  problem.type = "u32";
  number = contextune_choice_problem(choice, &problem);
  CHECK(settled(choice, number) == 0);
  CHECK(contextune_choice_settled(choice, number + 1, &implementation, &config) == -1);
  CHECK(strstr(contextune_error(), "no such problem") != NULL);
  CHECK(contextune_choice_settled(NULL, number, &implementation, &config) == -1);
  CHECK(contextune_choice_settled(choice, number, NULL, &config) == -1);
  CHECK(contextune_choice_settled_number(choice, number + 1) == -1);
}

static void check_choice(void) {
  contextune_choice* choice = make("in_c");
  contextune_problem problem = {0};
  contextune_choice_run call = {0};
  contextune_memory output;
  contextune_timing timings[8];
  uint32_t number, large;
  int searched;

  problem.size = sizeof problem;
  problem.bytes = 4000;
  problem.type = "u32";
  problem.key = "k=3";
  number = contextune_choice_problem(choice, &problem);
  problem.bytes = 4096;
  CHECK(contextune_choice_problem(choice, &problem) == number);
  CHECK(num_asked > 0);
  problem.bytes = 8192;
  large = contextune_choice_problem(choice, &problem);
  CHECK(large != number);

  output.pointer = (void*)memory;
  output.size_bytes = sizeof(unsigned);
  output.is_output = 1;
  call.size = sizeof call;
  call.user = &user_data;
  call.run = run;
  call.memory = &output;
  call.num_memory = 1;
  CHECK(contextune_choice_wants(choice, number) == contextune_want_alone);
  CHECK(settled(choice, number) == -1);
  CHECK(contextune_choice_call(choice, number, &call, NULL) == 0);
  CHECK(last_block == 128 && value_there() == 7);
  CHECK(settled(choice, number) == 11);
  CHECK(settled(choice, large) == 0); /* nothing else can do it */
  CHECK(contextune_choice_wants(choice, number) == contextune_want_call);
  searched = num_runs;
  CHECK(contextune_choice_call(choice, number, &call, NULL) == 0);
  CHECK(num_runs == searched + 1);

  CHECK(contextune_choice_timings(choice, number, timings, 8) == 4);
  CHECK(timings[0].state == contextune_timing_measured && timings[0].samples == 2);
  CHECK(timings[2].implementation == 1 && timings[2].config == 1 && timings[2].is_winner);
  CHECK(timings[2].seconds > 0 && timings[2].seconds < timings[0].seconds);
  CHECK(timings[3].state == contextune_timing_wrong);

  /* Nothing but the default can do the large one. */
  CHECK(contextune_choice_call(choice, large, &call, NULL) == 0);
  CHECK(last_block == 256 && value_there() == 7);
  CHECK(settled(choice, large) == 0);
  CHECK(contextune_choice_call(choice, 0xffffffff, &call, NULL) == 0);
  CHECK(last_block == 256);
}

/* Up to the edge it is one problem; what is not measured is done by the default. */
static void check_sizes(void) {
  contextune_choice_options options = {0};
  contextune_problem problem = {0};
  contextune_choice* choice;
  uint32_t number;
  options.size = sizeof options;
  options.buckets = "3K,4K";
  options.unseen = contextune_unseen_default;
  choice = contextune_choice_create("sized_in_c", &options);
  add(choice, "plain", 0);
  add(choice, "blocked", 2);
  problem.size = sizeof problem;
  problem.type = "u32";
  problem.bytes = 3072;
  number = contextune_choice_problem(choice, &problem);
  problem.bytes = 1;
  CHECK(contextune_choice_problem(choice, &problem) == number);
  problem.bytes = 3073;
  CHECK(contextune_choice_problem(choice, &problem) != number);
  CHECK(contextune_choice_wants(choice, number) == contextune_want_call);
  CHECK(settled(choice, number) == 0);
}

int main(void) {
  static const struct simcuda_parameter parameters[] = {{4, 4}, {8, 8}};
  static struct simcuda_kernel kernel;
  static const struct simcuda_kernel* const kernels[] = {&kernel};
  static const struct simcuda_kernel_table table = {SIMCUDA_VERSION, kernels, 1};
  CUcontext context;
  CUmodule module;
  kernel.name = "write_value";
  kernel.run = write_value;
  kernel.describe = describe;
  kernel.parameters = parameters;
  kernel.parameter_count = 2;
  check_misuse();
  check_settled_early();
  CHECK(cuInit(0) == CUDA_SUCCESS);
  simcuda_set_noise(0, 1);
  CHECK(simcuda_register_kernels(&table) == 0);
  CHECK(cuDevicePrimaryCtxRetain(&context, 0) == CUDA_SUCCESS);
  CHECK(cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CHECK(cuModuleLoadData(&module, "simcuda image 1\nkernel write_value\n") == CUDA_SUCCESS);
  CHECK(cuModuleGetFunction(&function, module, "write_value") == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&memory, 256) == CUDA_SUCCESS);
  check_choice();
  check_sizes();
  if (failures == 0) printf("ok after %d runs\n", num_runs);
  return failures == 0 ? 0 : 1;
}
