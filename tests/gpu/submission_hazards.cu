// Kinds of memory and of launches in which a kernel that starts too early, or a launch that comes
// too late, reads stale data. Prints a line "NAME wrong W of N" for each check, or "NAME skipped:
// WHY"; whoever runs it judges. What ends in _without_wait are the program's own mistakes, which
// have to be seen: a kernel lets the next one start, and that one, launched programmatically, does
// not wait; or nothing orders two streams. All others are right as written, and have to be right
// however launches reach the GPU.
//   submission_hazards [--only NAME] [--rounds N]
#include <cooperative_groups.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cinttypes>
#include <functional>

#include "submission_checks.cuh"
#include "submission_children.hpp"

extern char** environ;

namespace {

constexpr unsigned side = 64;  // of the same words as a square
static_assert(side * side == num_words);
constexpr unsigned num_bytes = num_words * sizeof(unsigned);
constexpr unsigned block_threads = 128;

#define EACH_WORD           \
  unsigned i = threadIdx.x; \
  i < num_words;            \
  i += blockDim.x

// ---- surfaces ----

template <bool triggers>
__global__ void write_surface(cudaSurfaceObject_t surface, cudaTextureObject_t texture,
                              unsigned* sink, unsigned round) {
  if (triggers) let_next_start();
  unsigned sum = 0;
  for (EACH_WORD) {
    const int x = static_cast<int>(i % side), y = static_cast<int>(i / side);
    sum += surf2Dread<unsigned>(surface, x * 4, y) + tex2D<unsigned>(texture, x + 0.5F, y + 0.5F);
  }
  if (sum == 0xffffffffu) *sink = sum;
  if (!is_last_block(round)) return;
  linger(500);
  for (EACH_WORD)
    surf2Dwrite(round, surface, static_cast<int>(i % side) * 4, static_cast<int>(i / side));
}

template <bool by_texture>
__global__ void read_surface(cudaSurfaceObject_t surface, cudaTextureObject_t texture,
                             unsigned long long* wrong, unsigned round) {
  unsigned found = 0;
  for (EACH_WORD) {
    const int x = static_cast<int>(i % side), y = static_cast<int>(i / side);
    found += (by_texture ? tex2D<unsigned>(texture, x + 0.5F, y + 0.5F)
                         : surf2Dread<unsigned>(surface, x * 4, y)) != round;
  }
  count(found, wrong);
}

// ---- the bulk copy engine, whose reads and writes go past the caches of a multiprocessor ----

__device__ __forceinline__ unsigned shared_address(const void* at) {
  return static_cast<unsigned>(__cvta_generic_to_shared(at));
}

struct Tile {
  alignas(128) unsigned words[num_words];
  alignas(8) unsigned long long barrier;

  __device__ void expect() {
    if (threadIdx.x == 0) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&barrier)));
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      asm volatile(
          "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
          "r"(num_bytes)
          : "memory");
    }
    __syncthreads();
  }
  __device__ void wait() {
    unsigned done = 0;
    while (done == 0) {
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, "
          "p; }"
          : "=r"(done)
          : "r"(shared_address(&barrier))
          : "memory");
    }
  }
  __device__ unsigned sum() const {
    unsigned sum = 0;
    for (EACH_WORD) sum += words[i];
    return sum;
  }
  __device__ unsigned count_others(unsigned value) const {
    unsigned found = 0;
    for (EACH_WORD) found += words[i] != value;
    return found;
  }
};

__device__ __forceinline__ void load_in_bulk(Tile& tile, const unsigned* data) {
  tile.expect();
  if (threadIdx.x == 0) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared_address(tile.words)),
        "l"(data), "r"(num_bytes), "r"(shared_address(&tile.barrier))
        : "memory");
  }
  tile.wait();
}

__global__ void read_in_bulk(const unsigned* data, unsigned long long* wrong, unsigned round) {
  __shared__ Tile tile;
  load_in_bulk(tile, data);
  count(tile.count_others(round), wrong);
}

/// Ends when its tile has been read, and not when its copy has been written.
template <bool triggers>
__global__ void write_in_bulk(unsigned* data, unsigned* sink, unsigned round) {
  __shared__ Tile tile;
  if (triggers) let_next_start();
  load_in_bulk(tile, data);
  if (tile.sum() == 0xffffffffu) *sink = 1;
  if (!is_last_block(round)) return;
  linger(500);
  for (EACH_WORD) tile.words[i] = round;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(data),
               "r"(shared_address(tile.words)), "r"(num_bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0;" ::: "memory");
}

__device__ __forceinline__ void load_by_map(Tile& tile, const CUtensorMap* map) {
  tile.expect();
  if (threadIdx.x == 0) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], "
        "[%1, {0, 0}], [%2];" ::"r"(shared_address(tile.words)),
        "l"(map), "r"(shared_address(&tile.barrier))
        : "memory");
  }
  tile.wait();
}

__device__ __forceinline__ void acquire_map(const CUtensorMap* map) {
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

/// All blocks load through the map, and the last one writes another one over it.
template <bool triggers, bool fenced>
__global__ void write_map(CUtensorMap* map, const CUtensorMap* from, unsigned* sink,
                          unsigned round) {
  __shared__ Tile tile;
  if (triggers) let_next_start();
  if (fenced) acquire_map(map);
  load_by_map(tile, map);
  if (tile.sum() == 0xffffffffu) *sink = 1;
  if (!is_last_block(round)) return;
  linger(500);
  constexpr unsigned words = sizeof(CUtensorMap) / sizeof(unsigned);
  if (threadIdx.x < words) {
    reinterpret_cast<unsigned*>(map)[threadIdx.x] =
        reinterpret_cast<const unsigned*>(from)[threadIdx.x];
  }
  if (fenced) asm volatile("fence.proxy.tensormap::generic.release.gpu;" ::: "memory");
}

template <bool waits, bool fenced>
__global__ void read_by_map(const CUtensorMap* map, unsigned long long* wrong, unsigned value) {
  __shared__ Tile tile;
  if (waits) wait_for_one_before();
  if (fenced) acquire_map(map);
  load_by_map(tile, map);
  count(tile.count_others(value), wrong);
}

__global__ void read_by_argument(const __grid_constant__ CUtensorMap map, unsigned long long* wrong,
                                 unsigned value) {
  __shared__ Tile tile;
  load_by_map(tile, &map);
  count(tile.count_others(value), wrong);
}

// ---- the host, and other processes and GPUs ----

constexpr unsigned num_seen = 1 << 16;  // words that somebody else reads

/// No fence: the end of the kernel is one.
template <bool triggers>
__global__ void fill(unsigned* out, unsigned value) {
  if (triggers) let_next_start();
  if (blockIdx.x == 0) linger_for(triggers ? 400'000 : 10'000);
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < num_seen;
       i += gridDim.x * blockDim.x)
    out[i] = value;
}

__global__ void set_plain(unsigned* flag, unsigned value) {
  *flag = value;
}

__global__ void set_fenced(unsigned* flag, unsigned value) {
  __threadfence_system();
  *flag = value;
}

__global__ void await_peer(volatile unsigned* flag, const unsigned* data, unsigned value,
                           unsigned long long* wrong) {
  const long long begin = clock64();
  while (*flag != value) {
    if (clock64() - begin > 3'000'000'000LL) {
      count(num_seen, wrong);
      return;
    }
  }
  __threadfence_system();
  unsigned found = 0;
  for (unsigned i = threadIdx.x; i < num_seen; i += blockDim.x)
    found += static_cast<const volatile unsigned*>(data)[i] != value;
  count(found, wrong);
}

// ---- launches of other kinds, between a kernel that writes `in` and one that reads `out` ----

__device__ __forceinline__ unsigned others_in(const unsigned* in, unsigned round) {
  unsigned found = 0;
  for (EACH_WORD) found += through_ca(in + i) != round;
  return found;
}

__device__ __forceinline__ void write_out(unsigned* out, unsigned round) {
  if (blockIdx.x == gridDim.x - 1) linger_for(10'000);
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < num_words;
       i += gridDim.x * blockDim.x)
    out[i] = round;
}

template <bool triggers>
__global__ void relay(const unsigned* in, unsigned* out, unsigned long long* wrong,
                      unsigned round) {
  if (triggers) let_next_start();
  count(others_in(in, round), wrong);
  write_out(out, round);
}

template <bool triggers>
__global__ void relay_over_grid(const unsigned* in, unsigned* out, unsigned long long* wrong,
                                unsigned round) {
  if (triggers) let_next_start();
  count(others_in(in, round), wrong);
  cooperative_groups::this_grid().sync();
  write_out(out, round);
}

/// What a block writes, its neighbour gives it out of its shared memory.
__device__ __forceinline__ void relay_in_cluster(const unsigned* in, unsigned* out,
                                                 unsigned long long* wrong, unsigned round) {
  __shared__ unsigned given;
  const auto cluster = cooperative_groups::this_cluster();
  count(others_in(in, round), wrong);
  if (threadIdx.x == 0) given = in[0];
  cluster.sync();
  const unsigned value =
      *cluster.map_shared_rank(&given, (cluster.block_rank() + 1) % cluster.num_blocks());
  write_out(out, value);
  cluster.sync();
}

__global__ void relay_any_cluster(const unsigned* in, unsigned* out, unsigned long long* wrong,
                                  unsigned round) {
  relay_in_cluster(in, out, wrong, round);
}

__global__ void __cluster_dims__(4, 1, 1)
    relay_cluster_of_four(const unsigned* in, unsigned* out, unsigned long long* wrong,
                          unsigned round) {
  relay_in_cluster(in, out, wrong, round);
}

cudaLaunchAttribute cluster_attribute(unsigned blocks) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = blocks;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  return attribute;
}

class Hazards {
 public:
  Hazards(std::string only, unsigned rounds) : only_(std::move(only)), rounds_(rounds) {
    for (cudaStream_t* one : {&stream_, &other_})
      CUDA_CHECK(cudaStreamCreateWithFlags(one, cudaStreamNonBlocking));
    for (unsigned*& one : data_) one = new_words<unsigned>(num_seen + 64);
    wrong_ = new_words<unsigned long long>(1);
    sink_ = new_words<unsigned>(1);
    CUDA_CHECK(cudaDeviceSynchronize());
  }

  void run() {
    surfaces();
    managed_memory();
    bulk_copies();
    tensor_maps();
    flag();
    other_process("other_process_without_wait", true);
    other_process("other_process", false);
    peer();
    cooperative();
    clusters();
    attributes();
    streams();
    children();
    if (wanted("multimem")) std::printf("multimem skipped: NVLink multicast is left off\n");
  }

 private:
  bool wanted(const char* name) const { return only_.empty() || only_ == name; }

  template <class T>
  static T* new_words(std::size_t count) {
    T* words = nullptr;
    CUDA_CHECK(cudaMalloc(&words, count * sizeof(T)));
    CUDA_CHECK(cudaMemset(words, 0, count * sizeof(T)));
    return words;
  }

  /// @param round launches what one round has, and returns how many words that reads
  void check(const char* name, const std::function<std::uint64_t(unsigned)>& round,
             unsigned rounds = 0) {
    if (!wanted(name)) return;
    CUDA_CHECK(cudaDeviceSynchronize());
    for (unsigned i = 0; i < 2; ++i) CUDA_CHECK(cudaMemset(data_[i], 0, num_bytes));
    CUDA_CHECK(cudaMemset(wrong_, 0, sizeof *wrong_));
    CUDA_CHECK(cudaDeviceSynchronize());
    std::uint64_t num_read = 0;
    wrong_on_host_ = 0;
    for (unsigned i = 1; i <= (rounds == 0 ? rounds_ : rounds); ++i) num_read += round(i);
    CUDA_CHECK(cudaDeviceSynchronize());
    unsigned long long wrong = 0;
    CUDA_CHECK(cudaMemcpy(&wrong, wrong_, sizeof wrong, cudaMemcpyDeviceToHost));
    print_wrong(name, wrong + wrong_on_host_, num_read);
  }

  void surfaces() {
    cudaArray_t array = nullptr;
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<unsigned>();
    CUDA_CHECK(cudaMallocArray(&array, &format, side, side, cudaArraySurfaceLoadStore));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaSurfaceObject_t surface = 0;
    CUDA_CHECK(cudaCreateSurfaceObject(&surface, &resource));
    cudaTextureDesc how{};
    how.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture = 0;
    CUDA_CHECK(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
    const auto round = [&](bool programmatic, bool by_texture) {
      return [=](unsigned round) {
        const unsigned readers = grid_of(round + 5);
        launch(false, stream_, grid_of(round), block_threads,
               programmatic ? write_surface<true> : write_surface<false>, surface, texture, sink_,
               round);
        launch(programmatic, stream_, readers, block_threads,
               by_texture ? read_surface<true> : read_surface<false>, surface, texture, wrong_,
               round);
        return std::uint64_t{readers} * num_words;
      };
    };
    check("surface_without_wait", round(true, false));
    check("surface", round(false, false));
    check("surface_as_texture_without_wait", round(true, true));
    check("surface_as_texture", round(false, true));
  }

  void managed_memory() {
    unsigned* managed = nullptr;
    CUDA_CHECK(cudaMallocManaged(&managed, num_bytes));
    int together = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&together, cudaDevAttrConcurrentManagedAccess, 0));
    const auto round = [&](bool programmatic) {
      return [=](unsigned round) {
        const unsigned readers = grid_of(round + 5);
        launch(false, stream_, grid_of(round), block_threads,
               programmatic ? write_data<true> : write_data<false>, managed, sink_, round);
        launch(programmatic, stream_, readers, block_threads, read_data<false>,
               static_cast<const unsigned*>(managed), wrong_, round);
        if (round % 32 != 0) return std::uint64_t{readers} * num_words;
        if (round % 64 == 0 && together != 0) {
          cudaMemLocation host{};
          host.type = cudaMemLocationTypeHost;
          CUDA_CHECK(cudaMemPrefetchAsync(managed, num_bytes, host, 0, stream_));
        }
        CUDA_CHECK(cudaStreamSynchronize(stream_));
        for (unsigned i = 0; i < num_words; ++i) wrong_on_host_ += managed[i] != round;
        return std::uint64_t{readers + 1} * num_words;
      };
    };
    check("managed_without_wait", round(true));
    check("managed", round(false));
  }

  void bulk_copies() {
    unsigned* const data = data_[0];
    const auto round = [&](bool programmatic, bool written_in_bulk) {
      return [=](unsigned round) {
        const unsigned readers = grid_of(round + 5);
        launch(false, stream_, grid_of(round), block_threads,
               written_in_bulk ? (programmatic ? write_in_bulk<true> : write_in_bulk<false>)
                               : (programmatic ? write_data<true> : write_data<false>),
               data, sink_, round);
        launch(programmatic, stream_, readers, block_threads,
               written_in_bulk ? read_data<false> : read_in_bulk,
               static_cast<const unsigned*>(data), wrong_, round);
        return std::uint64_t{readers} * num_words;
      };
    };
    check("bulk_load_without_wait", round(true, false));
    check("bulk_load", round(false, false));
    check("bulk_store_without_wait", round(true, true));
    check("bulk_store", round(false, true));
  }

  void tensor_maps() {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found{};
    CUDA_CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                cudaEnableDefault, &found));
    const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
    unsigned* const tiles[2] = {data_[2], data_[3]};
    alignas(64) CUtensorMap encoded[2];
    for (unsigned i = 0; i < 2; ++i) {
      const cuuint64_t size[2] = {side, side}, stride[1] = {side * sizeof(unsigned)};
      const cuuint32_t box[2] = {side, side}, step[2] = {1, 1};
      CUDA_CHECK(encode(&encoded[i], CU_TENSOR_MAP_DATA_TYPE_UINT32, 2, tiles[i], size, stride, box,
                        step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                        CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    }
    auto* const maps = reinterpret_cast<CUtensorMap*>(new_words<unsigned>(3 * sizeof(CUtensorMap)));
    CUDA_CHECK(cudaMemcpy(maps, encoded, sizeof encoded, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(maps + 2, encoded, sizeof *encoded, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaDeviceSynchronize());
    const std::array<unsigned, 2> values = {7, 9};
    for (unsigned i = 0; i < 2; ++i)
      launch(false, stream_, 16, block_threads, fill<false>, tiles[i], values[i]);
    const auto round = [&](bool triggers, bool waits, bool fenced) {
      return [=](unsigned round) {
        const unsigned readers = grid_of(round + 5);
        const unsigned which = round % 2;
        launch(false, stream_, grid_of(round), block_threads,
               fenced ? (triggers ? write_map<true, true> : write_map<false, true>)
                      : (triggers ? write_map<true, false> : write_map<false, false>),
               maps + 2, static_cast<const CUtensorMap*>(maps + which), sink_, round);
        launch(triggers, stream_, readers, block_threads,
               fenced ? (waits ? read_by_map<true, true> : read_by_map<false, true>)
                      : (waits ? read_by_map<true, false> : read_by_map<false, false>),
               static_cast<const CUtensorMap*>(maps + 2), wrong_, values[which]);
        return std::uint64_t{readers} * num_words;
      };
    };
    check("tensor_map_without_wait", round(true, false, true));
    check("tensor_map_trigger_and_wait", round(true, true, true));
    check("tensor_map", round(false, false, true));
    // Of the program only the end of a kernel stands between.
    check("tensor_map_unfenced_without_wait", round(true, false, false));
    check("tensor_map_unfenced_trigger_and_wait", round(true, true, false));
    check("tensor_map_unfenced", round(false, false, false));
    check("tensor_map_copied", [=](unsigned round) {
      const unsigned which = round % 2;
      CUDA_CHECK(
          cudaMemcpyAsync(maps + 2, maps + which, sizeof *maps, cudaMemcpyDeviceToDevice, stream_));
      for (unsigned i = 0; i < 4; ++i) {
        launch(false, stream_, 132, block_threads, read_by_map<false, false>,
               static_cast<const CUtensorMap*>(maps + 2), wrong_, values[which]);
      }
      return std::uint64_t{4 * 132} * num_words;
    });
    const std::array<CUtensorMap, 2> given = {encoded[0], encoded[1]};
    check("tensor_map_argument", [=](unsigned round) {
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned which = (round + i) % 2;
        launch(false, stream_, 132, block_threads, read_by_argument, given[which], wrong_,
               values[which]);
      }
      return std::uint64_t{4 * 132} * num_words;
    });
  }

  static void await(const char* name, const volatile unsigned* flag, unsigned value) {
    const auto deadline = Clock::now() + std::chrono::seconds(5);
    while (*flag != value) {
      if (Clock::now() > deadline) give_up(name);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
  }

  /// Neither kernel has a fence.
  void write_and_set(unsigned* data, bool programmatic, unsigned round, bool fenced = false) {
    for (unsigned i = 0; i < round % 4; ++i) launch(false, stream_, 1, 32, set_plain, sink_, round);
    launch(false, stream_, 264, 256, programmatic ? fill<true> : fill<false>, data, round);
    launch(programmatic, stream_, 1, 1, fenced ? set_fenced : set_plain, data + num_seen, round);
  }

  void flag() {
    unsigned* mapped = nullptr;
    unsigned* on_device = nullptr;
    CUDA_CHECK(cudaHostAlloc(&mapped, (num_seen + 64) * sizeof(unsigned), cudaHostAllocMapped));
    CUDA_CHECK(cudaHostGetDevicePointer(&on_device, mapped, 0));
    flags("plain_flag", mapped, on_device);
    int together = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&together, cudaDevAttrConcurrentManagedAccess, 0));
    if (together == 0) return;
    for (const bool stays : {false, true}) {
      unsigned* managed = nullptr;
      CUDA_CHECK(cudaMallocManaged(&managed, (num_seen + 1024) * sizeof(unsigned)));
      if (stays) {
        cudaMemLocation place{};
        place.type = cudaMemLocationTypeHost;
        CUDA_CHECK(cudaMemAdvise(managed, (num_seen + 1024) * sizeof(unsigned),
                                 cudaMemAdviseSetPreferredLocation, place));
      }
      flags(stays ? "managed_host_flag" : "managed_flag", managed, managed);
    }
  }

  void flags(std::string what, unsigned* mapped, unsigned* on_device) {
    const auto round = [&](const std::string& name, bool programmatic, bool fenced) {
      mapped[num_seen] = 0;
      return [=](unsigned round) {
        write_and_set(on_device, programmatic, round, fenced);
        await(name.c_str(), mapped + num_seen, round);
        for (unsigned i = 0; i < num_seen; ++i)
          wrong_on_host_ += static_cast<volatile unsigned*>(mapped)[i] != round;
        if (programmatic) CUDA_CHECK(cudaStreamSynchronize(stream_));
        return std::uint64_t{num_seen};
      };
    };
    const std::string early = what + "_without_wait", fenced = what + "_fenced";
    check(early.c_str(), round(early, true, false), 50);
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    check(what.c_str(), round(what, false, false));
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    check(fenced.c_str(), round(fenced, false, true));
    CUDA_CHECK(cudaStreamSynchronize(stream_));
  }

  /// Another process reads this one's memory, and says when it has read.
  void other_process(const char* name, bool unordered) {
    if (!wanted(name)) return;
    int to[2], from[2];
    if (pipe(to) != 0 || pipe(from) != 0) give_up("a pipe");
    for (const int own : {to[1], from[0]}) (void)fcntl(own, F_SETFD, FD_CLOEXEC);
    char in[16], out[16];
    std::snprintf(in, sizeof in, "%d", to[0]);
    std::snprintf(out, sizeof out, "%d", from[1]);
    char self[] = "/proc/self/exe", option[] = "--read-for";
    char* const arguments[] = {self, option, in, out, nullptr};
    pid_t child = 0;
    if (posix_spawn(&child, self, nullptr, nullptr, arguments, environ) != 0) give_up(name);
    close(to[0]);
    close(from[1]);
    unsigned* const data = new_words<unsigned>(num_seen + 64);
    cudaIpcMemHandle_t handle;
    CUDA_CHECK(cudaIpcGetMemHandle(&handle, data));
    if (write(to[1], &handle, sizeof handle) != sizeof handle) give_up(name);
    const auto answer = [&] {
      std::uint64_t number = 0;
      pollfd ready{from[0], POLLIN, 0};
      if (poll(&ready, 1, 20000) != 1 || read(from[0], &number, sizeof number) != sizeof number)
        give_up(name);
      return number;
    };
    (void)answer();  // it has opened the memory
    check(
        name,
        [&](unsigned round) {
          if (unordered) {
            // The flag comes first.
            launch(false, stream_, 1, 1, set_plain, data + num_seen, round);
            CUDA_CHECK(cudaStreamSynchronize(stream_));
          } else {
            write_and_set(data, false, round);
          }
          if (write(to[1], &round, sizeof round) != sizeof round) give_up(name);
          wrong_on_host_ += answer();
          if (unordered) launch(false, stream_, 264, 256, fill<false>, data, round);
          return std::uint64_t{num_seen};
        },
        unordered ? 20 : 300);
    close(to[1]);
    close(from[0]);
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) give_up(name);
    CUDA_CHECK(cudaFree(data));
  }

  void peer() {
    int num_devices = 0, reaches = 0;
    CUDA_CHECK(cudaGetDeviceCount(&num_devices));
    if (num_devices > 1) CUDA_CHECK(cudaDeviceCanAccessPeer(&reaches, 0, 1));
    if (reaches == 0) {
      if (wanted("peer")) std::printf("peer skipped: it needs two GPUs that reach each other\n");
      return;
    }
    CUDA_CHECK(cudaDeviceEnablePeerAccess(1, 0));
    CUDA_CHECK(cudaSetDevice(1));
    unsigned* const data = new_words<unsigned>(num_seen + 64);
    unsigned long long* const wrong = new_words<unsigned long long>(1);
    cudaStream_t stream = nullptr;
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA_CHECK(cudaDeviceSynchronize());
    CUDA_CHECK(cudaSetDevice(0));
    for (const bool programmatic : {true, false}) {
      check(
          programmatic ? "peer_without_wait" : "peer",
          [&](unsigned round) {
            CUDA_CHECK(cudaSetDevice(1));
            launch(false, stream, 1, 256, await_peer,
                   static_cast<volatile unsigned*>(data + num_seen),
                   static_cast<const unsigned*>(data), round, wrong);
            CUDA_CHECK(cudaSetDevice(0));
            write_and_set(data, programmatic, round);
            // Half of the rounds without a call of the driver, as long as they take.
            if (round % 2 == 0) {
              const auto until = Clock::now() + std::chrono::milliseconds(1);
              while (Clock::now() < until) {
              }
            }
            CUDA_CHECK(cudaStreamSynchronize(stream));
            CUDA_CHECK(cudaStreamSynchronize(stream_));
            unsigned long long so_far = 0;
            CUDA_CHECK(cudaMemcpy(&so_far, wrong, sizeof so_far, cudaMemcpyDeviceToHost));
            CUDA_CHECK(cudaMemset(wrong, 0, sizeof so_far));
            wrong_on_host_ += so_far;
            return std::uint64_t{num_seen};
          },
          300);
      CUDA_CHECK(cudaMemset(data + num_seen, 0, sizeof(unsigned)));
    }
  }

  using Relay = void(const unsigned*, unsigned*, unsigned long long*, unsigned);

  /// Which kernel does not wait, if any: the one in the middle, the last one, or the last one in a
  /// stream of its own.
  enum class Early { None, Middle, Last, Elsewhere };

  /// A kernel before, one of another kind, and one after it.
  std::function<std::uint64_t(unsigned)> relayed(Early early,
                                                 std::function<void(unsigned, bool)> middle) {
    return [=](unsigned round) {
      launch(false, stream_, grid_of(round), block_threads,
             early == Early::Middle ? write_data<true> : write_data<false>, data_[0], sink_, round);
      middle(round, early == Early::Last);
      launch(early == Early::Last, early == Early::Elsewhere ? other_ : stream_, grid_of(round + 5),
             block_threads, read_data<false>, static_cast<const unsigned*>(data_[1]), wrong_,
             round);
      return std::uint64_t{grid_of(round + 5)} * num_words;
    };
  }

  void launch_relay(Attributes attributes, unsigned grid, Relay* kernel, unsigned round) {
    launch(std::move(attributes), stream_, grid, block_threads, kernel,
           static_cast<const unsigned*>(data_[0]), data_[1], wrong_, round);
  }

  void cooperative() {
    const auto middle = [this](unsigned round, bool triggers) {
      const void* const kernel = triggers ? reinterpret_cast<const void*>(&relay_over_grid<true>)
                                          : reinterpret_cast<const void*>(&relay_over_grid<false>);
      const unsigned* in = data_[0];
      unsigned* out = data_[1];
      void* arguments[] = {&in, &out, &wrong_, &round};
      CUDA_CHECK(cudaLaunchCooperativeKernel(kernel, dim3(round % 2 == 0 ? 132 : 16),
                                             dim3(block_threads), arguments, 0, stream_));
    };
    check("cooperative_without_wait", relayed(Early::Last, middle));
    check("cooperative", relayed(Early::None, middle));
  }

  void clusters() {
    const auto middle = [this](bool early, bool fixed) {
      return [=](unsigned round, bool) {
        Attributes attributes;
        if (!fixed) attributes.push_back(cluster_attribute(1U << round % 4));
        if (early) attributes.push_back(programmatic_attribute());
        launch_relay(attributes, round % 2 == 0 ? 128 : 16,
                     fixed ? relay_cluster_of_four : relay_any_cluster, round);
      };
    };
    check("cluster_without_wait", relayed(Early::Middle, middle(true, false)));
    check("cluster", relayed(Early::None, middle(false, false)));
    check("fixed_cluster_without_wait", relayed(Early::Middle, middle(true, true)));
    check("fixed_cluster", relayed(Early::None, middle(false, true)));
  }

  void attributes() {
    int least = 0, greatest = 0;
    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    const auto middle = [=](bool early) {
      return [=](unsigned round, bool) {
        cudaLaunchAttribute attribute{};
        if (round % 2 == 0) {
          attribute.id = cudaLaunchAttributePriority;
          attribute.val.priority = round % 4 == 0 ? least : greatest;
        } else {
          attribute.id = cudaLaunchAttributeMemSyncDomain;
          attribute.val.memSyncDomain =
              round % 4 == 1 ? cudaLaunchMemSyncDomainRemote : cudaLaunchMemSyncDomainDefault;
        }
        Attributes all = {attribute};
        if (early) all.push_back(programmatic_attribute());
        launch_relay(all, grid_of(round + 2), relay<false>, round);
      };
    };
    check("attributes_without_wait", relayed(Early::Middle, middle(true)));
    check("attributes", relayed(Early::None, middle(false)));
  }

  /// A stream writes what another one reads, and the other way round: only the default stream's
  /// rules stand between.
  void streams() {
    int least = 0, greatest = 0;
    CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    cudaStream_t blocking = nullptr, important = nullptr, unimportant = nullptr;
    CUDA_CHECK(cudaStreamCreate(&blocking));
    CUDA_CHECK(cudaStreamCreateWithPriority(&important, cudaStreamDefault, greatest));
    CUDA_CHECK(cudaStreamCreateWithPriority(&unimportant, cudaStreamDefault, least));
    const auto round = [this](cudaStream_t one, cudaStream_t other, bool joined) {
      return [=](unsigned round) {
        std::uint64_t num_read = 0;
        for (unsigned i = 0; i < 2; ++i) {
          cudaStream_t const writer = i == 0 ? one : other, reader = i == 0 ? other : one;
          for (unsigned k = 0; k < round % 3; ++k)
            launch(false, writer, 1, 32, set_plain, sink_, round);
          launch(false, writer, grid_of(round), block_threads, write_data<false>, data_[i], sink_,
                 round);
          launch(false, reader, 16, block_threads, read_data<false>,
                 static_cast<const unsigned*>(data_[i]), wrong_, round);
          for (unsigned k = 0; k < round / 3 % 3; ++k)
            launch(false, reader, 1, 32, set_plain, sink_, round);
          num_read += std::uint64_t{16} * num_words;
        }
        if (!joined) CUDA_CHECK(cudaDeviceSynchronize());
        return num_read;
      };
    };
    check("streams_without_wait", round(cudaStreamLegacy, stream_, false));
    check("legacy_and_blocking", round(cudaStreamLegacy, blocking, true));
    check("legacy_and_important", round(cudaStreamLegacy, important, true));
    check("legacy_and_unimportant", round(unimportant, cudaStreamLegacy, true));
    check("legacy_and_per_thread", round(cudaStreamLegacy, cudaStreamPerThread, true));
  }

  void children() {
    for (unsigned i = 0; i < static_cast<unsigned>(Child::Count); ++i) {
      const auto child = static_cast<Child>(i);
      const auto middle = [=](unsigned round, bool) {
        launch_parent(child, stream_, data_[0], data_[1], wrong_, round);
      };
      const std::string early = std::string(child_names[i]) + "_without_wait";
      check(early.c_str(), relayed(Early::Elsewhere, middle), 100);
      check(child_names[i], relayed(Early::None, middle), 300);
    }
  }

  const std::string only_;
  const unsigned rounds_;
  cudaStream_t stream_ = nullptr, other_ = nullptr;
  std::array<unsigned*, 4> data_{};
  unsigned long long* wrong_ = nullptr;
  unsigned* sink_ = nullptr;
  unsigned long long wrong_on_host_ = 0;
};

/// The other process: for each round that comes, waits for the flag and reads.
int read_for(int in, int out) {
  cudaIpcMemHandle_t handle;
  if (read(in, &handle, sizeof handle) != sizeof handle) return 1;
  void* opened = nullptr;
  CUDA_CHECK(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess));
  const auto* const data = static_cast<const unsigned*>(opened);
  unsigned* copy = nullptr;
  CUDA_CHECK(cudaMallocHost(&copy, num_seen * sizeof(unsigned)));
  std::uint64_t wrong = 0;
  if (write(out, &wrong, sizeof wrong) != sizeof wrong) return 1;
  for (unsigned round = 0; read(in, &round, sizeof round) == sizeof round;) {
    unsigned flag = 0;
    const auto deadline = Clock::now() + std::chrono::seconds(5);
    while (flag != round) {
      CUDA_CHECK(cudaMemcpy(&flag, data + num_seen, sizeof flag, cudaMemcpyDeviceToHost));
      if (Clock::now() > deadline) give_up("the other process");
    }
    CUDA_CHECK(cudaMemcpy(copy, data, num_seen * sizeof(unsigned), cudaMemcpyDeviceToHost));
    wrong = 0;
    for (unsigned i = 0; i < num_seen; ++i) wrong += copy[i] != round;
    if (write(out, &wrong, sizeof wrong) != sizeof wrong) return 1;
  }
  CUDA_CHECK(cudaIpcCloseMemHandle(opened));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::strcmp(argv[1], "--read-for") == 0)
    return read_for(std::atoi(argv[2]), std::atoi(argv[3]));
  Hazards(option(argc, argv, "--only", std::string()),
          static_cast<unsigned>(option(argc, argv, "--rounds", 1000L)))
      .run();
  return 0;
}
