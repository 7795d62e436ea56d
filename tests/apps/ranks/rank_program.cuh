// What the test programs of several ranks share: one process a GPU, whose memory and collectives
// make one job of them. They know nothing of contextune, and compute with whole numbers, so that no
// order of additions changes a bit.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <cuda_runtime.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>

#include "program.hpp"
#include "rank_meeting.hpp"

#define NCCL_CHECK(call) CUDA_CHECK(call)

/// This process among its peers. They meet at the Unix socket that `--meet` names.
struct Ranks {
  Ranks(int argc, char** argv) : place(place_of_this_process()) {
    int devices = 0;
    CUDA_CHECK(cudaGetDeviceCount(&devices));
    CUDA_CHECK(cudaSetDevice(place.on_this_host % devices));
    ncclUniqueId id{};
    if (place.rank == 0) NCCL_CHECK(ncclGetUniqueId(&id));
    share_id(place, option(argc, argv, "--meet", std::string()), id);
    NCCL_CHECK(ncclCommInitRank(&comm, place.ranks, id, place.rank));
  }

  /// Comes back when all ranks have got here and their GPUs are done.
  void meet() const {
    int* number = nullptr;
    CUDA_CHECK(cudaMalloc(&number, sizeof *number));
    CUDA_CHECK(cudaDeviceSynchronize());
    NCCL_CHECK(ncclAllReduce(number, number, 1, ncclInt32, ncclMax, comm, nullptr));
    CUDA_CHECK(cudaDeviceSynchronize());
  }

  Place place;
  ncclComm_t comm = nullptr;
};

/// Numbers from -15 to 15 that look random and are the same on every rank.
inline std::vector<int> numbers(std::size_t count, std::uint32_t seed) {
  std::vector<int> values(count);
  for (int& value : values) {
    seed = seed * 1664525u + 1013904223u;
    value = static_cast<int>((seed >> 8) % 31) - 15;
  }
  return values;
}

template <class T>
T* on_device(const std::vector<T>& values) {
  T* memory = nullptr;
  CUDA_CHECK(cudaMalloc(&memory, values.size() * sizeof(T)));
  CUDA_CHECK(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return memory;
}

template <class T>
std::vector<T> on_host(const T* memory, std::size_t count) {
  std::vector<T> values(count);
  CUDA_CHECK(cudaMemcpy(values.data(), memory, count * sizeof(T), cudaMemcpyDeviceToHost));
  return values;
}

__device__ inline int clamped(int value) {
  return min(max(value, -127), 127);
}

/// Runs `step(1)`, `step(2)`, ... in the NVTX range "step" each; the host looks after every eighth.
/// The time of a step goes to standard error: the mean of the last quarter.
template <class Step>
void run_steps(const Ranks& ranks, long steps, cudaStream_t stream, Step&& step) {
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  for (long number = 1; number <= steps; ++number) {
    nvtxRangePushA("step");
    step(static_cast<unsigned>(number));
    nvtxRangePop();
    CUDA_CHECK(cudaGetLastError());
    if (number == steps - steps / 4) CUDA_CHECK(cudaEventRecord(begin, stream));
    if (number % 8 == 0) CUDA_CHECK(cudaStreamSynchronize(stream));
  }
  CUDA_CHECK(cudaEventRecord(end, stream));
  CUDA_CHECK(cudaDeviceSynchronize());
  float milliseconds = 0;
  if (steps > 0) CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  std::fprintf(stderr, "rank %d of %d: %.1f us a step\n", ranks.place.rank, ranks.place.ranks,
               steps < 4 ? 0.0 : milliseconds * 1e3 / static_cast<double>(steps / 4));
}

/// Prints in one line what this rank has computed. Returns the program's status.
inline int report(const char* program, const Ranks& ranks, const Checksum& checksum, bool right) {
  checksum.print((std::string(program) + " rank " + std::to_string(ranks.place.rank) + " of " +
                  std::to_string(ranks.place.ranks) + (right ? " PASS" : " FAIL"))
                     .c_str());
  return right ? 0 : 1;
}
