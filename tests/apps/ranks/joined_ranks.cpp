// A rank that hands its communicator over, tunes a region with the others, and says what came of
// it.
//   joined_ranks --meet PATH [--seconds S] [WORD...]
// Who it is comes from the variables of torchrun; contextune is told nothing. Words:
//   hold          says "ready", and joins when a line comes
//   absent        does not join
//   non-blocking  its communicator does not block
//   sharing       its communicator shares its resources with what is split off it
//   twice         joins once more in the end
//   part          joins with half of the communicator in the end
//   region-first  enters a region before it joins
//   choice-first  makes a choice of its ranks before it joins, and calls it never
//   alone         uses the communicator for nothing else
//   function      joins through a function that is given the communicator, and tunes that
//   given         its region is given the communicator, and entered twice
#include <cuda.h>
#include <dlfcn.h>
#include <nccl.h>
#include <simcuda/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "rank_meeting.hpp"

namespace {

constexpr unsigned elements = 1U << 20;

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s failed: %d\n", what, static_cast<int>(result));
  std::_Exit(1);
}
void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "%s failed: %s\n", what, ncclGetErrorString(result));
  std::_Exit(1);
}
#define CHECK(call) check(call, #call)

void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

ncclComm_t make_communicator(const Place& place, const ncclUniqueId& id, bool blocks, bool shares) {
  ncclComm_t communicator = nullptr;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocks ? 1 : 0;
  config.splitShare = shares ? 1 : 0;
  ncclResult_t result = ncclCommInitRankConfig(&communicator, place.ranks, id, place.rank, &config);
  while (result == ncclInProgress) CHECK(ncclCommGetAsyncError(communicator, &result));
  check(result, "ncclCommInitRankConfig");
  return communicator;
}

// Of the numbers of all ranks.
std::uint32_t sum_of_ranks(const Place& place, ncclComm_t communicator, CUstream stream) {
  CUdeviceptr memory = 0;
  CHECK(cuMemAlloc(&memory, sizeof(std::uint32_t)));
  CHECK(cuMemsetD32Async(memory, static_cast<unsigned>(place.rank + 1), 1, stream));
  void* place_of_sum = reinterpret_cast<void*>(memory);
  ncclResult_t result =
      ncclAllReduce(place_of_sum, place_of_sum, 1, ncclUint32, ncclSum, communicator, stream);
  while (result == ncclInProgress) CHECK(ncclCommGetAsyncError(communicator, &result));
  check(result, "ncclAllReduce");
  CHECK(cuStreamSynchronize(stream));
  std::uint32_t sum = 0;
  CHECK(cuMemcpyDtoH(&sum, memory, sizeof sum));
  return sum;
}

const char* const fill_on_gpu = R"(
.version 7.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 to, .param .u32 count, .param .u32 value)
{
  .reg .pred %p<1>;
  .reg .b32 %r<8>;
  .reg .b64 %d<4>;
  ld.param.u64 %d0, [to];
  ld.param.u32 %r0, [count];
  ld.param.u32 %r1, [value];
  cvta.to.global.u64 %d1, %d0;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mov.u32 %r6, %nctaid.x;
  mul.lo.u32 %r7, %r6, %r3;
again:
  setp.ge.u32 %p0, %r5, %r0;
  @%p0 bra done;
  mul.wide.u32 %d2, %r5, 4;
  add.u64 %d3, %d1, %d2;
  st.global.u32 [%d3], %r1;
  add.u32 %r5, %r5, %r7;
  bra again;
done:
  ret;
}
)";

void fill(const simcuda::Thread& thread, std::uint32_t* to, unsigned count, unsigned value) {
  for (std::size_t i = thread.global_x(); i < count; i += thread.stride_x()) to[i] = value;
}
// The larger the blocks, the faster.
void describe_fill(const simcuda_launch* launch, simcuda_work* work) {
  work->block_cycles = 1e6 / static_cast<double>(launch->block[0]);
}
const simcuda_kernel simulated_fill = simcuda::per_thread_kernel<&fill>("fill", &describe_fill);

CUfunction load_fill() {
  // There on the simulated driver only.
  auto* const enter = reinterpret_cast<decltype(&simcuda_register_kernels)>(
      dlsym(RTLD_DEFAULT, "simcuda_register_kernels"));
  if (enter != nullptr) {
    static const simcuda_kernel* const kernels[] = {&simulated_fill};
    static const simcuda_kernel_table table{SIMCUDA_VERSION, kernels, 1};
    if (enter(&table) != 0) std::_Exit(1);
  }
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CHECK(cuModuleLoadData(
      &module, enter == nullptr ? fill_on_gpu : "simcuda image 1\nkernel fill\naccess fill 0=w\n"));
  CHECK(cuModuleGetFunction(&function, module, "fill"));
  return function;
}

/// Fills memory in blocks of a config's size.
struct Filling {
  CUfunction function = load_fill();
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  unsigned value = 0;

  CUresult operator()(const contextune::Config& config) const {
    CUdeviceptr to = memory;
    unsigned count = elements;
    unsigned all = value;
    void* arguments[] = {&to, &count, &all};
    const auto block = static_cast<unsigned>(config.get_int("block"));
    return cuLaunchKernel(function, 132, 1, 1, block, 1, 1, 0, stream, arguments, nullptr);
  }
};

Filling filling_on(CUstream stream, unsigned value) {
  Filling filling;
  CHECK(cuMemAlloc(&filling.memory, elements * sizeof(std::uint32_t)));
  filling.stream = stream;
  filling.value = value;
  return filling;
}

const auto blocks = contextune::ConfigSpace().parameter("block", {32, 128, 512});

void say_whether_filled(const Filling& filling) {
  std::vector<std::uint32_t> filled(elements);
  CHECK(cuMemcpyDtoH(filled.data(), filling.memory, elements * sizeof(std::uint32_t)));
  const bool right = std::all_of(filled.begin(), filled.end(),
                                 [&](std::uint32_t one) { return one == filling.value; });
  say(right ? "filled" : "filled with something else");
}

void tune(const char* region, CUstream stream, unsigned value, ncclComm_t communicator = nullptr) {
  const Filling filling = filling_on(stream, value);
  contextune::Tunable fill("fill", blocks, filling);
  CONTEXTUAL_AUTOTUNE(region, {.repeatable = true,
                               .communicator = communicator,
                               .n_warmup = 0,
                               .n_repeat = 2,
                               .refine = false,
                               .confirm = false}) {
    fill();
    CHECK(cuStreamSynchronize(stream));
  }
  say_whether_filled(filling);
}

void tune_function(ncclComm_t communicator, CUstream stream, unsigned value) {
  const Filling filling = filling_on(stream, value);
  auto fill = contextune::autotune(
      "fill", blocks,
      [&](const contextune::Config& config) {
        const CUresult result = filling(config);
        CHECK(cuStreamSynchronize(stream));
        return result;
      },
      {.n_warmup = 0, .n_repeat = 2, .repeatable = true, .communicator = communicator});
  CHECK(fill());
  CHECK(fill());
  say_whether_filled(filling);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto has = [&](const char* word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  const auto after = [&](const char* flag, const char* otherwise) -> std::string {
    const auto found = std::find(words.begin(), words.end(), flag);
    return found == words.end() || found + 1 == words.end() ? otherwise : *(found + 1);
  };
  const Place place = place_of_this_process();
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  int devices = 0;
  CHECK(cuInit(0));
  CHECK(cuDeviceGetCount(&devices));
  CHECK(cuDevicePrimaryCtxRetain(&context, place.on_this_host % devices));
  CHECK(cuCtxSetCurrent(context));
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  ncclUniqueId id{};
  if (place.rank == 0) CHECK(ncclGetUniqueId(&id));
  share_id(place, after("--meet", "joined_ranks.socket"), id);
  const ncclComm_t communicator =
      make_communicator(place, id, !has("non-blocking"), has("sharing"));
  const bool alone = has("alone");
  if (!alone) say("sum " + std::to_string(sum_of_ranks(place, communicator, stream)));

  if (has("region-first")) tune("early", stream, 1);
  if (has("choice-first"))
    contextune::Choice<void()>("early", {.communicator = communicator}).add("only", [](auto&) {});
  say("ready");
  if (has("hold")) static_cast<void>(std::getchar());
  if (!has("absent") && !has("function")) {
    const bool joined = contextune::join(communicator, std::stod(after("--seconds", "30")));
    say(joined ? "joined" : std::string("not joined: ") + contextune_error());
    std::uint32_t rank = 0;
    std::uint32_t ranks = 0;
    contextune_rank(&rank, &ranks);
    const auto same = [](std::uint32_t a, int b) { return a == static_cast<std::uint32_t>(b); };
    if (!same(rank, place.rank) || !same(ranks, place.ranks)) say("has another rank");
  }
  if (has("function")) {
    tune_function(communicator, stream, 7);
  } else {
    if (has("given")) tune("fill", stream, 7, communicator);
    tune("fill", stream, 7, has("given") ? communicator : nullptr);
  }
  if (has("part")) {
    ncclComm_t pair = nullptr;
    CHECK(ncclCommSplit(communicator, place.rank / 2, place.rank, &pair, nullptr));
    say(contextune::join(pair) ? "joined again" : contextune_error());
    CHECK(ncclCommDestroy(pair));
  }
  if (has("twice")) say(contextune::join(communicator) ? "joined again" : contextune_error());
  if (!alone) say("sum " + std::to_string(sum_of_ranks(place, communicator, stream)));
  say("end");
  return 0;
}
