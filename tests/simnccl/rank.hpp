#pragma once

#include <cuda.h>
#include <nccl.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

/// Ends the process with status 1 unless a condition holds.
#define EXPECT(CONDITION)                                               \
  do {                                                                  \
    if (!(CONDITION)) {                                                 \
      std::printf("failed in line %d: %s (%s)\n", __LINE__, #CONDITION, \
                  ncclGetLastError(nullptr));                           \
      std::fflush(stdout);                                              \
      std::_Exit(1);                                                    \
    }                                                                   \
  } while (false)

/// One rank of a test: a context, a stream and the id that all ranks have.
struct Rank {
  int rank = 0, ranks = 1;
  ncclUniqueId id{};
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  ncclComm_t comm = nullptr;

  void join() { EXPECT(ncclCommInitRank(&comm, ranks, id, rank) == ncclSuccess); }
  void wait() const { EXPECT(cuStreamSynchronize(stream) == CUDA_SUCCESS); }
};

/// Device memory with values of a type.
template <class T>
class Buffer {
 public:
  explicit Buffer(std::size_t count, T value = {}) : count_(count) {
    CUdeviceptr memory = 0;
    EXPECT(cuMemAlloc(&memory, count * sizeof(T)) == CUDA_SUCCESS);
    memory_ = memory;
    write(std::vector<T>(count, value));
  }
  ~Buffer() { cuMemFree(memory_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] T* data() const { return reinterpret_cast<T*>(memory_); }
  void write(const std::vector<T>& values) {
    EXPECT(cuMemcpyHtoD(memory_, values.data(), values.size() * sizeof(T)) == CUDA_SUCCESS);
  }
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> values(count_);
    EXPECT(cuMemcpyDtoH(values.data(), memory_, count_ * sizeof(T)) == CUDA_SUCCESS);
    return values;
  }

 private:
  std::size_t count_;
  CUdeviceptr memory_ = 0;
};

using Scenario = void (*)(Rank&);

// The rest: rank_program.cpp.
void all_results(Rank& rank);              // rank_results.cpp
void reductions_of_all_kinds(Rank& rank);  // rank_reductions.cpp
void alone(Rank& rank);
void non_blocking(Rank& rank);  // rank_non_blocking.cpp
void abort_of_creation(Rank& rank);
void abort_of_split(Rank& rank);
void random_course(Rank& rank);  // rank_random.cpp
void captured(Rank& rank);       // rank_capture.cpp
void captured_kernel(Rank& rank);
