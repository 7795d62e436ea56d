// Ranks whose region is replayed while something else goes on in them: lockstep_shapes SHAPE STEPS
// MEETING prints what came of it, the same with contextune and without.
#include <dlfcn.h>
#include <nccl.h>
#include <nvtx3/nvToolsExt.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "collective_rank.hpp"

namespace {

// The replay of the first visit is under way by then, and not yet over.
constexpr auto in_the_midst = std::chrono::milliseconds(500);

void nap(std::chrono::milliseconds time) {
  std::this_thread::sleep_for(time);
}

/// Beside the steps, each of eight sums, on another thread.
template <class Function>
void with_thread(Rank& rank, int steps, Function&& function) {
  CUcontext context = nullptr;
  CHECK(cuCtxGetCurrent(&context));
  std::thread other([&] {
    CHECK(cuCtxSetCurrent(context));
    nap(in_the_midst);
    function();
  });
  in_steps(rank, steps, [&](int) {
    for (int i = 0; i < 8; ++i) rank.sum(rank.world, usual);
  });
  other.join();
}

/// It sums in place with a communicator of its own.
void sums_beside(Rank& rank, int steps) {
  ncclComm_t own = split(rank, 0);
  Buffer x(1024);
  CUstream stream = nullptr;
  CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CHECK(cuMemsetD32(x.at(), 1, 1024));
  const auto sum = [&] {
    CHECK(ncclAllReduce(x.pointer(), x.pointer(), 1024, ncclUint32, ncclSum, own, stream));
  };
  sum();  // connects
  CHECK(cuStreamSynchronize(stream));
  with_thread(rank, steps, [&] {
    for (int i = 0; i < 12; ++i) {
      sum();
      nap(std::chrono::milliseconds(20));
    }
  });
  CHECK(cuStreamSynchronize(stream));
  std::uint32_t value = 0;
  CHECK(cuMemcpyDtoH(&value, x.at(), sizeof value));
  rank.add(&value, sizeof value);
  CHECK(ncclCommDestroy(own));
}

/// It gives back memory that NCCL gave it.
void frees_beside(Rank& rank, int steps) {
  void* memory = nullptr;
  CHECK(ncclMemAlloc(&memory, 1 << 22));
  CHECK(cuMemsetD32(reinterpret_cast<CUdeviceptr>(memory), 7, 1 << 20));
  with_thread(rank, steps, [&] { CHECK(ncclMemFree(memory)); });
}

/// It loads a library that takes memory while the loader initialises it.
void loads_beside(Rank& rank, int steps) {
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0) std::exit(2);
  const std::string library = std::string(self) + "_library.so";
  with_thread(rank, steps, [&] {
    if (dlopen(library.c_str(), RTLD_NOW) == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::exit(2);
    }
  });
}

/// The region works in memory that NCCL gave, and on nothing else.
void works_in_memory_of_nccl(Rank& rank, int steps) {
  void* a = nullptr;
  void* b = nullptr;
  CHECK(ncclMemAlloc(&a, 4096 * 4));
  CHECK(ncclMemAlloc(&b, 4096 * 4));
  CHECK(cuMemsetD32(reinterpret_cast<CUdeviceptr>(b), 3, 4096));
  in_steps(rank, steps, [&](int) {
    CHECK(
        cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(a), rank.sent.at(), 4096 * 4, rank.stream));
    CHECK(ncclAllReduce(a, a, usual, ncclUint32, ncclSum, rank.world, rank.stream));
    CHECK(ncclAllReduce(a, b, usual, ncclUint32, ncclSum, rank.world, rank.stream));
    CHECK(
        cuMemcpyDtoDAsync(rank.got.at(), reinterpret_cast<CUdeviceptr>(b), 4096 * 4, rank.stream));
  });
}

/// The region reduces by an operator that one rank destroys in it, and the others after it.
void own_operator(Rank& rank, int steps) {
  in_steps(rank, steps, [&](int) {
    ncclRedOp_t op = ncclSum;
    std::uint32_t two = 2;
    CHECK(ncclRedOpCreatePreMulSum(&op, &two, ncclUint32, ncclScalarHostImmediate, rank.world));
    CHECK(ncclAllReduce(rank.sent.pointer(), rank.got.pointer(), usual, ncclUint32, op, rank.world,
                        rank.stream));
    if (rank.place.rank != 0) {
      nvtxRangePop();
      nvtxRangePushA("other");
    }
    CHECK(ncclRedOpDestroy(op, rank.world));
  });
}

/// Four regions that no other rank has.
void regions_of_its_own(Rank& rank, int steps) {
  for (int i = 0; i < steps; ++i) {
    rank.fill(i);
    for (int region = 0; region < 4; ++region) {
      nvtxRangePushA(("own" + std::to_string(rank.place.rank * 4 + region)).c_str());
      CHECK(cuMemcpyDtoDAsync(rank.got.at(), rank.sent.at(), 64, rank.stream));
      nvtxRangePop();
    }
    rank.sum(rank.world, usual);
    rank.look();
  }
}

/// Visits in which nothing is done, which one rank comes to late.
void empty_visits(Rank& rank, int steps) {
  rank.fill(0);
  rank.sum(rank.world, usual);
  rank.look();
  for (int i = 0; i < steps; ++i) {
    if (rank.place.rank == 1) nap(std::chrono::milliseconds(300));
    const Step step;
  }
}

const Shapes shapes = {
    {"sums_beside", &sums_beside},   {"frees_beside", &frees_beside},
    {"loads_beside", &loads_beside}, {"works_in_memory_of_nccl", &works_in_memory_of_nccl},
    {"own_operator", &own_operator}, {"regions_of_its_own", &regions_of_its_own},
    {"empty_visits", &empty_visits},
};

}  // namespace

int main(int argc, char** argv) {
  return run_shape(argc, argv, shapes);
}
