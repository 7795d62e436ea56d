// What ends a tensor-parallel layer: y = relu(all-reduce(x) + bias), by NCCL and an epilogue
// kernel, or fused in one kernel over peer memory, in one step or in two. Which is best is found
// per size.
//   contextune run -n 4 -- fused_all_reduce --meet PATH [--least BYTES] [--most BYTES]
// All numbers are whole, so that no order of additions changes a bit. Prints a line for each size.
#include <contextune/contextune.hpp>

#include "compared.cuh"
#include "peer_memory.cuh"

namespace {

constexpr int threads = 512;
constexpr long columns = 1024;  // values of a row, each with its bias

__device__ float4 operator+(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

__device__ float4 finished(float4 sum, const float4* bias, long i) {
  const float4 all = sum + __ldg(bias + i % (columns / 4));
  return {fmaxf(all.x, 0), fmaxf(all.y, 0), fmaxf(all.z, 0), fmaxf(all.w, 0)};
}

__device__ float4 sum_of_all(const Peers& peers, long i) {
  float4 sum = peers.input<float4>(0)[i];
  for (int peer = 1; peer < peers.ranks; ++peer) sum = sum + __ldcg(peers.input<float4>(peer) + i);
  return sum;
}

__global__ void __launch_bounds__(threads) epilogue(float4* y, const float4* bias, long vectors) {
  for (long i = blockIdx.x * blockDim.x + threadIdx.x; i < vectors;
       i += static_cast<long>(gridDim.x) * blockDim.x)
    y[i] = finished(y[i], bias, i);
}

/// Every rank reads what all have, and finishes all of it.
__global__ void __launch_bounds__(threads)
    in_one_step(Peers peers, unsigned long long call, const float4* bias, long vectors) {
  if (!meet_all(peers, all_started, call)) return;
  float4* const out = peers.output<float4>(peers.rank);
  const long begin = vectors * blockIdx.x / gridDim.x;
  const long end = vectors * (blockIdx.x + 1) / gridDim.x;
  for (long i = begin + threadIdx.x; i < end; i += blockDim.x)
    out[i] = finished(sum_of_all(peers, i), bias, i);
  // Nobody changes what another still reads.
  (void)meet_all(peers, all_ended, call);
}

/// Every rank finishes its part, and gives it to all.
__global__ void __launch_bounds__(threads)
    in_two_steps(Peers peers, unsigned long long call, const float4* bias, long vectors) {
  if (!meet_all(peers, all_started, call)) return;
  const long from = vectors * peers.rank / peers.ranks;
  const long to = vectors * (peers.rank + 1) / peers.ranks;
  const long begin = from + (to - from) * blockIdx.x / gridDim.x;
  const long end = from + (to - from) * (blockIdx.x + 1) / gridDim.x;
  for (long i = begin + threadIdx.x; i < end; i += blockDim.x) {
    const float4 value = finished(sum_of_all(peers, i), bias, i);
    for (int peer = 0; peer < peers.ranks; ++peer) peers.output<float4>(peer)[i] = value;
  }
  (void)meet_all(peers, all_ended, call);
}

std::vector<float> inputs_of(int rank, std::size_t count) {
  const std::vector<int> whole = numbers(count, 17U + static_cast<unsigned>(rank));
  return std::vector<float>(whole.begin(), whole.end());
}

bool is_right(const Ranks& ranks, const PeerMemory& memory, const std::vector<float>& bias,
              std::size_t count) {
  std::vector<float> expected(count);
  for (int rank = 0; rank < ranks.place.ranks; ++rank) {
    const std::vector<float> one = inputs_of(rank, count);
    for (std::size_t i = 0; i < count; ++i) expected[i] += one[i];
  }
  for (std::size_t i = 0; i < count; ++i)
    expected[i] = std::max(0.0F, expected[i] + bias[i % columns]);
  return on_host(static_cast<const float*>(memory.out()), count) == expected;
}

}  // namespace

int main(int argc, char** argv) {
  const Ranks ranks(argc, argv);
  const std::size_t least = static_cast<std::size_t>(option(argc, argv, "--least", 8L << 10));
  const std::size_t most = static_cast<std::size_t>(option(argc, argv, "--most", 64L << 20));
  const PeerMemory memory(ranks, most, false);
  const Peers peers = memory.peers;
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const std::vector<float> own = inputs_of(ranks.place.rank, most / sizeof(float));
  CUDA_CHECK(cudaMemcpy(memory.in(), own.data(), most, cudaMemcpyHostToDevice));
  const std::vector<float> bias_values = inputs_of(100, columns);
  const auto* const bias = reinterpret_cast<const float4*>(on_device(bias_values));

  using contextune::Config;
  using contextune::Problem;
  unsigned long long calls = 0;  // the same on all ranks, which make the same calls
  const auto vectors_of = [](std::size_t bytes) {
    return static_cast<long>(bytes / sizeof(float4));
  };
  const auto with_nccl = [&](const Config&, std::size_t bytes) {
    NCCL_CHECK(ncclAllReduce(memory.in(), memory.out(), bytes / sizeof(float), ncclFloat32, ncclSum,
                             ranks.comm, stream));
    const long vectors = vectors_of(bytes);
    const auto blocks = static_cast<unsigned>(std::min(264L, (vectors + threads - 1) / threads));
    epilogue<<<blocks, threads, 0, stream>>>(static_cast<float4*>(memory.out()), bias, vectors);
    return cudaGetLastError();
  };
  const auto blocks_of = [](const Config& config) {
    return static_cast<unsigned>(config.get_int("blocks"));
  };
  const auto abandon = [&] {
    *memory.given_up = 1;
    CUDA_CHECK(cudaStreamSynchronize(stream));
    *memory.given_up = 0;
  };
  contextune::Choice<cudaError_t(std::size_t)> layer_end("layer_end", {.ranks = ranks.place.ranks,
                                                                       .repeatable = true,
                                                                       .calls_per_pass = 10,
                                                                       .n_warmup = 2,
                                                                       .n_repeat = 5});
  layer_end.size([](std::size_t bytes) { return bytes; })
      .type([](std::size_t) { return "f32"; })
      .buffers([&](std::size_t bytes) {
        return contextune::ChoiceMemory{{{memory.out(), bytes}}, {{memory.in(), bytes}}};
      })
      .add_unfused("nccl", with_nccl)
      .add_fused(
          "one_step", contextune::ConfigSpace().parameter("blocks", {4, 16, 64}),
          [&](const Config& config, std::size_t bytes) {
            in_one_step<<<blocks_of(config), threads, 0, stream>>>(peers, ++calls, bias,
                                                                   vectors_of(bytes));
            return cudaGetLastError();
          },
          {.supports = [](const Problem& p) { return p.bytes <= 4U << 20; }, .abandon = abandon})
      .add_fused("two_steps", contextune::ConfigSpace().parameter("blocks", {8, 16, 32, 64}),
                 [&](const Config& config, std::size_t bytes) {
                   in_two_steps<<<blocks_of(config), threads, 0, stream>>>(peers, ++calls, bias,
                                                                           vectors_of(bytes));
                   return cudaGetLastError();
                 },
                 {.abandon = abandon});

  bool all_right = true;
  for (std::size_t bytes = least; bytes <= most; bytes *= 2) {
    ranks.meet();
    CUDA_CHECK(layer_end(bytes));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    bool right = is_right(ranks, memory, bias_values, bytes / sizeof(float));
    const auto timings = layer_end.timings({.bytes = bytes, .type = "f32"});
    ranks.meet();
    compare(
        ranks, stream, bytes, timings, right, [&] { with_nccl(Config{}, bytes); },
        [&] { CUDA_CHECK(layer_end(bytes)); });
    right = right && is_right(ranks, memory, bias_values, bytes / sizeof(float));
    all_right = all_right && right;
  }
  Checksum checksum;
  const auto last = on_host(static_cast<const float*>(memory.out()), most / sizeof(float));
  checksum.add(last.data(), most);
  return report("fused_all_reduce", ranks, checksum, all_right);
}
