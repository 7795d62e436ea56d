// Steps of many small kernels between collectives: an AllReduce in their own stream, and an
// AllGather in another one, which waits for them and is waited for. A launch that reaches the GPU
// on the wrong side of a collective changes the result.
//   many_launches [--steps N] [--meet PATH]
#include "rank_program.cuh"

constexpr int num_values = 1024;
constexpr int threads = 128;

// Each value out of others of the last kernel's.
__global__ void stir(const int* in, int* out, int round) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  out[i] = (in[i] * 5 + in[(i * 7 + round) % num_values] + round) % 1021;
}

__global__ void take(const int* sums, int shift, int* values) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  values[i] = (values[i] + sums[(i + shift) % num_values]) % 1021;
}

int next_value(const std::vector<int>& in, int i, int round) {
  return (in[i] * 5 + in[(i * 7 + round) % num_values] + round) % 1021;
}

/// The same step for all ranks at once, on the host.
void step_on_host(std::vector<std::vector<int>>& of_rank) {
  const auto stir_all = [&](int round) {
    for (std::vector<int>& values : of_rank) {
      const std::vector<int> in = values;
      for (int i = 0; i < num_values; ++i) values[i] = next_value(in, i, round);
    }
  };
  for (int round = 0; round < 12; ++round) stir_all(round);
  std::vector<int> sums(num_values);
  for (const std::vector<int>& values : of_rank) {
    for (int i = 0; i < num_values; ++i) sums[i] += values[i];
  }
  for (std::vector<int>& values : of_rank) {
    for (int i = 0; i < num_values; ++i)
      values[i] = (values[i] + sums[(i + 3) % num_values]) % 1021;
  }
  for (int round = 12; round < 18; ++round) stir_all(round);
  const int part = num_values / static_cast<int>(of_rank.size());
  std::vector<int> gathered;
  for (const std::vector<int>& values : of_rank)
    gathered.insert(gathered.end(), values.begin(), values.begin() + part);
  for (std::vector<int>& values : of_rank) {
    for (int i = 0; i < num_values; ++i)
      values[i] = (values[i] + gathered[(i + 5) % num_values]) % 1021;
  }
  for (int round = 18; round < 24; ++round) stir_all(round);
}

int main(int argc, char** argv) {
  const Ranks ranks(argc, argv);
  const long steps = option(argc, argv, "--steps", 4000L);
  if (num_values % ranks.place.ranks != 0) return 2;
  const int part = num_values / ranks.place.ranks;
  int* values[2] = {on_device(numbers(num_values, ranks.place.rank + 1)),
                    on_device(std::vector<int>(num_values))};
  int* const sums = on_device(std::vector<int>(num_values));
  int* const gathered = on_device(std::vector<int>(num_values));
  cudaStream_t stream, beside;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUDA_CHECK(cudaStreamCreateWithFlags(&beside, cudaStreamNonBlocking));
  cudaEvent_t ready, done;
  CUDA_CHECK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
  CUDA_CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  // An even number of them ends where it began.
  const auto stir_rounds = [&](int first, int end) {
    for (int round = first; round < end; ++round)
      stir<<<num_values / threads, threads, 0, stream>>>(values[round % 2], values[(round + 1) % 2],
                                                         round);
  };

  run_steps(ranks, steps, stream, [&](unsigned) {
    stir_rounds(0, 12);
    NCCL_CHECK(ncclAllReduce(values[0], sums, num_values, ncclInt32, ncclSum, ranks.comm, stream));
    take<<<num_values / threads, threads, 0, stream>>>(sums, 3, values[0]);
    stir_rounds(12, 18);
    CUDA_CHECK(cudaEventRecord(ready, stream));
    CUDA_CHECK(cudaStreamWaitEvent(beside, ready));
    NCCL_CHECK(ncclAllGather(values[0], gathered, part, ncclInt32, ranks.comm, beside));
    CUDA_CHECK(cudaEventRecord(done, beside));
    CUDA_CHECK(cudaStreamWaitEvent(stream, done));
    take<<<num_values / threads, threads, 0, stream>>>(gathered, 5, values[0]);
    stir_rounds(18, 24);
  });

  std::vector<std::vector<int>> wanted;
  for (int rank = 0; rank < ranks.place.ranks; ++rank)
    wanted.push_back(numbers(num_values, rank + 1));
  for (long step = 0; step < steps; ++step) step_on_host(wanted);
  const std::vector<int> result = on_host(values[0], num_values);
  Checksum checksum;
  checksum.add(result.data(), result.size() * sizeof(int));
  return report("many_launches", ranks, checksum, result == wanted[ranks.place.rank]);
}
