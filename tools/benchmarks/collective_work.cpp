#include "collective_work.hpp"

#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace collective_bench {
namespace {

constexpr std::size_t most_compared = 4096;

void* pointer(CUdeviceptr memory) {
  return reinterpret_cast<void*>(memory);
}

/// A number from -127 to 127 that looks random, so that no two places of a buffer look alike.
std::int32_t number_at(std::size_t element) {
  auto mixed = static_cast<std::uint32_t>(element) * 2654435761U;
  mixed ^= mixed >> 15U;
  return static_cast<std::int32_t>(mixed * 2246822519U >> 8U) % 128;
}

}  // namespace

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "collectives: %s failed: %s (%d)\n", what, name == nullptr ? "?" : name,
               static_cast<int>(result));
  std::exit(1);
}

void check(ncclResult_t result, const char* what) {
  if (result == ncclSuccess) return;
  std::fprintf(stderr, "collectives: %s failed: %s\n", what, ncclGetErrorString(result));
  std::exit(1);
}

int Problem::calls() const noexcept {
  constexpr std::size_t kib = 1024;
  if (bytes <= 256 * kib) return 8;
  if (bytes <= 1024 * kib) return 4;
  return bytes <= 4096 * kib ? 2 : 1;
}

CollectiveWork::CollectiveWork(const Place& place, ncclComm_t comm, std::size_t most_bytes,
                               bool is_float)
    : place_(place), comm_(comm), is_float_(is_float) {
  check(cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  check(cuEventCreate(&begin_, CU_EVENT_DEFAULT), "cuEventCreate");
  check(cuEventCreate(&end_, CU_EVENT_DEFAULT), "cuEventCreate");
  check(cuMemAlloc(&sent_, most_bytes), "cuMemAlloc");
  check(cuMemAlloc(&received_, most_bytes), "cuMemAlloc");
  check(cuMemAlloc(&compared_, most_compared * sizeof(double)), "cuMemAlloc");
  // So that it is seen whose numbers a result has.
  std::vector<std::uint32_t> numbers(most_bytes / sizeof(std::uint32_t));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = bits(number_at(i) * (place.rank + 1));
  check(cuMemcpyHtoD(sent_, numbers.data(), most_bytes), "cuMemcpyHtoD");
}

std::uint32_t CollectiveWork::bits(std::int32_t value) const {
  return is_float_ ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                   : static_cast<std::uint32_t>(value);
}

std::size_t CollectiveWork::share(const Problem& problem) const {
  return problem.bytes / sizeof(std::uint32_t) / static_cast<std::size_t>(place_.ranks);
}

std::size_t CollectiveWork::result_count(const Problem& problem) const {
  switch (problem.function) {
    case Function::AllReduce:
      return problem.bytes / sizeof(std::uint32_t);
    case Function::AllGather:
      return share(problem) * static_cast<std::size_t>(place_.ranks);
    default:
      return share(problem);
  }
}

void CollectiveWork::call(const Problem& problem) const {
  const ncclDataType_t type = is_float_ ? ncclFloat32 : ncclInt32;
  void* const from = pointer(sent_);
  void* const to = pointer(received_);
  switch (problem.function) {
    case Function::AllReduce:
      check(ncclAllReduce(from, to, result_count(problem), type, ncclSum, comm_, stream_),
            "ncclAllReduce");
      break;
    case Function::AllGather:
      check(ncclAllGather(from, to, share(problem), type, comm_, stream_), "ncclAllGather");
      break;
    case Function::ReduceScatter:
      check(ncclReduceScatter(from, to, share(problem), type, ncclSum, comm_, stream_),
            "ncclReduceScatter");
  }
}

void CollectiveWork::enter(const Problem& problem) {
  nvtxRangePushA(problem.name.c_str());
  for (int i = 0; i < problem.calls(); ++i) call(problem);
  nvtxRangePop();
}

double CollectiveWork::time_calls(const Problem& problem, int entries) {
  enter(problem);  // no rank is ahead of another after it
  check(cuEventRecord(begin_, stream_), "cuEventRecord");
  for (int i = 0; i < entries; ++i) enter(problem);
  check(cuEventRecord(end_, stream_), "cuEventRecord");
  check(cuEventSynchronize(end_), "cuEventSynchronize");
  float milliseconds = 0;
  check(cuEventElapsedTime(&milliseconds, begin_, end_), "cuEventElapsedTime");
  return double{milliseconds} * 1e3 / entries / problem.calls();
}

int CollectiveWork::entries_for(const Problem& problem, double microseconds) {
  const double entry = largest(time_calls(problem, 4)) * problem.calls();
  return std::clamp(static_cast<int>(std::lround(microseconds / entry)), 2, 200);
}

std::vector<double> CollectiveWork::largest(std::vector<double> values) {
  for (std::size_t first = 0; first < values.size(); first += most_compared) {
    const std::size_t count = std::min(most_compared, values.size() - first);
    check(cuMemcpyHtoD(compared_, values.data() + first, count * sizeof(double)), "cuMemcpyHtoD");
    check(ncclAllReduce(pointer(compared_), pointer(compared_), count, ncclFloat64, ncclMax, comm_,
                        stream_),
          "ncclAllReduce");
    wait();
    check(cuMemcpyDtoH(values.data() + first, compared_, count * sizeof(double)), "cuMemcpyDtoH");
  }
  return values;
}

CollectiveWork::Span CollectiveWork::span_of(const Problem& problem, std::size_t number) const {
  const std::size_t all = result_count(problem);
  const std::size_t first = number % ((all + window - 1) / window) * window;
  return {first, std::min(window, all - first)};
}

void CollectiveWork::clear(const Problem& problem, std::size_t number) {
  const Span span = span_of(problem, number);
  check(cuMemsetD32Async(received_ + span.first * sizeof(std::uint32_t), 0x55555555U, span.count,
                         stream_),
        "cuMemsetD32Async");
}

std::uint32_t CollectiveWork::expected(const Problem& problem, std::size_t element) const {
  if (problem.function == Function::AllGather)
    return bits(number_at(element % share(problem)) *
                (static_cast<std::int32_t>(element / share(problem)) + 1));
  if (problem.function == Function::ReduceScatter)
    element += share(problem) * static_cast<std::size_t>(place_.rank);
  return bits(number_at(element) * (place_.ranks * (place_.ranks + 1) / 2));
}

std::size_t CollectiveWork::wrong(const Problem& problem, Span span) const {
  std::vector<std::uint32_t> result(span.count);
  check(cuMemcpyDtoH(result.data(), received_ + span.first * sizeof(std::uint32_t),
                     span.count * sizeof(std::uint32_t)),
        "cuMemcpyDtoH");
  std::size_t count = 0;
  for (std::size_t i = 0; i < span.count; ++i)
    count += result[i] == expected(problem, span.first + i) ? 0U : 1U;
  return count;
}

std::size_t CollectiveWork::wrong(const Problem& problem, std::size_t number) const {
  return wrong(problem, span_of(problem, number));
}

std::size_t CollectiveWork::wrong(const Problem& problem) const {
  return wrong(problem, Span{0, result_count(problem)});
}

}  // namespace collective_bench
