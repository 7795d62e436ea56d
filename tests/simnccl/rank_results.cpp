// Every operation with values that tell ranks and places apart.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "rank.hpp"

namespace {

constexpr std::size_t count = 1000;

// What rank r has at place i; small, so that every order of additions gives the same.
template <class T>
T value(int rank, std::size_t i) {
  return static_cast<T>(static_cast<std::size_t>(rank + 1) + i % 7);
}

template <class T>
std::vector<T> values(int rank, std::size_t n) {
  std::vector<T> all(n);
  for (std::size_t i = 0; i < n; ++i) all[i] = value<T>(rank, i);
  return all;
}

template <class T>
T sum(int ranks, std::size_t i) {
  T total = 0;
  for (int r = 0; r < ranks; ++r) total += value<T>(r, i);
  return total;
}

template <class T>
void reductions(const Rank& rank, ncclDataType_t type) {
  const auto n = static_cast<std::size_t>(rank.ranks);
  Buffer<T> from(n * count), to(n * count);
  from.write(values<T>(rank.rank, n * count));

  EXPECT(ncclAllReduce(from.data(), to.data(), count, type, ncclSum, rank.comm, rank.stream) ==
         ncclSuccess);
  rank.wait();
  auto result = to.read();
  for (std::size_t i = 0; i < count; ++i) EXPECT(result[i] == sum<T>(rank.ranks, i));
  EXPECT(result[count] == T{});

  EXPECT(ncclAllReduce(from.data(), to.data(), count, type, ncclMax, rank.comm, rank.stream) ==
         ncclSuccess);
  rank.wait();
  EXPECT(to.read()[3] == value<T>(rank.ranks - 1, 3));

  EXPECT(ncclReduceScatter(from.data(), to.data(), count, type, ncclSum, rank.comm, rank.stream) ==
         ncclSuccess);
  rank.wait();
  result = to.read();
  const std::size_t mine = static_cast<std::size_t>(rank.rank) * count;
  for (std::size_t i = 0; i < count; ++i) EXPECT(result[i] == sum<T>(rank.ranks, mine + i));

  // In place, and only at the root.
  EXPECT(ncclReduce(from.data(), from.data(), count, type, ncclSum, 1, rank.comm, rank.stream) ==
         ncclSuccess);
  rank.wait();
  result = from.read();
  for (std::size_t i = 0; i < count; ++i)
    EXPECT(result[i] == (rank.rank == 1 ? sum<T>(rank.ranks, i) : value<T>(rank.rank, i)));
}

// What ncclAlltoAll does, which nccl.h has from 2.28 on, and the same as messages of one group.
void every_one_to_every_other(const Rank& rank, const Buffer<int>& from, const Buffer<int>& to) {
  const auto check = [&] {
    rank.wait();
    const auto result = to.read();
    for (std::size_t i = 0; i < result.size(); ++i)
      EXPECT(result[i] == value<int>(static_cast<int>(i / count),
                                     static_cast<std::size_t>(rank.rank) * count + i % count));
    EXPECT(cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(to.data()), 0, result.size() * sizeof(int),
                           rank.stream) == CUDA_SUCCESS);
  };
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 3)
  EXPECT(ncclAlltoAll(from.data(), to.data(), count, ncclInt32, rank.comm, rank.stream) ==
         ncclSuccess);
  check();
#endif
  EXPECT(ncclGroupStart() == ncclSuccess);
  for (int peer = 0; peer < rank.ranks; ++peer) {
    const std::size_t place = static_cast<std::size_t>(peer) * count;
    EXPECT(ncclSend(from.data() + place, count, ncclInt32, peer, rank.comm, rank.stream) ==
           ncclSuccess);
    EXPECT(ncclRecv(to.data() + place, count, ncclInt32, peer, rank.comm, rank.stream) ==
           ncclSuccess);
  }
  EXPECT(ncclGroupEnd() == ncclSuccess);
  check();

  // Each pair another number of elements, and a collective in the same group.
  const Buffer<int> sum(1, 1);
  EXPECT(ncclGroupStart() == ncclSuccess);
  EXPECT(ncclAllReduce(sum.data(), sum.data(), 1, ncclInt32, ncclSum, rank.comm, rank.stream) ==
         ncclSuccess);
  for (int peer = 0; peer < rank.ranks; ++peer) {
    const std::size_t place = static_cast<std::size_t>(peer) * count;
    const auto some = static_cast<std::size_t>(1 + peer + rank.rank);
    EXPECT(ncclSend(from.data() + place, some, ncclInt32, peer, rank.comm, rank.stream) ==
           ncclSuccess);
    EXPECT(ncclRecv(to.data() + place, some, ncclInt32, peer, rank.comm, rank.stream) ==
           ncclSuccess);
  }
  EXPECT(ncclGroupEnd() == ncclSuccess);
  rank.wait();
  EXPECT(sum.read()[0] == rank.ranks);
  const auto result = to.read();
  for (int peer = 0; peer < rank.ranks; ++peer) {
    const std::size_t place = static_cast<std::size_t>(peer) * count;
    const auto last = static_cast<std::size_t>(peer + rank.rank);
    EXPECT(result[place + last] ==
           value<int>(peer, static_cast<std::size_t>(rank.rank) * count + last));
    EXPECT(result[place + last + 1] == 0);
  }
}

void movements(const Rank& rank) {
  const auto n = static_cast<std::size_t>(rank.ranks);
  Buffer<int> from(n * count), to(n * count);
  from.write(values<int>(rank.rank, n * count));

  EXPECT(ncclAllGather(from.data(), to.data(), count, ncclInt32, rank.comm, rank.stream) ==
         ncclSuccess);
  rank.wait();
  auto result = to.read();
  for (std::size_t i = 0; i < n * count; ++i)
    EXPECT(result[i] == value<int>(static_cast<int>(i / count), i % count));

  EXPECT(ncclBroadcast(from.data(), to.data(), count, ncclInt32, 1, rank.comm, rank.stream) ==
         ncclSuccess);
  rank.wait();
  EXPECT(to.read()[5] == value<int>(1, 5));

  every_one_to_every_other(rank, from, to);
  // Round a ring, in a group.
  EXPECT(ncclGroupStart() == ncclSuccess);
  EXPECT(ncclSend(from.data(), count, ncclInt32, (rank.rank + 1) % rank.ranks, rank.comm,
                  rank.stream) == ncclSuccess);
  EXPECT(ncclRecv(to.data(), count, ncclInt32, (rank.rank + rank.ranks - 1) % rank.ranks, rank.comm,
                  rank.stream) == ncclSuccess);
  EXPECT(ncclGroupEnd() == ncclSuccess);
  rank.wait();
  EXPECT(to.read()[9] == value<int>((rank.rank + rank.ranks - 1) % rank.ranks, 9));
}

// Each result is the next one's input, with nothing to wait for between them.
void in_stream_order(const Rank& rank) {
  Buffer<double> data(count, 1.0);
  for (int i = 0; i < 20; ++i)
    EXPECT(ncclAllReduce(data.data(), data.data(), count, ncclDouble, ncclSum, rank.comm,
                         rank.stream) == ncclSuccess);
  Buffer<double> copy(count);
  EXPECT(cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(copy.data()),
                           reinterpret_cast<CUdeviceptr>(data.data()), count * sizeof(double),
                           rank.stream) == CUDA_SUCCESS);
  rank.wait();
  double expected = 1;
  for (int i = 0; i < 20; ++i) expected *= rank.ranks;
  EXPECT(copy.read()[count - 1] == expected);
}

}  // namespace

void all_results(Rank& rank) {
  rank.join();
  reductions<float>(rank, ncclFloat32);
  reductions<double>(rank, ncclFloat64);
  reductions<int>(rank, ncclInt32);
  reductions<long>(rank, ncclInt64);
  reductions<__half>(rank, ncclFloat16);
  reductions<__nv_bfloat16>(rank, ncclBfloat16);
  movements(rank);
  in_stream_order(rank);
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
}
