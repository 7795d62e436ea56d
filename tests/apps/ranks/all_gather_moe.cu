// A mixture of experts: each rank has some of the tokens and some of the experts. The tokens are
// gathered on all ranks, and each multiplies those that its experts were given: one product for
// each expert, all in one kernel.
//   all_gather_moe [--steps N] [--meet PATH]
#include "rank_program.cuh"

constexpr int tokens = 2048;
constexpr int inner = 128;    // values of a token
constexpr int columns = 256;  // values that an expert makes of it
constexpr int experts = 16;

int expert_of(int token) {
  return (token * 7 + token * token / 64) % experts;
}

// Which tokens the experts of one rank get: expert i those from `begin[i]` to `begin[i + 1]`.
struct Groups {
  std::vector<int> token, begin{0};

  Groups(int first_expert, int count) {
    for (int expert = first_expert; expert < first_expert + count; ++expert) {
      for (int i = 0; i < tokens; ++i)
        if (expert_of(i) == expert) token.push_back(i);
      begin.push_back(static_cast<int>(token.size()));
    }
  }
};

// A block computes tile after tile: all columns, one a thread, of some tokens of one expert.
template <int Rows>
__global__ void __launch_bounds__(columns)
    grouped_gemm(int count, const int* begin, const int* token, const int* x, const int* matrices,
                 int* y) {
  __shared__ int values[Rows][inner];
  for (int tile = blockIdx.x;; tile += gridDim.x) {
    int expert = 0, at = tile;
    for (; expert < count; ++expert) {
      const int tiles = (begin[expert + 1] - begin[expert] + Rows - 1) / Rows;
      if (at < tiles) break;
      at -= tiles;
    }
    if (expert == count) return;
    const int first = begin[expert] + at * Rows;
    const int here = min(Rows, begin[expert + 1] - first);
    for (int i = threadIdx.x; i < here * inner; i += columns)
      values[i / inner][i % inner] = x[token[first + i / inner] * inner + i % inner];
    __syncthreads();
    const int* const matrix = matrices + expert * inner * columns + threadIdx.x;
    int sums[Rows] = {};
    for (int k = 0; k < inner; ++k) {
      const int factor = matrix[k * columns];
      for (int row = 0; row < Rows; ++row) sums[row] += values[row][k] * factor;
    }
    for (int row = 0; row < here; ++row) y[(first + row) * columns + threadIdx.x] = sums[row];
    __syncthreads();
  }
}
template __global__ void grouped_gemm<2>(int, const int*, const int*, const int*, const int*, int*);
template __global__ void grouped_gemm<4>(int, const int*, const int*, const int*, const int*, int*);
template __global__ void grouped_gemm<8>(int, const int*, const int*, const int*, const int*, int*);
template __global__ void grouped_gemm<16>(int, const int*, const int*, const int*, const int*,
                                          int*);

// This rank's tokens for the next step, out of what its experts have made of all of them.
__global__ void next_tokens(int n, int num_y, const int* y, int* x) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    x[i] = clamped(x[i] / 2 + (y[i % num_y] >> 6));
}

// Whether some rows of the last products are what the host makes of the gathered tokens.
bool is_right(const Groups& groups, const std::vector<int>& matrices, const int* x_on_device,
              const std::vector<int>& y) {
  const std::vector<int> x = on_host(x_on_device, tokens * inner);
  for (std::size_t expert = 0; expert + 1 < groups.begin.size(); ++expert) {
    for (int row = groups.begin[expert]; row < groups.begin[expert + 1]; row += 13) {
      for (int column = 0; column < columns; ++column) {
        int sum = 0;
        for (int k = 0; k < inner; ++k)
          sum +=
              x[groups.token[row] * inner + k] * matrices[(expert * inner + k) * columns + column];
        if (sum != y[row * columns + column]) return false;
      }
    }
  }
  return true;
}

int main(int argc, char** argv) {
  const Ranks ranks(argc, argv);
  const int own_tokens = tokens / ranks.place.ranks;
  const int own_experts = experts / ranks.place.ranks;
  const Groups groups(own_experts * ranks.place.rank, own_experts);
  const std::vector<int> matrices = numbers(own_experts * inner * columns, 100 + ranks.place.rank);
  const int num_y = static_cast<int>(groups.token.size()) * columns;

  const int* const token = on_device(groups.token);
  const int* const begin = on_device(groups.begin);
  const int* const weights = on_device(matrices);
  int* const own_x = on_device(numbers(own_tokens * inner, 4 + ranks.place.rank));
  int* const x = on_device(std::vector<int>(tokens * inner));
  int* const y = on_device(std::vector<int>(num_y));
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  run_steps(ranks, option(argc, argv, "--steps", 4000L), stream, [&](unsigned) {
    next_tokens<<<132, 256, 0, stream>>>(own_tokens * inner, num_y, y, own_x);
    NCCL_CHECK(ncclAllGather(own_x, x, own_tokens * inner, ncclInt32, ranks.comm, stream));
    grouped_gemm<2><<<132, columns, 0, stream>>>(own_experts, begin, token, x, weights, y);
  });

  const std::vector<int> result = on_host(y, num_y);
  Checksum checksum;
  checksum.add(result.data(), result.size() * sizeof(int));
  const bool right = is_right(groups, matrices, x, result);
  return report("all_gather_moe", ranks, checksum, right);
}
