// C = A B, where each rank has some rows of A: its copy engine pushes them into the memory of its
// peers, and sets a flag there for each chunk. Meanwhile the product is under way, in a kernel that
// waits for the flag of a chunk where it needs it.
#pragma once

#include <cuda.h>

#include "rank_program.cuh"

constexpr int rows = 2048;  // of A, of all ranks
constexpr int inner = 256;
constexpr int columns = 256;
constexpr int most_chunks = 16;  // of the rows of one rank
constexpr int most_ranks = 8;
constexpr int threads = 256;
constexpr int depth = 16;  // of A and B, that a block keeps in shared memory

// One rank's memory, which its peers write to.
struct Shared {
  int a[rows * inner];
  unsigned arrived[most_ranks * most_chunks];  // the step whose chunk is there
  unsigned multiplied[most_ranks];             // the step whose product that rank has
};

// How a step is done. Of equal settings on all ranks: they say which flag is for which rows.
struct Plan {
  int tile_rows = 32, tile_columns = 32;
  int per_sm = 1;  // blocks
  int chunks = 4;  // of the rows of one rank, each as many as those of a tile or more
};

// A peer that does not come within some seconds makes the result wrong, but no kernel without end.
__device__ void wait_for(const unsigned* flag, unsigned step, volatile int* missing) {
  constexpr unsigned long long patience = 10'000'000'000;
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  for (;;) {
    unsigned value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    if (value >= step || *missing != 0) return;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    if (now - begin > patience) {
      *missing = 1;
      return;
    }
  }
}

// A block computes tile after tile of C, those first whose rows of A are this rank's own.
template <int Rows, int Columns>
__global__ void __launch_bounds__(threads)
    gather_gemm(Shared* shared, unsigned step, int own_row, int own_rows, int chunk_rows,
                const int* b, int* c, int* missing) {
  constexpr int side = 16;  // of the threads, which lie in a square
  __shared__ int part_of_a[depth][Rows + 1];
  __shared__ int part_of_b[depth][Columns];
  const int x = threadIdx.x % side, y = threadIdx.x / side;
  for (int tile = blockIdx.x; tile < rows / Rows * (columns / Columns); tile += gridDim.x) {
    const int row = (own_row + tile / (columns / Columns) * Rows) % rows;
    const int column = tile % (columns / Columns) * Columns;
    const bool own = row >= own_row && row < own_row + own_rows;
    if (!own && threadIdx.x == 0) wait_for(shared->arrived + row / chunk_rows, step, missing);
    __syncthreads();
    int sums[Rows / side][Columns / side] = {};
    for (int k = 0; k < inner; k += depth) {
      for (int i = threadIdx.x; i < Rows * depth; i += threads)
        part_of_a[i % depth][i / depth] = shared->a[(row + i / depth) * inner + k + i % depth];
      for (int i = threadIdx.x; i < depth * Columns; i += threads)
        part_of_b[i / Columns][i % Columns] = b[(k + i / Columns) * columns + column + i % Columns];
      __syncthreads();
      for (int at = 0; at < depth; ++at)
        for (int i = 0; i < Rows / side; ++i)
          for (int j = 0; j < Columns / side; ++j)
            sums[i][j] += part_of_a[at][y + side * i] * part_of_b[at][x + side * j];
      __syncthreads();
    }
    for (int i = 0; i < Rows / side; ++i)
      for (int j = 0; j < Columns / side; ++j)
        c[(row + y + side * i) * columns + column + x + side * j] = sums[i][j];
  }
}

using GatherGemm = void (*)(Shared*, unsigned, int, int, int, const int*, int*, int*);

// Null: there is no such kernel.
inline GatherGemm kernel_of(const Plan& plan) {
  const auto is = [&](int tile_rows, int tile_columns) {
    return plan.tile_rows == tile_rows && plan.tile_columns == tile_columns;
  };
  if (is(16, 64)) return gather_gemm<16, 64>;
  if (is(32, 32)) return gather_gemm<32, 32>;
  if (is(32, 64)) return gather_gemm<32, 64>;
  if (is(64, 64)) return gather_gemm<64, 64>;
  return nullptr;
}

// The rows of A for the next step, out of the product.
__global__ void next_rows(int n, const int* c, int* a) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    a[i] = clamped(a[i] / 2 + (c[i / inner * columns + i % inner % columns] >> 8));
}

inline CUdeviceptr address(unsigned* flag) {
  return reinterpret_cast<CUdeviceptr>(flag);
}

class AllGatherGemm {
 public:
  explicit AllGatherGemm(const Ranks& ranks)
      : place_(ranks.place),
        own_rows_(rows / place_.ranks),
        own_row_(own_rows_ * place_.rank),
        b_(on_device(numbers(inner * columns, 1))),
        c_(on_device(std::vector<int>(rows * columns))),
        missing_(on_device(std::vector<int>(1))),
        peers_(place_.ranks) {
    CUDA_CHECK(cudaGetDevice(&num_sms_));
    CUDA_CHECK(cudaDeviceGetAttribute(&num_sms_, cudaDevAttrMultiProcessorCount, num_sms_));
    Shared*& own = peers_[place_.rank];
    CUDA_CHECK(cudaMalloc(&own, sizeof(Shared)));
    CUDA_CHECK(cudaMemset(own, 0, sizeof(Shared)));
    const std::vector<int> a = numbers(own_rows_ * inner, 2 + place_.rank);
    CUDA_CHECK(cudaMemcpy(own->a + own_row_ * inner, a.data(), a.size() * sizeof(int),
                          cudaMemcpyHostToDevice));
    for (cudaStream_t* stream : {&compute_, &travel_})
      CUDA_CHECK(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    for (cudaEvent_t* event : {&ready_, &travelled_})
      CUDA_CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    open_memory_of_peers(ranks.comm);
  }

  // The rows of A for the next product, out of the last one.
  void next() {
    next_rows<<<132, 256, 0, compute_>>>(own_rows_ * inner, c_ + own_row_ * columns, own_a());
  }

  // Whether a step can be done so on this device; the same on all ranks.
  [[nodiscard]] bool fits(const Plan& plan) const {
    const GatherGemm kernel = kernel_of(plan);
    if (kernel == nullptr || plan.chunks > most_chunks || own_rows_ % plan.chunks != 0 ||
        own_rows_ / plan.chunks < plan.tile_rows) {
      return false;
    }
    int at_once = 0;  // blocks that wait must not keep others from an SM
    CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&at_once, kernel, threads, 0));
    return plan.per_sm <= at_once;
  }

  // C = A B, of the rows of A that all have now: doing it again leaves the same.
  [[nodiscard]] cudaError_t multiply(const Plan& plan) {
    ++number_;
    Shared* const own = peers_[place_.rank];
    CUDA_CHECK(cudaEventRecord(ready_, compute_));
    CUDA_CHECK(cudaStreamWaitEvent(travel_, ready_));
    for (int next = 1; next < place_.ranks; ++next)
      push((place_.rank + next) % place_.ranks, plan.chunks);
    kernel_of(plan)<<<plan.per_sm * num_sms_, threads, 0, compute_>>>(
        own, number_, own_row_, own_rows_, own_rows_ / plan.chunks, b_, c_, missing_);
    const cudaError_t launched = cudaGetLastError();
    for (int peer = 0; peer < place_.ranks; ++peer)
      CUDA_CHECK(cuStreamWriteValue32(compute_, address(&peers_[peer]->multiplied[place_.rank]),
                                      number_, CU_STREAM_WRITE_VALUE_DEFAULT));
    CUDA_CHECK(cudaEventRecord(travelled_, travel_));
    CUDA_CHECK(cudaStreamWaitEvent(compute_, travelled_));
    return launched;
  }

  [[nodiscard]] cudaStream_t stream() const { return compute_; }

  void add_to(Checksum& checksum) const {
    const std::vector<int> c = on_host(c_, rows * columns);
    checksum.add(c.data(), c.size() * sizeof(int));
  }

  // Whether some rows of the last product are what the host makes of the rows of A that came.
  [[nodiscard]] bool is_right() const {
    const std::vector<int> a = on_host(peers_[place_.rank]->a, rows * inner);
    const std::vector<int> b = on_host(b_, inner * columns);
    const std::vector<int> c = on_host(c_, rows * columns);
    for (int row = 0; row < rows; row += 37) {
      for (int column = 0; column < columns; ++column) {
        int sum = 0;
        for (int k = 0; k < inner; ++k) sum += a[row * inner + k] * b[k * columns + column];
        if (sum != c[row * columns + column]) return false;
      }
    }
    return on_host(missing_, 1)[0] == 0;
  }

 private:
  [[nodiscard]] int* own_a() const { return peers_[place_.rank]->a + own_row_ * inner; }

  // The copy engine writes the chunks and their flags, so that no kernel has to make room for that.
  void push(int peer, int chunks) {
    Shared* const own = peers_[place_.rank];
    Shared* const to = peers_[peer];
    // Its product of the step before has been made of what is replaced now.
    CUDA_CHECK(cuStreamWaitValue32(travel_, address(&own->multiplied[peer]), number_ - 1,
                                   CU_STREAM_WAIT_VALUE_GEQ));
    const int chunk = own_rows_ / chunks * inner;
    for (int i = 0; i < chunks; ++i) {
      const int at = own_row_ * inner + i * chunk;
      CUDA_CHECK(cudaMemcpyAsync(to->a + at, own->a + at, chunk * sizeof(int), cudaMemcpyDefault,
                                 travel_));
      CUDA_CHECK(cuStreamWriteValue32(travel_, address(&to->arrived[place_.rank * chunks + i]),
                                      number_, CU_STREAM_WRITE_VALUE_DEFAULT));
    }
  }

  // Each gets the handles of all others; nobody goes on before all memory is there.
  void open_memory_of_peers(ncclComm_t comm) {
    std::vector<cudaIpcMemHandle_t> handles(place_.ranks);
    CUDA_CHECK(cudaIpcGetMemHandle(&handles[place_.rank], peers_[place_.rank]));
    cudaIpcMemHandle_t* const all = on_device(handles);
    NCCL_CHECK(ncclAllGather(all + place_.rank, all, sizeof *all, ncclChar, comm, compute_));
    CUDA_CHECK(cudaStreamSynchronize(compute_));
    handles = on_host(all, handles.size());
    for (int peer = 0; peer < place_.ranks; ++peer) {
      if (peer == place_.rank) continue;
      CUDA_CHECK(cudaIpcOpenMemHandle(reinterpret_cast<void**>(&peers_[peer]), handles[peer],
                                      cudaIpcMemLazyEnablePeerAccess));
    }
  }

  Place place_;
  int own_rows_, own_row_;
  int num_sms_ = 0;
  unsigned number_ = 0;  // of the step; counted alike on all ranks
  int *b_, *c_, *missing_;
  std::vector<Shared*> peers_;  // by rank; this rank's own is among them
  cudaStream_t compute_ = nullptr, travel_ = nullptr;
  cudaEvent_t ready_ = nullptr, travelled_ = nullptr;
};
