// One rank of a test: rank_program SCENARIO RANK RANKS ID.
#include <dlfcn.h>
#include <simcuda/simcuda.h>

#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include "rank.hpp"

namespace {

constexpr std::size_t large = 1 << 18;

void all_reduce(const Rank& rank, const Buffer<float>& data, std::size_t elements = large) {
  EXPECT(ncclAllReduce(data.data(), data.data(), elements, ncclFloat32, ncclSum, rank.comm,
                       rank.stream) == ncclSuccess);
}

void names(Rank& rank) {
  rank.join();
  void* const library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
  for (const char* const name : {"ncclAllReduce", "ncclCommInitRankConfig", "ncclGroupEnd"})
    EXPECT(dlsym(library, name) == dlsym(library, (std::string("p") + name).c_str()));
  int version = 0, number = 0;
  EXPECT(ncclGetVersion(&version) == ncclSuccess && version == 22809);
  EXPECT(ncclCommCount(rank.comm, &number) == ncclSuccess && number == rank.ranks);
  EXPECT(ncclCommUserRank(rank.comm, &number) == ncclSuccess && number == rank.rank);
  EXPECT(ncclCommCuDevice(rank.comm, &number) == ncclSuccess && number == 0);
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
}

void one_of_each(Rank& rank) {
  rank.join();
  const Buffer<float> data(4096 * 4);
  all_reduce(rank, data, 4096);
  EXPECT(ncclAllGather(data.data(), data.data(), 1024, ncclFloat32, rank.comm, rank.stream) ==
         ncclSuccess);
  EXPECT(ncclReduceScatter(data.data(), data.data(), 1024, ncclFloat32, ncclSum, rank.comm,
                           rank.stream) == ncclSuccess);
  EXPECT(ncclBroadcast(data.data(), data.data(), 1024, ncclFloat32, 0, rank.comm, rank.stream) ==
         ncclSuccess);
  EXPECT(ncclGroupStart() == ncclSuccess);
  EXPECT(ncclSend(data.data(), 16, ncclFloat32, rank.rank, rank.comm, rank.stream) == ncclSuccess);
  EXPECT(ncclRecv(data.data() + 16, 16, ncclFloat32, rank.rank, rank.comm, rank.stream) ==
         ncclSuccess);
  EXPECT(ncclGroupEnd() == ncclSuccess);
  rank.wait();
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
}

// Three of one size, one that is much smaller, one of another kind.
void group(Rank& rank) {
  rank.join();
  const Buffer<float> data(1 << 16);
  EXPECT(ncclGroupStart() == ncclSuccess);
  all_reduce(rank, data, 64);
  for (const std::size_t elements : {std::size_t{4096}, std::size_t{8192}, std::size_t{4096}})
    all_reduce(rank, data, elements);
  EXPECT(ncclAllGather(data.data(), data.data(), 1024, ncclFloat32, rank.comm, rank.stream) ==
         ncclSuccess);
  EXPECT(ncclGroupEnd() == ncclSuccess);
  rank.wait();
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
}

// A group that is only asked about, then one that is done.
void simulated_group(Rank& rank) {
  rank.join();
  const Buffer<float> data(large, 1.0F);
  ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  EXPECT(ncclGroupStart() == ncclSuccess);
  all_reduce(rank, data);
  EXPECT(ncclGroupSimulateEnd(&info) == ncclSuccess);
  EXPECT(info.estimatedTime > 0);
  rank.wait();
  EXPECT(data.read()[0] == 1.0F);
  std::printf("simulated\n");
  all_reduce(rank, data);
  rank.wait();
  EXPECT(data.read()[0] == static_cast<float>(rank.ranks));
  ncclSimInfo_t wrong{};
  EXPECT(ncclGroupStart() == ncclSuccess);
  EXPECT(ncclGroupSimulateEnd(&wrong) == ncclInvalidArgument);
  EXPECT(ncclGroupEnd() == ncclSuccess);
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
}

// One communicator after another, then two at the same time. All of one rank.
void plugin_life(Rank&) {
  const auto make = [] {
    Rank rank;
    EXPECT(ncclGetUniqueId(&rank.id) == ncclSuccess);
    rank.join();
    return rank.comm;
  };
  EXPECT(ncclCommDestroy(make()) == ncclSuccess);
  std::printf("second\n");
  ncclComm_t first = make(), other = make();
  EXPECT(ncclCommDestroy(first) == ncclSuccess);
  EXPECT(ncclCommDestroy(other) == ncclSuccess);
  std::printf("end\n");
}

// Even and odd ranks, in the opposite order; the last rank stays alone.
void split(Rank& rank) {
  rank.join();
  const bool alone = rank.rank == rank.ranks - 1;
  ncclComm_t half = nullptr;
  EXPECT(ncclCommSplit(rank.comm, alone ? NCCL_SPLIT_NOCOLOR : rank.rank % 2, -rank.rank, &half,
                       nullptr) == ncclSuccess);
  EXPECT((half == nullptr) == alone);
  if (!alone) {
    int size = 0, place = -1;
    EXPECT(ncclCommCount(half, &size) == ncclSuccess);
    EXPECT(ncclCommUserRank(half, &place) == ncclSuccess);
    EXPECT(place == size - 1 - rank.rank / 2);
    const Buffer<float> data(8, static_cast<float>(rank.rank));
    EXPECT(ncclAllReduce(data.data(), data.data(), 8, ncclFloat32, ncclSum, half, rank.stream) ==
           ncclSuccess);
    rank.wait();
    EXPECT(data.read()[0] == (rank.rank % 2 == 0 ? 2.0F : 4.0F));
    EXPECT(ncclCommDestroy(half) == ncclSuccess);
  }
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
}

void one_all_reduce(Rank& rank) {
  rank.join();
  const Buffer<float> data(large, 1.0F);
  all_reduce(rank, data);
  rank.wait();
  std::printf("sum %.9g\n", static_cast<double>(data.read()[0]));
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
}

// More than there are places for, of a size whose memory is given back each time.
void many(Rank& rank) {
  rank.join();
  const Buffer<float> data(4 * large, 1.0F), sum(4 * large);
  for (int i = 0; i < 20; ++i) {
    EXPECT(ncclAllReduce(data.data(), sum.data(), 4 * large, ncclFloat32, ncclSum, rank.comm,
                         rank.stream) == ncclSuccess);
    if (i % 7 == rank.rank) rank.wait();
  }
  rank.wait();
  EXPECT(sum.read() == std::vector<float>(4 * large, static_cast<float>(rank.ranks)));
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
}

// The device hangs, not the host: queries go on, and an abort ends it.
void abort_of_hang(Rank& rank) {
  rank.join();
  const Buffer<float> data(large, 1.0F);
  // All are connected: the ranks part on the device only.
  all_reduce(rank, data);
  rank.wait();
  setenv("TEST_TUNER", rank.rank == 0 ? "1 0 2" : "1 0 4", 1);
  all_reduce(rank, data);
  for (int i = 0; i < 1000; ++i) EXPECT(cuStreamQuery(rank.stream) == CUDA_ERROR_NOT_READY);
  ncclResult_t error = ncclInternalError;
  EXPECT(ncclCommGetAsyncError(rank.comm, &error) == ncclSuccess && error == ncclSuccess);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT(ncclCommAbort(rank.comm) == ncclSuccess);
  });
  rank.wait();
  other.join();
}

// The host hangs where ranks connect different algorithms, and an abort ends that too.
void abort_of_connection(Rank& rank) {
  rank.join();
  const Buffer<float> data(large, 1.0F);
  setenv("TEST_TUNER", rank.rank == 0 ? "1 0 2" : "0 0 2", 1);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT(ncclCommAbort(rank.comm) == ncclSuccess);
  });
  EXPECT(ncclAllReduce(data.data(), data.data(), large, ncclFloat32, ncclSum, rank.comm,
                       rank.stream) == ncclInternalError);
  other.join();
}

double elapsed_all_reduce(const Rank& rank, const Buffer<float>& data) {
  CUevent before = nullptr, after = nullptr;
  EXPECT(cuEventCreate(&before, 0) == CUDA_SUCCESS && cuEventCreate(&after, 0) == CUDA_SUCCESS);
  EXPECT(cuEventRecord(before, rank.stream) == CUDA_SUCCESS);
  all_reduce(rank, data);
  EXPECT(cuEventRecord(after, rank.stream) == CUDA_SUCCESS);
  EXPECT(cuEventSynchronize(after) == CUDA_SUCCESS);
  float milliseconds = 0;
  EXPECT(cuEventElapsedTime(&milliseconds, before, after) == CUDA_SUCCESS);
  return static_cast<double>(milliseconds) * 1e3;
}

// Rank 0 comes 100 us after the others, who wait for it on the device.
void times(Rank& rank) {
  rank.join();
  const Buffer<float> data(large);
  all_reduce(rank, data);
  rank.wait();
  std::printf("together %.3f\n", elapsed_all_reduce(rank, data));
  if (rank.rank == 0) simcuda_host_work(100e-6);
  std::printf("apart %.3f\n", elapsed_all_reduce(rank, data));
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
}

void memory(Rank& rank) {
  rank.join();
  const Buffer<float> data(large);
  std::size_t before = 0, after = 0, all = 0;
  EXPECT(cuMemGetInfo(&before, &all) == CUDA_SUCCESS);
  all_reduce(rank, data);
  EXPECT(cuMemGetInfo(&after, &all) == CUDA_SUCCESS);
  std::printf("connection %zu\n", before - after);
  rank.wait();
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
  EXPECT(cuMemGetInfo(&after, &all) == CUDA_SUCCESS && after == before);
}

void refused_creation(Rank& rank) {
  EXPECT(ncclCommInitRank(&rank.comm, rank.ranks, rank.id, rank.rank) == ncclInternalError);
  EXPECT(rank.comm == nullptr);
}

struct Named {
  const char* name;
  Scenario run;
};

constexpr Named scenarios[] = {{"results", &all_results},
                               {"reductions", &reductions_of_all_kinds},
                               {"alone", &alone},
                               {"captured", &captured},
                               {"captured_kernel", &captured_kernel},
                               {"simulated_group", &simulated_group},
                               {"plugin_life", &plugin_life},
                               {"random_course", &random_course},
                               {"names", &names},
                               {"one_of_each", &one_of_each},
                               {"group", &group},
                               {"split", &split},
                               {"one_all_reduce", &one_all_reduce},
                               {"many", &many},
                               {"abort_of_hang", &abort_of_hang},
                               {"abort_of_connection", &abort_of_connection},
                               {"times", &times},
                               {"memory", &memory},
                               {"non_blocking", &non_blocking},
                               {"abort_of_creation", &abort_of_creation},
                               {"abort_of_split", &abort_of_split},
                               {"refused_creation", &refused_creation}};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  Rank rank;
  rank.rank = std::atoi(argv[2]);
  rank.ranks = std::atoi(argv[3]);
  for (std::size_t i = 0; i < sizeof rank.id.internal; ++i)
    rank.id.internal[i] =
        static_cast<char>(std::strtol(std::string(argv[4] + 2 * i, 2).c_str(), nullptr, 16));
  EXPECT(cuInit(0) == CUDA_SUCCESS);
  EXPECT(cuDevicePrimaryCtxRetain(&rank.context, 0) == CUDA_SUCCESS);
  EXPECT(cuCtxSetCurrent(rank.context) == CUDA_SUCCESS);
  EXPECT(cuStreamCreate(&rank.stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  for (const Named& one : scenarios)
    if (std::strcmp(one.name, argv[1]) == 0) {
      one.run(rank);
      return 0;
    }
  return 2;
}
