#pragma once

#include <cuda.h>
#include <nccl.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rank_meeting.hpp"

namespace collective_bench {

enum class Function { AllReduce, AllGather, ReduceScatter };

/// One function at one size, which is what NCCL tells a tuner: of what all ranks receive together
/// with AllGather, of what each sends with ReduceScatter.
struct Problem {
  Function function = Function::AllReduce;
  std::size_t bytes = 0;
  std::string name;  ///< "all_reduce-4096", which is also that of its NVTX range

  /// Calls in an entry of the range, so that one takes about 50 us at least.
  [[nodiscard]] int calls() const noexcept;
};

/// Ends the process with a message if a call failed.
void check(CUresult result, const char* what);
void check(ncclResult_t result, const char* what);

/// The buffers of one rank, and what it does with them together with the others. What is called
/// here all ranks call in the same order. A GPU error ends the process. Not thread-safe.
class CollectiveWork {
 public:
  /// @param most_bytes  of the largest problem
  /// @param is_float    sums of float32 and not of int32
  CollectiveWork(const Place& place, ncclComm_t comm, std::size_t most_bytes, bool is_float);

  /// Enqueues one entry of the problem's range.
  void enter(const Problem& problem);
  void wait() const { check(cuStreamSynchronize(stream_), "cuStreamSynchronize"); }

  /// Microseconds that one call takes on this rank, over so many entries in a row.
  [[nodiscard]] double time_calls(const Problem& problem, int entries);
  /// How many entries take about so many microseconds.
  [[nodiscard]] int entries_for(const Problem& problem, double microseconds);

  /// The largest that any rank brings, element by element.
  [[nodiscard]] std::vector<double> largest(std::vector<double> values);
  [[nodiscard]] double largest(double value) { return largest(std::vector<double>{value}).front(); }

  /// Elements of the result that are in one window.
  static constexpr std::size_t window = 1024;
  /// Clears one window of the result, counted modulo their number, before an entry...
  void clear(const Problem& problem, std::size_t number);
  /// ...and counts the elements in it that are not as they should be, after it.
  [[nodiscard]] std::size_t wrong(const Problem& problem, std::size_t number) const;
  /// The same of the whole result.
  [[nodiscard]] std::size_t wrong(const Problem& problem) const;

 private:
  struct Span {
    std::size_t first, count;
  };
  [[nodiscard]] std::size_t share(const Problem& problem) const;
  [[nodiscard]] std::size_t result_count(const Problem& problem) const;
  [[nodiscard]] Span span_of(const Problem& problem, std::size_t number) const;
  [[nodiscard]] std::size_t wrong(const Problem& problem, Span span) const;
  [[nodiscard]] std::uint32_t expected(const Problem& problem, std::size_t element) const;
  [[nodiscard]] std::uint32_t bits(std::int32_t value) const;
  void call(const Problem& problem) const;

  Place place_;
  ncclComm_t comm_;
  bool is_float_;
  CUstream stream_ = nullptr;
  CUevent begin_ = nullptr, end_ = nullptr;
  CUdeviceptr sent_ = 0, received_ = 0, compared_ = 0;
};

}  // namespace collective_bench
