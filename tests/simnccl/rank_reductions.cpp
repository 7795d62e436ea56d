// Reduction operations that are no plain sums.
#include <cuda_fp16.h>

#include "rank.hpp"

namespace {

template <class T>
T reduced(const Rank& rank, T mine, ncclDataType_t type, ncclRedOp_t op) {
  const Buffer<T> data(3, mine);
  EXPECT(ncclAllReduce(data.data(), data.data(), 3, type, op, rank.comm, rank.stream) ==
         ncclSuccess);
  rank.wait();
  return data.read()[2];
}

void averages(const Rank& rank) {
  // 1, 2, 3, 4: integers are divided at the end, and downwards.
  EXPECT(reduced(rank, rank.rank + 1, ncclInt32, ncclAvg) == 2);
  EXPECT(reduced(rank, static_cast<float>(rank.rank + 1), ncclFloat32, ncclAvg) == 2.5F);
  // The sum alone is more than a half can be.
  EXPECT(__half2float(reduced(rank, __float2half(40000.0F), ncclFloat16, ncclAvg)) == 40000.0F);
}

// Every addition is rounded: 2048 + 1 is no half, whatever follows.
void rounding(const Rank& rank) {
  const __half mine = __float2half(rank.rank == 0 ? 2048.0F : 1.0F);
  const Buffer<__half> data(4, mine);
  EXPECT(ncclReduce(data.data(), data.data(), 4, ncclFloat16, ncclSum, 3, rank.comm, rank.stream) ==
         ncclSuccess);
  rank.wait();
  if (rank.rank == 3) EXPECT(__half2float(data.read()[0]) == 2048.0F);
}

}  // namespace

void reductions_of_all_kinds(Rank& rank) {
  rank.join();
  EXPECT(rank.ranks == 4);
  averages(rank);
  rounding(rank);

  // Each rank has a factor of its own, now or where the device finds it later.
  double factor = rank.rank + 1;
  ncclRedOp_t weighted{}, from_device{};
  EXPECT(ncclRedOpCreatePreMulSum(&weighted, &factor, ncclFloat64, ncclScalarHostImmediate,
                                  rank.comm) == ncclSuccess);
  factor = 0;
  EXPECT(weighted >= ncclNumOps);
  EXPECT(reduced(rank, 2.0, ncclFloat64, weighted) == 20.0);
  const Buffer<double> place(1);
  EXPECT(ncclRedOpCreatePreMulSum(&from_device, place.data(), ncclFloat64, ncclScalarDevice,
                                  rank.comm) == ncclSuccess);
  EXPECT(from_device != weighted);
  EXPECT(cuMemsetD32Async(reinterpret_cast<CUdeviceptr>(place.data()) + 4, 0x40080000, 1,
                          rank.stream) == CUDA_SUCCESS);  // 3.0
  EXPECT(reduced(rank, 1.0, ncclFloat64, from_device) == 12.0);

  // For its own type only, and until it is destroyed.
  const Buffer<float> data(3);
  const auto refused = [&](ncclRedOp_t op, ncclDataType_t type) {
    return ncclAllReduce(data.data(), data.data(), 1, type, op, rank.comm, rank.stream) ==
           ncclInvalidArgument;
  };
  EXPECT(refused(weighted, ncclFloat32));
  EXPECT(ncclRedOpDestroy(weighted, rank.comm) == ncclSuccess);
  EXPECT(refused(weighted, ncclFloat64));
  EXPECT(ncclRedOpDestroy(weighted, rank.comm) == ncclInvalidArgument);
  EXPECT(ncclRedOpDestroy(ncclSum, rank.comm) == ncclInvalidArgument);
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
}

void alone(Rank& rank) {
  rank.join();
  float factor = 3;
  ncclRedOp_t op{};
  EXPECT(ncclRedOpCreatePreMulSum(&op, &factor, ncclFloat32, ncclScalarHostImmediate, rank.comm) ==
         ncclSuccess);
  EXPECT(reduced(rank, 2.0F, ncclFloat32, op) == 6.0F);
  EXPECT(reduced(rank, 2.0F, ncclFloat32, ncclAvg) == 2.0F);
  EXPECT(ncclCommDestroy(rank.comm) == ncclSuccess);
}
