// A program whose body ranks repeat until it is tuned: some kernels, each on memory of its own,
// then some collectives. Ranks that have collectives meet at PATH. Prints a hash of all that is
// left, which is the same whatever ran.
#include <cuda.h>
#include <nccl.h>

#include <chrono>
#include <contextune/contextune.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <simcuda/kernel.hpp>
#include <string>
#include <thread>
#include <vector>

#include "rank_meeting.hpp"
#include "simulated_program.hpp"

namespace {

using contextune::Config;
using contextune::ConfigSpace;

constexpr std::size_t num_elements = 1024;

void fill(const simcuda::Thread& thread, int n, unsigned value, unsigned* y) {
  for (std::size_t i = thread.global_x(); i < static_cast<std::size_t>(n); i += thread.stride_x())
    y[i] = value + static_cast<unsigned>(i);
}

// Nothing but a serial part that depends on the block, so that it is known which config is best; in
// blocks of 512 it takes some minutes of the simulated clock.
void describe_fill(const simcuda_launch* launch, simcuda_work* work) {
  work->block_cycles = launch->block[0] == 128   ? 20e3
                       : launch->block[0] == 64  ? 30e3
                       : launch->block[0] == 512 ? 400e9
                                                 : 60e3;
}
const simcuda_kernel fill_kernel = simcuda::per_thread_kernel<&fill>("fill", &describe_fill);

struct Buffer {
  Buffer() {
    CHECK(cuMemAlloc(&memory, num_elements * sizeof(unsigned)));
    CHECK(cuMemsetD32(memory, 0, num_elements));
  }
  [[nodiscard]] void* pointer() const { return reinterpret_cast<void*>(memory); }
  CUdeviceptr memory = 0;
};

struct Arguments {
  int kernels = 0;
  int collectives = 0;
  std::string path;
  std::string how;  // empty: as it is
  int leaves = -1;  // the rank that leaves the body early
};

/// One of two ranks, which meet there.
ncclComm_t pair_of(const std::string& path, int rank) {
  const Place place{rank, 2, 0};
  ncclUniqueId id{};
  ncclComm_t comm = nullptr;
  if (rank == 0) CHECK(ncclGetUniqueId(&id));
  share_id(place, path, id);
  CHECK(ncclCommInitRank(&comm, 2, id, rank));
  return comm;
}

/// The communicator that the body uses.
ncclComm_t communicator(const Arguments& wanted, const Place& place) {
  if (wanted.how == "pairs") {
    // (0, 1) and (2, 3) first, and then those that are used: (0, 2) and (1, 3).
    (void)pair_of(wanted.path + ".first." + std::to_string(place.rank / 2), place.rank % 2);
    return pair_of(wanted.path + "." + std::to_string(place.rank % 2), place.rank / 2);
  }
  ncclUniqueId id{};
  ncclComm_t comm = nullptr;
  if (place.rank == 0) CHECK(ncclGetUniqueId(&id));
  share_id(place, wanted.path, id);
  CHECK(ncclCommInitRank(&comm, place.ranks, id, place.rank));
  if (wanted.how == "part" && place.rank < 2) (void)pair_of(wanted.path + ".part", place.rank);
  if (wanted.how == "late") {
    ncclComm_t alone = nullptr;
    CHECK(ncclCommSplit(comm, place.rank, 0, &alone, nullptr));
    if (place.rank == 1) std::this_thread::sleep_for(std::chrono::seconds(3));
  }
  return comm;
}

auto filling(int number, CUfunction function, CUdeviceptr y, CUstream stream,
             const std::vector<contextune::Value>& blocks) {
  return contextune::Tunable("fill." + std::to_string(number),
                             ConfigSpace().parameter("block", blocks), [=](const Config& config) {
                               int n = num_elements;
                               auto value = static_cast<unsigned>(number);
                               CUdeviceptr at = y;
                               void* arguments[] = {&n, &value, &at};
                               const auto block = static_cast<unsigned>(config.get_int("block"));
                               return cuLaunchKernel(function, 4, 1, 1, block, 1, 1, 0, stream,
                                                     arguments, nullptr);
                             });
}
using Filling = decltype(filling(0, nullptr, 0, nullptr, {}));

/// A function that is called with two keys, the first one twice; its collective makes the ranks
/// wait for each other.
void call_function(const Arguments& wanted, CUfunction fill, ncclComm_t comm, CUstream stream,
                   const Buffer& sent, const std::deque<Buffer>& buffers) {
  auto filled = contextune::autotune(
      "filled", ConfigSpace().parameter("block", {256, 64, 128, 1024}),
      [](int number) { return number; },
      [&](const Config& config, int number) {
        int n = num_elements;
        auto value = static_cast<unsigned>(number);
        CUdeviceptr at = buffers[0].memory;
        void* arguments[] = {&n, &value, &at};
        const auto block = static_cast<unsigned>(config.get_int("block"));
        CUresult result = CUDA_SUCCESS;
        // Several, so that they count for more than waiting for the other ranks does.
        for (int launch = 0; launch < 5 && result == CUDA_SUCCESS; ++launch)
          result = cuLaunchKernel(fill, 4, 1, 1, block, 1, 1, 0, stream, arguments, nullptr);
        for (int c = 0; c < wanted.collectives; ++c) {
          const Buffer& got = buffers[static_cast<std::size_t>(wanted.kernels + c)];
          CHECK(ncclAllReduce(sent.pointer(), got.pointer(), num_elements >> c, ncclUint32, ncclSum,
                              comm, stream));
        }
        return result;
      },
      {.repeatable = wanted.how == "function"});
  for (const int number : {1, 2, 1}) CHECK(filled(number));
}

std::uint64_t hash_of(const std::deque<Buffer>& buffers) {
  std::uint64_t hash = 14695981039346656037ULL;
  std::vector<unsigned> values(num_elements);
  CHECK(cuCtxSynchronize());
  for (const Buffer& buffer : buffers) {
    CHECK(cuMemcpyDtoH(values.data(), buffer.memory, values.size() * sizeof values[0]));
    for (const unsigned value : values) hash = (hash ^ value) * 1099511628211ULL;
  }
  return hash;
}

void run_body(const Arguments& wanted, const Place& place, ncclComm_t comm, CUstream stream,
              const Buffer& sent, const std::deque<Buffer>& buffers, std::deque<Filling>& fills) {
  int runs = 0;
  CONTEXTUAL_AUTOTUNE("body", {.repeatable = true}) {
    for (auto& one : fills) one();
    for (int c = 0; c < wanted.collectives; ++c) {
      const Buffer& got = buffers[static_cast<std::size_t>(wanted.kernels + c)];
      CHECK(ncclAllReduce(sent.pointer(), got.pointer(), num_elements >> c, ncclUint32, ncclSum,
                          comm, stream));
    }
    if (++runs == 3 && place.rank == wanted.leaves) break;
  }
}

void run(const Arguments& wanted, const Place& place) {
  CUfunction function = load(fill_kernel);
  ncclComm_t comm = nullptr;
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  if (wanted.collectives > 0) comm = communicator(wanted, place);
  std::deque<Buffer> buffers;
  auto blocks = std::vector<contextune::Value>{256, 64, 128, 1024};
  if (wanted.how == "slow") blocks = {256, 64, 512, 128};
  std::deque<Filling> fills;
  for (int k = 0; k < wanted.kernels; ++k)
    fills.push_back(filling(k, function, buffers.emplace_back().memory, stream, blocks));
  const Buffer sent;
  CHECK(cuMemsetD32(sent.memory, static_cast<unsigned>(1 + place.rank), num_elements));
  for (int c = 0; c < wanted.collectives; ++c) buffers.emplace_back();
  if (wanted.how == "function" || wanted.how == "unsaid") {
    call_function(wanted, function, comm, stream, sent, buffers);
  } else {
    run_body(wanted, place, comm, stream, sent, buffers, fills);
  }
  // It goes on with something else for a while: nobody is to wait for its end.
  if (place.rank == wanted.leaves) std::this_thread::sleep_for(std::chrono::seconds(1));
  std::printf("rank %d: %d kernels, %d collectives, %016llx\n", place.rank, wanted.kernels,
              wanted.collectives, static_cast<unsigned long long>(hash_of(buffers)));
  if (comm != nullptr) CHECK(ncclCommDestroy(comm));
}

}  // namespace

int main(int argc, char** argv) {
  Arguments wanted;
  if (argc < 4) {
    std::fputs(
        "usage: rank_bodies KERNELS COLLECTIVES PATH [slow | function | unsaid | pairs | part | "
        "late | "
        "leave RANK]\n",
        stderr);
    return 2;
  }
  wanted.kernels = std::atoi(argv[1]);
  wanted.collectives = std::atoi(argv[2]);
  wanted.path = argv[3];
  if (argc > 4) wanted.how = argv[4];
  if (argc > 5) wanted.leaves = std::atoi(argv[5]);
  run(wanted, place_of_this_process());
  return 0;
}
