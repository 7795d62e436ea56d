// What the programs share that show which reads may find stale data: kernels of which one writes
// what the next one reads, and how they are launched.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <string>
#include <vector>

#include "program.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr unsigned num_words = 4096;  // of the data that is written and read
__device__ unsigned num_through[64];  // by round, since launches of two rounds may overlap

__device__ __forceinline__ unsigned through_ca(const unsigned* at) {
  unsigned value;
  asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
  return value;
}

__device__ __forceinline__ void let_next_start() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

__device__ __forceinline__ void wait_for_one_before() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

__device__ __forceinline__ bool is_last_block(unsigned round) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(&num_through[round % 64], 1u) == gridDim.x - 1;
    if (last) num_through[round % 64] = 0;
    __threadfence();
  }
  __syncthreads();
  return last;
}

__device__ __forceinline__ void linger(unsigned rounds) {
  unsigned value = rounds;
  for (unsigned i = 0; i < rounds; ++i) value = value * 1664525u + 1013904223u;
  asm volatile("" ::"r"(value));
}

/// Of cycles of the clock, which no compiler can know.
__device__ __forceinline__ void linger_for(long long cycles) {
  const long long begin = clock64();
  while (clock64() - begin < cycles) {
  }
}

__device__ __forceinline__ void count(unsigned found, unsigned long long* wrong) {
  if (found != 0) atomicAdd(wrong, static_cast<unsigned long long>(found));
}

/// All blocks read the data, and the last one writes `round` over it.
template <bool triggers>
__global__ void write_data(unsigned* data, unsigned* sink, unsigned round) {
  if (triggers) let_next_start();
  unsigned sum = 0;
  for (unsigned i = threadIdx.x; i < num_words; i += blockDim.x) sum += through_ca(data + i);
  if (sum == 0xffffffffu) *sink = sum;
  if (!is_last_block(round)) return;
  linger(500);
  for (unsigned i = threadIdx.x; i < num_words; i += blockDim.x) data[i] = round;
}

/// Every block's threads count what is not of this round.
template <bool waits>
__global__ void read_data(const unsigned* data, unsigned long long* wrong, unsigned round) {
  if (waits) wait_for_one_before();
  unsigned found = 0;
  for (unsigned i = threadIdx.x; i < num_words; i += blockDim.x)
    found += through_ca(data + i) != round;
  count(found, wrong);
}

using Attributes = std::vector<cudaLaunchAttribute>;

cudaLaunchAttribute programmatic_attribute() {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  return attribute;
}

/// Without attributes as <<<>>> does.
template <class... Parameters, class... Arguments>
void launch(Attributes attributes, cudaStream_t stream, unsigned grid, unsigned block,
            void (*kernel)(Parameters...), Arguments... arguments) {
  if (attributes.empty()) {
    kernel<<<grid, block, 0, stream>>>(arguments...);
    CUDA_CHECK(cudaGetLastError());
    return;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(grid);
  config.blockDim = dim3(block);
  config.stream = stream;
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

template <class... Parameters, class... Arguments>
void launch(bool programmatic, cudaStream_t stream, unsigned grid, unsigned block,
            void (*kernel)(Parameters...), Arguments... arguments) {
  launch(programmatic ? Attributes{programmatic_attribute()} : Attributes{}, stream, grid, block,
         kernel, arguments...);
}

[[noreturn]] void give_up(const char* what) {
  std::printf("%s: no answer in 5 s\n", what);
  std::fflush(stdout);
  std::_Exit(3);
}

/// Of round `i`, from a few blocks to several waves.
unsigned grid_of(unsigned i) {
  constexpr unsigned grids[] = {16, 132, 264, 1056};
  return grids[i / 16 % 4];
}

void print_wrong(const char* name, unsigned long long wrong, std::uint64_t num_read) {
  std::printf("%s wrong %llu of %llu\n", name, wrong, static_cast<unsigned long long>(num_read));
  std::fflush(stdout);
}

}  // namespace
