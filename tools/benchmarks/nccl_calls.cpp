// A program that calls NCCL and waits, as a benchmark of NCCL does: an all_reduce of each size so
// many times in a row, in place and out of place. It knows nothing of contextune.
//   nccl_calls MEET CALLS MOST_BYTES
// Ranks meet at the path MEET. Rank 0 prints a line for each size: its bytes, the median
// microseconds that the host spends in a call, and those of a call with the wait for the last one.
#include <cuda.h>
#include <nccl.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "rank_meeting.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int warm_ups = 5;

double microseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::micro>(to - from).count();
}

void check(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "nccl_calls: %s failed\n", what);
  std::exit(1);
}
void check(CUresult result, const char* what) {
  check(result == CUDA_SUCCESS, what);
}
void check(ncclResult_t result, const char* what) {
  check(result == ncclSuccess, what);
}

struct Spent {
  double call = 0;   ///< us, the median
  double whole = 0;  ///< us of a call, with the wait
};

/// Rank r holds r + 1: out of place all get the sum, in place the largest, which then stays.
class Ranks {
 public:
  Ranks(const Place& place, const char* meet, std::size_t most_bytes) : place_(place) {
    check(cuInit(0), "cuInit");
    int devices = 0;
    check(cuDeviceGetCount(&devices), "cuDeviceGetCount");
    CUdevice device = 0;
    check(cuDeviceGet(&device, place.on_this_host % std::max(1, devices)), "cuDeviceGet");
    CUcontext context = nullptr;
    check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
    ncclUniqueId id{};
    if (place.rank == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    share_id(place, meet, id);
    check(ncclCommInitRank(&communicator_, place.ranks, id, place.rank), "ncclCommInitRank");
    check(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    check(cuMemAlloc(&from_, most_bytes), "cuMemAlloc");
    check(cuMemAlloc(&to_, most_bytes), "cuMemAlloc");
  }

  [[nodiscard]] Spent run(std::size_t bytes, bool in_place, int calls) {
    const std::size_t count = bytes / sizeof(float);
    const auto own = std::bit_cast<unsigned>(static_cast<float>(place_.rank + 1));
    check(cuMemsetD32Async(from_, own, count, stream_), "a fill");
    const CUdeviceptr to = in_place ? from_ : to_;
    const auto call = [&] {
      check(ncclAllReduce(reinterpret_cast<void*>(from_), reinterpret_cast<void*>(to), count,
                          ncclFloat, in_place ? ncclMax : ncclSum, communicator_, stream_),
            "ncclAllReduce");
    };
    for (int i = 0; i < warm_ups; ++i) call();
    check(cuStreamSynchronize(stream_), "cuStreamSynchronize");
    std::vector<double> took;
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < calls; ++i) {
      const Clock::time_point before = Clock::now();
      call();
      took.push_back(microseconds(before, Clock::now()));
    }
    check(cuStreamSynchronize(stream_), "cuStreamSynchronize");
    const double whole = microseconds(begin, Clock::now()) / calls;
    std::vector<float> values(count);
    check(cuMemcpyDtoH(values.data(), to, bytes), "cuMemcpyDtoH");
    const int sum = place_.ranks * (place_.ranks + 1) / 2;
    const auto wanted = static_cast<float>(in_place ? place_.ranks : sum);
    check(std::ranges::all_of(values, [&](float value) { return value == wanted; }), "a result");
    std::ranges::nth_element(took, took.begin() + calls / 2);
    return {took[static_cast<std::size_t>(calls) / 2], whole};
  }

  void end() { check(ncclCommDestroy(communicator_), "ncclCommDestroy"); }

 private:
  const Place place_;
  ncclComm_t communicator_ = nullptr;
  CUstream stream_ = nullptr;
  CUdeviceptr from_ = 0;
  CUdeviceptr to_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const int calls = argc == 4 ? std::atoi(argv[2]) : 0;
  const auto most = static_cast<std::size_t>(argc == 4 ? std::atoll(argv[3]) : 0);
  constexpr std::size_t least = 4096;
  if (calls < 1 || most < least) {
    std::fprintf(stderr, "usage: nccl_calls MEET CALLS MOST_BYTES (at least %zu)\n", least);
    return 2;
  }
  const Place place = place_of_this_process();
  Ranks ranks(place, argv[1], most);
  for (std::size_t bytes = least; bytes <= most; bytes *= 4) {
    const Spent out = ranks.run(bytes, false, calls);
    const Spent in = ranks.run(bytes, true, calls);
    if (place.rank == 0)
      std::printf("%zu %.3f %.3f\n", bytes, (out.call + in.call) / 2, (out.whole + in.whole) / 2);
  }
  ranks.end();
  return 0;
}
