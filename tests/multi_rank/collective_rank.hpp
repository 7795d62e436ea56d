#pragma once

#include <cuda.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "rank_meeting.hpp"
#include "simulated_program.hpp"

inline constexpr std::size_t most_elements = 4096;

class Buffer {
 public:
  explicit Buffer(std::size_t elements = most_elements) {
    CHECK(cuMemAlloc(&memory_, elements * sizeof(std::uint32_t)));
  }
  [[nodiscard]] CUdeviceptr at() const { return memory_; }
  [[nodiscard]] void* pointer() const { return reinterpret_cast<void*>(memory_); }

 private:
  CUdeviceptr memory_ = 0;
};

/// One rank: what it sends, what it gets, and the hash of that.
struct Rank {
  Place place;
  ncclComm_t world = nullptr;
  CUstream stream = nullptr;
  Buffer sent, got;
  std::uint64_t hash = 14695981039346656037ULL;

  explicit Rank(Place where) : place(where) {
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  }

  void fill(int step) const {
    const auto value = static_cast<unsigned>(1 + step * place.ranks + place.rank);
    CHECK(cuMemsetD32Async(sent.at(), value, most_elements, stream));
  }
  /// Of one communicator, `count` elements of each rank; the sum is what was got.
  void sum(ncclComm_t comm, std::size_t count, ncclDataType_t type = ncclUint32) const {
    CHECK(ncclAllReduce(sent.pointer(), got.pointer(), count, type, ncclSum, comm, stream));
  }
  void add(const void* data, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i)
      hash = (hash ^ static_cast<const unsigned char*>(data)[i]) * 1099511628211ULL;
  }
  void look() {
    std::array<std::uint32_t, 64> values{};
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemcpyDtoH(values.data(), got.at(), sizeof values));
    add(values.data(), sizeof values);
  }
};

inline constexpr std::size_t usual = 1024;

class Step {
 public:
  Step() { nvtxRangePushA("step"); }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  ~Step() { nvtxRangePop(); }
};

template <typename Body>
void in_steps(Rank& rank, int steps, Body body) {
  for (int number = 0; number < steps; ++number) {
    rank.fill(number);
    const Step step;
    body(number);
    rank.look();
  }
}

inline ncclComm_t split(const Rank& rank, int color) {
  ncclComm_t part = nullptr;
  CHECK(ncclCommSplit(rank.world, color, rank.place.rank, &part, nullptr));
  return part;
}

inline void use_device(int number) {
  CUdevice device = 0;
  CUcontext context = nullptr;
  int count = 0;
  CHECK(cuDeviceGetCount(&count));
  CHECK(cuDeviceGet(&device, number % count));
  CHECK(cuDevicePrimaryCtxRetain(&context, device));
  CHECK(cuCtxSetCurrent(context));
}

using Shapes = std::map<std::string, void (*)(Rank&, int)>;

/// The program SHAPE STEPS PATH: each rank does what the shape says, and prints the hash of it.
inline int run_shape(int argc, char** argv, const Shapes& shapes) {
  const auto shape = shapes.find(argc == 4 ? argv[1] : "");
  if (shape == shapes.end()) {
    std::fprintf(stderr, "usage: %s SHAPE STEPS PATH\n", argv[0]);
    return 2;
  }
  const int steps = std::atoi(argv[2]);
  const Place place = place_of_this_process();
  CHECK(cuInit(0));
  use_device(place.on_this_host);
  Rank rank(place);
  ncclUniqueId id{};
  if (place.rank == 0) CHECK(ncclGetUniqueId(&id));
  share_id(place, argv[3], id);
  CHECK(ncclCommInitRank(&rank.world, place.ranks, id, place.rank));
  shape->second(rank, steps);
  CHECK(ncclCommDestroy(rank.world));
  std::printf("rank %d: %s, %d steps, %016llx\n", place.rank, argv[1], steps,
              static_cast<unsigned long long>(rank.hash));
  return 0;
}
