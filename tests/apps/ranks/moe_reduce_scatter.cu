// A mixture of experts: each rank has some of the experts and all tokens. What the two experts of a
// token make of it, weighted, is summed over the ranks, and each rank gets the sums of its tokens.
//   moe_reduce_scatter [--steps N] [--meet PATH]
#include "rank_program.cuh"

constexpr int tokens = 1024;
constexpr int inner = 128;    // values of a token
constexpr int columns = 256;  // values that an expert makes of it
constexpr int experts = 16;
constexpr int chosen = 2;  // experts of a token

// Token t goes to the experts `choice[t][0]` and `choice[t][1]`.
struct Routing {
  int choice[tokens][chosen];
  int weight[tokens][chosen];
};

Routing make_routing() {
  Routing routing;
  const std::vector<int> random = numbers(tokens * chosen * 2, 3);
  for (int token = 0; token < tokens; ++token) {
    for (int i = 0; i < chosen; ++i) {
      const int at = (token * chosen + i) * 2;
      routing.choice[token][i] = (token + (random[at] + 15) * (i + 1)) % experts;
      routing.weight[token][i] = random[at + 1];
    }
  }
  return routing;
}

std::vector<int> matrix_of(int expert) {
  return numbers(inner * columns, 100 + expert);
}

// What this rank's experts, from `first` on, contribute to each token.
__global__ void weighted_outputs(const Routing* routing, int first, int count, const int* x,
                                 const int* matrices, int* y) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < tokens * columns;
       i += gridDim.x * blockDim.x) {
    const int token = i / columns;
    int sum = 0;
    for (int k = 0; k < chosen; ++k) {
      const int expert = routing->choice[token][k] - first;
      if (expert < 0 || expert >= count) continue;
      const int* const matrix = matrices + expert * inner * columns + i % columns;
      int product = 0;
      for (int at = 0; at < inner; ++at) product += x[token * inner + at] * matrix[at * columns];
      sum += routing->weight[token][k] * product;
    }
    y[i] = sum;
  }
}

__global__ void add(int n, const int* from, int* to) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    to[i] += from[i];
}

// All ranks have the same tokens.
__global__ void next_tokens(int n, int step, int* x) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    x[i] = (x[i] * 5 + step + i) % 31;
}

// Whether some of this rank's sums are what the host makes of the same tokens.
bool is_right(const int* x_on_device, const int* sums_on_device, int first_token, int own_tokens) {
  const std::vector<int> x = on_host(x_on_device, tokens * inner);
  const std::vector<int> sums = on_host(sums_on_device, own_tokens * columns);
  const Routing routing = make_routing();
  std::vector<std::vector<int>> matrices;
  for (int expert = 0; expert < experts; ++expert) matrices.push_back(matrix_of(expert));
  for (int token = first_token; token < first_token + own_tokens; token += 17) {
    for (int column = 0; column < columns; ++column) {
      int sum = 0;
      for (int k = 0; k < chosen; ++k) {
        const std::vector<int>& matrix = matrices[routing.choice[token][k]];
        int product = 0;
        for (int at = 0; at < inner; ++at)
          product += x[token * inner + at] * matrix[at * columns + column];
        sum += routing.weight[token][k] * product;
      }
      if (sum != sums[(token - first_token) * columns + column]) return false;
    }
  }
  return true;
}

int main(int argc, char** argv) {
  const Ranks ranks(argc, argv);
  const int own_experts = experts / ranks.place.ranks;
  const int first_expert = own_experts * ranks.place.rank;
  const int own_tokens = tokens / ranks.place.ranks;
  std::vector<int> matrices;
  for (int i = 0; i < own_experts; ++i) {
    const std::vector<int> matrix = matrix_of(first_expert + i);
    matrices.insert(matrices.end(), matrix.begin(), matrix.end());
  }
  const Routing* const routing = on_device(std::vector<Routing>{make_routing()});
  const int* const weights = on_device(matrices);
  int* const x = on_device(numbers(tokens * inner, 4));
  int* const y = on_device(std::vector<int>(tokens * columns));
  int* const sums = on_device(std::vector<int>(own_tokens * columns));
  int* const total = on_device(std::vector<int>(own_tokens * columns));
  cudaStream_t stream;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  run_steps(ranks, option(argc, argv, "--steps", 4000L), stream, [&](unsigned number) {
    next_tokens<<<132, 256, 0, stream>>>(tokens * inner, static_cast<int>(number % 1000), x);
    weighted_outputs<<<132, 128, 0, stream>>>(routing, first_expert, own_experts, x, weights, y);
    NCCL_CHECK(
        ncclReduceScatter(y, sums, own_tokens * columns, ncclInt32, ncclSum, ranks.comm, stream));
    add<<<132, 256, 0, stream>>>(own_tokens * columns, sums, total);
  });

  Checksum checksum;
  const std::vector<int> result = on_host(total, own_tokens * columns);
  checksum.add(result.data(), result.size() * sizeof(int));
  const bool right = is_right(x, sums, own_tokens * ranks.place.rank, own_tokens);
  return report("moe_reduce_scatter", ranks, checksum, right);
}
