// Memory that all ranks of one host can reach, one process a GPU, and what kernels on it wait with.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "rank_program.cuh"

constexpr int most_ranks = 8;
constexpr int most_blocks = 64;

/// What a rank is told by another: a number that only grows, one for each block.
enum Signal { ring_sent, up_left, up_right, down, all_started, all_ended, num_signals };

/// One rank's memory, as this process sees it.
struct Peer {
  using Word = unsigned long long;
  char* base = nullptr;

  __host__ __device__ Word* word(Signal signal, int from, int block) const {
    return reinterpret_cast<Word*>(base) + (signal * most_ranks + from) * most_blocks + block;
  }
};
constexpr std::size_t signal_bytes = sizeof(Peer::Word) * num_signals * most_ranks * most_blocks;

/// All ranks of the job, for a kernel. Offsets are the same on all.
struct Peers {
  Peer of[most_ranks];
  int rank = 0, ranks = 1;
  std::size_t in = 0, out = 0, slots = 0;  ///< bytes from `base`
  std::size_t slot_bytes = 0;
  volatile int* given_up = nullptr;  ///< the host's: what waits has to end

  template <class T>
  __device__ T* input(int peer) const {
    return reinterpret_cast<T*>(of[peer].base + in);
  }
  template <class T>
  __device__ T* output(int peer) const {
    return reinterpret_cast<T*>(of[peer].base + out);
  }
  /// Where a peer sends to; two for each, used by calls in turn: nobody is more than one call
  /// ahead.
  template <class T>
  __device__ T* slot(int peer, int which, unsigned long long call) const {
    return reinterpret_cast<T*>(of[peer].base + slots + (which * 2 + call % 2) * slot_bytes);
  }
};

/// By one thread: everything that the block has written is seen by whoever sees the number.
__device__ inline void tell(const Peers& peers, int peer, Signal signal,
                            unsigned long long number) {
  __threadfence_system();
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(
                   peers.of[peer].word(signal, peers.rank, static_cast<int>(blockIdx.x))),
               "l"(number)
               : "memory");
}

/// By one thread, until it was told that number or a later one. False: it was given up.
__device__ inline bool wait_for(const Peers& peers, int peer, Signal signal,
                                unsigned long long number) {
  const auto* word = peers.of[peers.rank].word(signal, peer, static_cast<int>(blockIdx.x));
  for (unsigned looks = 1;; ++looks) {
    unsigned long long seen = 0;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(word) : "memory");
    if (seen >= number) return true;
    if (looks % 4096 == 0 && *peers.given_up != 0) return false;
  }
}

/// By the whole block. False: it was given up.
__device__ inline bool block_waits_for(const Peers& peers, int peer, Signal signal,
                                       unsigned long long number) {
  __shared__ int told;
  __syncthreads();
  if (threadIdx.x == 0) told = wait_for(peers, peer, signal, number) ? 1 : 0;
  __syncthreads();
  return told != 0;
}
__device__ inline void block_tells(const Peers& peers, int peer, Signal signal,
                                   unsigned long long number) {
  __syncthreads();
  if (threadIdx.x == 0) tell(peers, peer, signal, number);
}

/// All blocks of that number, on all ranks.
__device__ inline bool meet_all(const Peers& peers, Signal signal, unsigned long long number) {
  __shared__ int met;
  __syncthreads();
  if (threadIdx.x == 0) met = 1;
  __syncthreads();
  if (threadIdx.x < static_cast<unsigned>(peers.ranks) &&
      static_cast<int>(threadIdx.x) != peers.rank) {
    const int peer = static_cast<int>(threadIdx.x);
    tell(peers, peer, signal, number);
    if (!wait_for(peers, peer, signal, number)) met = 0;
  }
  __syncthreads();
  return met != 0;
}

/// This process's memory, and that of the others mapped here. `bytes` of input and of output.
struct PeerMemory {
  PeerMemory(const Ranks& ranks, std::size_t bytes, bool with_slots) {
    peers.rank = ranks.place.rank;
    peers.ranks = ranks.place.ranks;
    peers.in = (signal_bytes + 255) / 256 * 256;
    peers.out = peers.in + bytes;
    peers.slots = peers.out + bytes;
    peers.slot_bytes = bytes;
    const std::size_t all = peers.slots + (with_slots ? 4 * bytes : 0);
    char* own = nullptr;
    CUDA_CHECK(cudaMalloc(&own, all));
    CUDA_CHECK(cudaMemset(own, 0, all));
    share(ranks, own);
    CUDA_CHECK(cudaHostAlloc(&given_up, sizeof *given_up, cudaHostAllocMapped));
    *given_up = 0;
    int* on_device = nullptr;
    CUDA_CHECK(cudaHostGetDevicePointer(&on_device, given_up, 0));
    peers.given_up = on_device;
    ranks.meet();
  }
  void* in() const { return peers.of[peers.rank].base + peers.in; }
  void* out() const { return peers.of[peers.rank].base + peers.out; }

  Peers peers;
  int* given_up = nullptr;

 private:
  /// NCCL carries the handles.
  void share(const Ranks& ranks, char* own) {
    cudaIpcMemHandle_t handle{};
    if (ranks.place.ranks > 1) CUDA_CHECK(cudaIpcGetMemHandle(&handle, own));
    std::vector<char> bytes(sizeof handle);
    std::memcpy(bytes.data(), &handle, sizeof handle);
    char* const sent = on_device(bytes);
    char* const received =
        on_device(std::vector<char>(sizeof handle * static_cast<std::size_t>(ranks.place.ranks)));
    NCCL_CHECK(ncclAllGather(sent, received, sizeof handle, ncclChar, ranks.comm, nullptr));
    CUDA_CHECK(cudaDeviceSynchronize());
    const auto all = on_host(received, sizeof handle * static_cast<std::size_t>(ranks.place.ranks));
    for (int peer = 0; peer < ranks.place.ranks; ++peer) {
      peers.of[peer].base = own;
      if (peer == ranks.place.rank) continue;
      std::memcpy(&handle, all.data() + sizeof handle * static_cast<std::size_t>(peer),
                  sizeof handle);
      void* mapped = nullptr;
      CUDA_CHECK(cudaIpcOpenMemHandle(&mapped, handle, cudaIpcMemLazyEnablePeerAccess));
      peers.of[peer].base = static_cast<char*>(mapped);
    }
  }
};
