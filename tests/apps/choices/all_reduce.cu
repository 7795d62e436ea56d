// An all-reduce with four implementations: NCCL, a ring with chunks, a tree, and one step in which
// every rank reads all inputs, the last three over peer memory. Which is best is found for each
// size.
//   contextune run -n 4 -- all_reduce --meet PATH [--least BYTES] [--most BYTES]
// Whole numbers are added, so that no order of additions changes a bit. Prints a line for each
// size.
#include <contextune/contextune.hpp>

#include "compared.cuh"
#include "peer_memory.cuh"

namespace {

constexpr int threads = 512;

__device__ int4 operator+(int4 a, int4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}

/// What one block does of one part of the data, piece by piece.
struct Slice {
  long begin, end, piece;
  __device__ Slice(long from, long to, long piece_vectors)
      : begin(from + (to - from) * blockIdx.x / gridDim.x),
        end(from + (to - from) * (blockIdx.x + 1) / gridDim.x),
        piece(piece_vectors) {}
  /// Pieces of the longest slice of the longest part: the same for all blocks and ranks.
  __device__ static int pieces(long vectors, int parts, long piece_vectors) {
    const long part = (vectors + parts - 1) / parts;
    const long slice = (part + gridDim.x - 1) / gridDim.x + 1;
    return static_cast<int>((slice + piece_vectors - 1) / piece_vectors);
  }
  template <class Each>
  __device__ void each(int number, Each&& each) const {
    const long last = min(end, begin + (number + 1) * piece);
    for (long i = begin + number * piece + threadIdx.x; i < last; i += blockDim.x) each(i);
  }
};

/// Parts go round twice: each rank adds its own on the way, and then takes the sums.
__global__ void __launch_bounds__(threads)
    ring(Peers peers, unsigned long long call, long vectors, long piece_vectors) {
  const int n = peers.ranks, rank = peers.rank;
  const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
  const int pieces = Slice::pieces(vectors, n, piece_vectors);
  const unsigned long long first = call << 24;
  const int4* const in = peers.input<int4>(rank);
  const int4* const received = peers.slot<int4>(rank, 0, call);
  int4* const out = peers.output<int4>(rank);
  int4* const sent = peers.slot<int4>(next, 0, call);
  int4* const result = peers.output<int4>(next);
  unsigned long long told = first, heard = first;
  for (int step = 0; step < 2 * (n - 1); ++step) {
    const bool adds = step < n - 1;
    const int part = adds ? (rank - step + n) % n : (rank + 1 - (step - (n - 1)) + 2 * n) % n;
    const Slice slice(vectors * part / n, vectors * (part + 1) / n, piece_vectors);
    for (int piece = 0; piece < pieces; ++piece) {
      if (step > 0 && !block_waits_for(peers, previous, ring_sent, ++heard)) return;
      if (step == 0) {
        slice.each(piece, [&](long i) { sent[i] = in[i]; });
      } else if (adds) {
        slice.each(piece, [&](long i) { sent[i] = in[i] + __ldcg(received + i); });
      } else if (step == n - 1) {
        slice.each(piece, [&](long i) { result[i] = out[i] = in[i] + __ldcg(received + i); });
      } else {
        slice.each(piece, [&](long i) { result[i] = __ldcg(out + i); });
      }
      block_tells(peers, next, ring_sent, ++told);
    }
  }
  // What was sent in the last step.
  for (int piece = 0; piece < pieces; ++piece)
    if (!block_waits_for(peers, previous, ring_sent, ++heard)) return;
}

/// Sums go up a binary tree, and the whole comes down.
__global__ void __launch_bounds__(threads)
    tree(Peers peers, unsigned long long call, long vectors, long piece_vectors) {
  const int rank = peers.rank, parent = (rank - 1) / 2;
  const int left = 2 * rank + 1, right = 2 * rank + 2;
  const bool has_left = left < peers.ranks, has_right = right < peers.ranks, is_root = rank == 0;
  const int pieces = Slice::pieces(vectors, 1, piece_vectors);
  const unsigned long long first = call << 24;
  const Slice slice(0, vectors, piece_vectors);
  const int4* const in = peers.input<int4>(rank);
  const int4* const from_left = peers.slot<int4>(rank, 0, call);
  const int4* const from_right = peers.slot<int4>(rank, 1, call);
  int4* const out = peers.output<int4>(rank);
  int4* const up = is_root ? out : peers.slot<int4>(parent, rank % 2 == 1 ? 0 : 1, call);
  int4* const to_left = has_left ? peers.output<int4>(left) : nullptr;
  int4* const to_right = has_right ? peers.output<int4>(right) : nullptr;
  const Signal upwards = rank % 2 == 1 ? up_left : up_right;
  for (int piece = 0; piece < pieces; ++piece) {
    const unsigned long long number = first + piece + 1;
    if (has_left && !block_waits_for(peers, left, up_left, number)) return;
    if (has_right && !block_waits_for(peers, right, up_right, number)) return;
    slice.each(piece, [&](long i) {
      int4 sum = in[i];
      if (has_left) sum = sum + __ldcg(from_left + i);
      if (has_right) sum = sum + __ldcg(from_right + i);
      up[i] = sum;
      if (!is_root) return;
      if (has_left) to_left[i] = sum;
      if (has_right) to_right[i] = sum;
    });
    if (!is_root) {
      block_tells(peers, parent, upwards, number);
      continue;
    }
    if (has_left) block_tells(peers, left, down, number);
    if (has_right) block_tells(peers, right, down, number);
  }
  for (int piece = 0; !is_root && piece < pieces; ++piece) {
    const unsigned long long number = first + piece + 1;
    if (!block_waits_for(peers, parent, down, number)) return;
    if (!has_left) continue;
    slice.each(piece, [&](long i) {
      const int4 sum = __ldcg(out + i);
      to_left[i] = sum;
      if (has_right) to_right[i] = sum;
    });
    block_tells(peers, left, down, number);
    if (has_right) block_tells(peers, right, down, number);
  }
}

/// Every rank reads what all have.
__global__ void __launch_bounds__(threads)
    one_step(Peers peers, unsigned long long call, long vectors) {
  if (!meet_all(peers, all_started, call)) return;
  const Slice slice(0, vectors, vectors);
  int4* const out = peers.output<int4>(peers.rank);
  slice.each(0, [&](long i) {
    int4 sum = peers.input<int4>(0)[i];
    for (int peer = 1; peer < peers.ranks; ++peer) sum = sum + __ldcg(peers.input<int4>(peer) + i);
    out[i] = sum;
  });
  // Nobody changes what another still reads.
  (void)meet_all(peers, all_ended, call);
}

std::vector<int> inputs_of(int rank, std::size_t count) {
  return numbers(count, 17U + static_cast<unsigned>(rank));
}

bool is_sum(const Ranks& ranks, const PeerMemory& memory, std::size_t count) {
  std::vector<int> expected(count);
  for (int rank = 0; rank < ranks.place.ranks; ++rank) {
    const std::vector<int> one = inputs_of(rank, count);
    for (std::size_t i = 0; i < count; ++i) expected[i] += one[i];
  }
  return on_host(static_cast<const int*>(memory.out()), count) == expected;
}

}  // namespace

int main(int argc, char** argv) {
  const Ranks ranks(argc, argv);
  const std::size_t least = static_cast<std::size_t>(option(argc, argv, "--least", 8L << 10));
  const std::size_t most = static_cast<std::size_t>(option(argc, argv, "--most", 64L << 20));
  const PeerMemory memory(ranks, most, true);
  const Peers peers = memory.peers;
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const std::vector<int> own = inputs_of(ranks.place.rank, most / sizeof(int));
  CUDA_CHECK(cudaMemcpy(memory.in(), own.data(), most, cudaMemcpyHostToDevice));

  using contextune::Config;
  using contextune::Problem;
  // Counted alike on all ranks, which make the same calls.
  unsigned long long ring_calls = 0, tree_calls = 0, one_step_calls = 0;
  const auto with_nccl = [&](const Config&, std::size_t bytes) {
    NCCL_CHECK(ncclAllReduce(memory.in(), memory.out(), bytes / sizeof(int), ncclInt32, ncclSum,
                             ranks.comm, stream));
    return cudaSuccess;
  };
  const auto blocks_of = [](const Config& config) {
    return static_cast<unsigned>(config.get_int("blocks"));
  };
  const auto piece_of = [](const Config& config) {
    return static_cast<long>(config.get_int("chunk") / static_cast<long>(sizeof(int4)));
  };
  const auto vectors_of = [](std::size_t bytes) { return static_cast<long>(bytes / sizeof(int4)); };
  const auto abandon = [&] {
    *memory.given_up = 1;
    CUDA_CHECK(cudaStreamSynchronize(stream));
    *memory.given_up = 0;
  };
  contextune::Choice<cudaError_t(std::size_t)> all_reduce("all_reduce", {.ranks = ranks.place.ranks,
                                                                         .repeatable = true,
                                                                         .calls_per_pass = 10,
                                                                         .n_warmup = 2,
                                                                         .n_repeat = 5});
  all_reduce.size([](std::size_t bytes) { return bytes; })
      .type([](std::size_t) { return "i32"; })
      .buffers([&](std::size_t bytes) {
        return contextune::ChoiceMemory{{{memory.out(), bytes}}, {{memory.in(), bytes}}};
      })
      .add("nccl", with_nccl)
      .add("ring",
           contextune::ConfigSpace()
               .parameter("chunk", {16384, 65536, 262144})
               .parameter("blocks", {16, 32, 64}),
           [&](const Config& config, std::size_t bytes) {
             ring<<<blocks_of(config), threads, 0, stream>>>(peers, ++ring_calls, vectors_of(bytes),
                                                             piece_of(config));
             return cudaGetLastError();
           },
           {.supports = [](const Problem& p) { return p.bytes >= 65536 && p.ranks > 1; },
            .abandon = abandon})
      .add("tree",
           contextune::ConfigSpace()
               .parameter("chunk", {16384, 65536})
               .parameter("blocks", {16, 64}),
           [&](const Config& config, std::size_t bytes) {
             tree<<<blocks_of(config), threads, 0, stream>>>(peers, ++tree_calls, vectors_of(bytes),
                                                             piece_of(config));
             return cudaGetLastError();
           },
           {.abandon = abandon})
      .add("one_step", contextune::ConfigSpace().parameter("blocks", {4, 16, 64}),
           [&](const Config& config, std::size_t bytes) {
             one_step<<<blocks_of(config), threads, 0, stream>>>(peers, ++one_step_calls,
                                                                 vectors_of(bytes));
             return cudaGetLastError();
           },
           {.supports = [](const Problem& p) { return p.bytes <= 4U << 20; }, .abandon = abandon});

  bool all_right = true;
  for (std::size_t bytes = least; bytes <= most; bytes *= 2) {
    ranks.meet();
    CUDA_CHECK(all_reduce(bytes));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    bool right = is_sum(ranks, memory, bytes / sizeof(int));
    const auto timings = all_reduce.timings({.bytes = bytes, .type = "i32"});
    ranks.meet();
    compare(
        ranks, stream, bytes, timings, right, [&] { with_nccl(Config{}, bytes); },
        [&] { CUDA_CHECK(all_reduce(bytes)); });
    right = right && is_sum(ranks, memory, bytes / sizeof(int));
    all_right = all_right && right;
  }
  Checksum checksum;
  const auto last = on_host(static_cast<const int*>(memory.out()), most / sizeof(int));
  checksum.add(last.data(), most);
  return report("all_reduce", ranks, checksum, all_right);
}
