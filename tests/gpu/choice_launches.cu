// A choice between one launch and several short ones, at many lengths of the one: what CUPTI makes
// a launch cost must not decide it. Says what both ways take later, in turns and without CUPTI, how
// many times as fast the second is, and whether it was taken, those that cost the most at the end;
// ends with 1 where more than a tenth of the choices cost more than a tenth (a host's launches get
// faster and slower for milliseconds).
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#include <contextune/contextune.hpp>

#include "program.hpp"

namespace {

constexpr int launches = 4;
constexpr int pairs = 41;

__global__ void spin(int nanoseconds, int* out) {
  unsigned long long begin = 0, now = 0;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  } while (now - begin < static_cast<unsigned long long>(nanoseconds));
  *out = 1;
}

__global__ void mark(int* out) {
  *out = 1;
}

using Step = contextune::Choice<cudaError_t(int, int*, cudaStream_t)>;

cudaError_t whole(const contextune::Config&, int nanoseconds, int* out, cudaStream_t stream) {
  spin<<<1, 1, 0, stream>>>(nanoseconds, out);
  return cudaGetLastError();
}

cudaError_t parts(const contextune::Config&, int, int* out, cudaStream_t stream) {
  for (int i = 0; i < launches; ++i) mark<<<1, 1, 0, stream>>>(out);
  return cudaGetLastError();
}

using Way = decltype(&whole);

float time_of(Way way, int nanoseconds, int* out, cudaStream_t stream, cudaEvent_t before,
              cudaEvent_t after) {
  float milliseconds = 0;
  CUDA_CHECK(cudaStreamSynchronize(stream));
  CUDA_CHECK(cudaEventRecord(before, stream));
  CUDA_CHECK(way({}, nanoseconds, out, stream));
  CUDA_CHECK(cudaEventRecord(after, stream));
  CUDA_CHECK(cudaEventSynchronize(after));
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, before, after));
  return milliseconds;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Found {
  bool whole_first;
  int nanoseconds;
  bool keeps;           ///< the default won
  std::string timings;  ///< of both ways, when they were tuned
  std::vector<double> firsts = {}, seconds = {}, ratios = {};  ///< later, in turns
  double gain = 0;  ///< how many times as fast the way is that is not the default
  double reached() const { return std::min(1.0, keeps ? 1 / gain : gain); }
};

/// What a choice between the two takes at each length, the first being its default.
void tune(bool whole_first, int* out, cudaStream_t stream, std::vector<Found>& found) {
  Step step(whole_first ? "whole_first" : "parts_first", {.repeatable = true});
  step.key([](int nanoseconds, int*, cudaStream_t) { return nanoseconds; });
  step.add("first", whole_first ? &whole : &parts).add("second", whole_first ? &parts : &whole);
  for (int nanoseconds = 6000; nanoseconds <= 30000; nanoseconds += 1000) {
    CUDA_CHECK(step(nanoseconds, out, stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    const auto timings = step.timings({}, nanoseconds);
    const auto winner =
        std::find_if(timings.begin(), timings.end(), [](const auto& one) { return one.is_winner; });
    std::string told;
    for (const contextune::ChoiceTiming& one : timings) {
      char text[80];
      std::snprintf(text, sizeof text, " %s %.2f us%s", one.implementation.c_str(),
                    one.seconds * 1e6, one.is_winner ? " (won)" : "");
      told += text;
    }
    found.push_back({whole_first, nanoseconds,
                     winner == timings.end() || winner->implementation == "first", told});
  }
}

}  // namespace

int main() {
  int* out = nullptr;
  cudaStream_t stream = nullptr;
  CUDA_CHECK(cudaMalloc(&out, sizeof(int)));
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<Found> found;
  tune(true, out, stream, found);
  tune(false, out, stream, found);
  // CUPTI stays for half a second, and leaves where a region begins.
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  CONTEXTUAL_AUTOTUNE("after", {.repeatable = true}) {}
  // The pairs of each are spread over the whole time, in which the host is in all its states.
  cudaEvent_t before = nullptr, after = nullptr;
  CUDA_CHECK(cudaEventCreate(&before));
  CUDA_CHECK(cudaEventCreate(&after));
  for (int i = 0; i < pairs; ++i) {
    for (Found& one : found) {
      const auto time = [&](Way way) {
        return 1e3 * time_of(way, one.nanoseconds, out, stream, before, after);
      };
      one.firsts.push_back(time(one.whole_first ? &whole : &parts));
      one.seconds.push_back(time(one.whole_first ? &parts : &whole));
      one.ratios.push_back(one.firsts.back() / one.seconds.back());
    }
  }
  CUDA_CHECK(cudaEventDestroy(before));
  CUDA_CHECK(cudaEventDestroy(after));
  for (Found& one : found) one.gain = median(one.ratios);
  std::stable_sort(found.begin(), found.end(), [](const Found& one, const Found& other) {
    return one.reached() > other.reached();
  });
  std::size_t bad = 0;
  for (const Found& one : found) {
    bad += one.reached() < 0.9 ? 1 : 0;
    std::printf("%s first, %5d ns:%s; later %.2f and %.2f us, %.3f times as fast; %s\n",
                one.whole_first ? "whole" : "parts", one.nanoseconds, one.timings.c_str(),
                median(one.firsts), median(one.seconds), one.gain,
                one.keeps ? "not taken" : "taken");
  }
  std::printf(
      "%zu of %zu winners are more than a tenth slower than the other way, the worst %.3f "
      "times as fast\n",
      bad, found.size(), found.back().reached());
  return 10 * bad <= found.size() ? 0 : 1;
}
