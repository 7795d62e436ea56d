// Communicators whose calls return before they have done anything.
#include <chrono>
#include <thread>

#include "rank.hpp"

namespace {

ncclConfig_t without_blocking() {
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  return config;
}

// What a call that has begun comes to.
ncclResult_t outcome(ncclComm_t comm, ncclResult_t begun) {
  EXPECT(begun == ncclInProgress || begun == ncclSuccess);
  ncclResult_t state = ncclInProgress;
  while (state == ncclInProgress) EXPECT(ncclCommGetAsyncError(comm, &state) == ncclSuccess);
  return state;
}

void finished(ncclComm_t comm, ncclResult_t begun) {
  EXPECT(outcome(comm, begun) == ncclSuccess);
}

}  // namespace

void non_blocking(Rank& rank) {
  ncclConfig_t config = without_blocking();
  const ncclResult_t begun =
      ncclCommInitRankConfig(&rank.comm, rank.ranks, rank.id, rank.rank, &config);
  finished(rank.comm, begun);
  const Buffer<float> data(1024, 1.0F);
  const auto all_reduce = [&](ncclComm_t comm) {
    return ncclAllReduce(data.data(), data.data(), 1024, ncclFloat32, ncclSum, comm, rank.stream);
  };
  finished(rank.comm, all_reduce(rank.comm));
  rank.wait();
  EXPECT(data.read()[1] == static_cast<float>(rank.ranks));

  // A split takes over that it does not block, and a group of both is one.
  ncclComm_t twin = nullptr;
  const ncclResult_t splitting = ncclCommSplit(rank.comm, 0, rank.rank, &twin, nullptr);
  EXPECT(splitting == ncclSuccess);
  finished(rank.comm, ncclInProgress);
  finished(twin, ncclInProgress);
  EXPECT(ncclGroupStart() == ncclSuccess);
  EXPECT(all_reduce(rank.comm) == ncclSuccess);
  EXPECT(all_reduce(twin) == ncclSuccess);
  const ncclResult_t ended = ncclGroupEnd();
  finished(rank.comm, ended);
  finished(twin, ended);
  rank.wait();
  EXPECT(data.read()[1] == static_cast<float>(rank.ranks * rank.ranks * rank.ranks));
  finished(twin, ncclCommFinalize(twin));
  EXPECT(ncclCommDestroy(twin) == ncclSuccess);
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
}

// The last rank never comes.
void abort_of_creation(Rank& rank) {
  if (rank.rank == rank.ranks - 1) return;
  ncclConfig_t config = without_blocking();
  EXPECT(ncclCommInitRankConfig(&rank.comm, rank.ranks, rank.id, rank.rank, &config) ==
         ncclInProgress);
  const Buffer<float> data(1, 1.0F);
  EXPECT(ncclAllReduce(data.data(), data.data(), 1, ncclFloat32, ncclSum, rank.comm, rank.stream) ==
         ncclInvalidUsage);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ncclResult_t state = ncclSuccess;
  EXPECT(ncclCommGetAsyncError(rank.comm, &state) == ncclSuccess && state == ncclInProgress);
  EXPECT(ncclCommAbort(rank.comm) == ncclSuccess);
}

// The last rank never splits: whether that blocks is the parent's matter, and the child has no
// handle by which it could be aborted.
void abort_of_split(Rank& rank) {
  ncclConfig_t config = without_blocking();
  const ncclResult_t begun =
      ncclCommInitRankConfig(&rank.comm, rank.ranks, rank.id, rank.rank, &config);
  finished(rank.comm, begun);
  if (rank.rank < rank.ranks - 1) {
    ncclComm_t child = nullptr;
    EXPECT(ncclCommSplit(rank.comm, 0, rank.rank, &child, nullptr) == ncclSuccess);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ncclResult_t state = ncclSuccess;
    EXPECT(ncclCommGetAsyncError(rank.comm, &state) == ncclSuccess && state == ncclInProgress);
    EXPECT(child == nullptr);
  }
  EXPECT(ncclCommAbort(rank.comm) == ncclSuccess);
}
