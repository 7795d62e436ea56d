// What the programs with choices print: which implementation won for a size, and what that is worth
// against the default, both run in turns.
#pragma once

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "rank_program.cuh"

/// Seconds of one call, of `calls` one after the other.
template <class Run>
double seconds_of(cudaStream_t stream, int calls, Run&& run) {
  cudaEvent_t begin, end;
  CUDA_CHECK(cudaEventCreate(&begin));
  CUDA_CHECK(cudaEventCreate(&end));
  run();  // all ranks are at it, and what comes first is not timed
  CUDA_CHECK(cudaEventRecord(begin, stream));
  for (int i = 0; i < calls; ++i) run();
  CUDA_CHECK(cudaEventRecord(end, stream));
  CUDA_CHECK(cudaStreamSynchronize(stream));
  float milliseconds = 0;
  CUDA_CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
  CUDA_CHECK(cudaEventDestroy(begin));
  CUDA_CHECK(cudaEventDestroy(end));
  return milliseconds * 1e-3 / calls;
}

inline double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// By all ranks; rank 0 prints a line.
/// @param first   the default, called by itself
/// @param chosen  the choice
template <class First, class Chosen>
void compare(const Ranks& ranks, cudaStream_t stream, std::size_t bytes,
             const std::vector<contextune::ChoiceTiming>& timings, bool right, First&& first,
             Chosen&& chosen) {
  const int calls = bytes >= (16U << 20) ? 10 : 40;
  std::vector<double> default_seconds, chosen_seconds, ratios;
  for (int pair = 0; pair < 21; ++pair) {
    const bool default_first = pair % 2 == 0;
    double one = 0, other = 0;
    if (default_first) one = seconds_of(stream, calls, first);
    other = seconds_of(stream, calls, chosen);
    if (!default_first) one = seconds_of(stream, calls, first);
    default_seconds.push_back(one);
    chosen_seconds.push_back(other);
    ratios.push_back(one / other);
  }
  if (ranks.place.rank != 0) return;
  std::string winner = "none", config;
  double searched = 0, by_default = 0;
  std::size_t open = 0, wrong = 0;
  for (const contextune::ChoiceTiming& one : timings) {
    if (one.is_winner) {
      winner = one.implementation;
      config = one.config.empty() ? "" : " " + one.config.to_string();
      searched = one.seconds;
    }
    if (&one == &timings.front()) by_default = one.seconds;
    open += one.state == contextune_timing_measured ? 1 : 0;
    wrong += one.state == contextune_timing_wrong ? 1 : 0;
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf(
      "%10zu bytes  %-40s measured %7.2f us (default %7.2f), %zu ways, %zu wrong; in turns "
      "%7.2f us (default %7.2f), %.3f times as fast (%.3f to %.3f)%s\n",
      bytes, (winner + config).c_str(), searched * 1e6, by_default * 1e6, open, wrong,
      middle(chosen_seconds) * 1e6, middle(default_seconds) * 1e6, ratios[ratios.size() / 2],
      ratios[ratios.size() / 10], ratios[ratios.size() - 1 - ratios.size() / 10],
      right ? "" : "  WRONG RESULT");
  std::fflush(stdout);
}
