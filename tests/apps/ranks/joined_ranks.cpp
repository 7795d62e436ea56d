// A rank that hands its communicator over, tunes a region with the others, and says what came of
// it.
//   joined_ranks --meet PATH [--seconds S] [WORD...]
// Who it is comes from the variables of torchrun; contextune is told nothing. Words:
//   hold          says "ready", and joins when a line comes
//   absent        does not join
//   non-blocking  its communicator does not block
//   sharing       its communicator shares its resources with what is split off it
//   region-first  enters a region before it joins
//   alone         uses the communicator for nothing else
#include <cuda.h>
#include <nccl.h>

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

constexpr std::size_t elements = std::size_t{1} << 20;

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

/// Fills memory in pieces: the fewer, the faster.
struct Filling {
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  unsigned value = 0;

  CUresult operator()(const contextune::Config& config) const {
    const auto pieces = static_cast<std::size_t>(config.get_int("pieces"));
    const std::size_t each = elements / pieces;
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      const CUresult result =
          cuMemsetD32Async(memory + piece * each * sizeof(std::uint32_t), value, each, stream);
      if (result != CUDA_SUCCESS) return result;
    }
    return CUDA_SUCCESS;
  }
};

void tune(const char* region, CUstream stream, unsigned value) {
  Filling filling;
  CHECK(cuMemAlloc(&filling.memory, elements * sizeof(std::uint32_t)));
  filling.stream = stream;
  filling.value = value;
  contextune::Tunable fill("fill", contextune::ConfigSpace().parameter("pieces", {16, 4, 1}),
                           filling);
  CONTEXTUAL_AUTOTUNE(
      region,
      {.repeatable = true, .n_warmup = 0, .n_repeat = 2, .refine = false, .confirm = false}) {
    fill();
    CHECK(cuStreamSynchronize(stream));
  }
  std::vector<std::uint32_t> filled(elements);
  CHECK(cuMemcpyDtoH(filled.data(), filling.memory, elements * sizeof(std::uint32_t)));
  const bool right =
      std::all_of(filled.begin(), filled.end(), [&](std::uint32_t one) { return one == value; });
  say(right ? "filled" : "filled with something else");
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
  say("ready");
  if (has("hold")) static_cast<void>(std::getchar());
  if (!has("absent")) {
    const bool joined = contextune::join(communicator, std::stod(after("--seconds", "30")));
    say(joined ? "joined" : std::string("not joined: ") + contextune_error());
  }
  tune("fill", stream, 7);
  if (!alone) say("sum " + std::to_string(sum_of_ranks(place, communicator, stream)));
  say("end");
  return 0;
}
