#pragma once

#include <cuda.h>
#include <nccl.h>
#include <simcuda/kernel.hpp>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "simulated_program.hpp"

// What programs with choices over ranks share.

using contextune::Config;

inline constexpr std::size_t num_elements = 1024;
inline constexpr std::size_t num_bytes = num_elements * sizeof(unsigned);

inline void more(const simcuda::Thread& thread, int n, unsigned value, unsigned* y) {
  for (std::size_t i = thread.global_x(); i < static_cast<std::size_t>(n); i += thread.stride_x())
    y[i] += value;
}
inline void describe_more(const simcuda_launch* launch, simcuda_work* work) {
  work->block_cycles = launch->block[0] == 128 ? 50e3 : launch->block[0] == 64 ? 200e3 : 800e3;
}
inline const simcuda_kernel more_kernel = simcuda::per_thread_kernel<&more>("more", &describe_more);

/// What the words say, of each the rank that it is about.
struct Wanted {
  std::string path, where;
  std::map<std::string, int> words;
  int rank = 0;
  [[nodiscard]] bool is_own_stage() const {
    return where == "own_stage" || where == "kernels" || where == "sends";
  }
  [[nodiscard]] bool says(const char* word) const {
    const auto found = words.find(word);
    return found != words.end() && (found->second == rank || found->second < 0);
  }
};

/// PATH, WHERE, and then words and ranks.
inline Wanted wanted_of(int argc, char** argv, int rank) {
  Wanted wanted;
  wanted.path = argv[1];
  wanted.where = argv[2];
  wanted.rank = rank;
  for (int i = 3; i + 1 < argc; i += 2) wanted.words[argv[i]] = std::atoi(argv[i + 1]);
  return wanted;
}

inline std::uint64_t hash_of(CUdeviceptr memory) {
  std::uint64_t hash = 14695981039346656037ULL;
  std::vector<unsigned> values(num_elements);
  CHECK(cuMemcpyDtoH(values.data(), memory, num_bytes));
  for (const unsigned value : values) hash = (hash ^ value) * 1099511628211ULL;
  return hash;
}
