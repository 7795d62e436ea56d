#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <contextune/contextune.hpp>

#include "program.hpp"
#include "short_tuning.hpp"

// What the tests of choices share: implementations that add to floats, of which the one in blocks
// of 128 is the fastest and the one in blocks of 256 the slowest.

inline contextune::ChoiceOptions quick(contextune::ChoiceOptions options = {}) {
  options.n_repeat = 2;
  return options;
}

using Add = contextune::Choice<CUresult(CUdeviceptr, int)>;

/// y += 1, in place; says in `ran` that it was called.
inline auto adding(std::vector<std::string>& ran, std::string name, unsigned block,
                   float value = 1.0F) {
  return [&ran, name = std::move(name), block, value](const contextune::Config&, CUdeviceptr y,
                                                      int n) {
    ran.push_back(name);
    return Program::on().add(y, n, value, 1, block);
  };
}

/// Floats for choices to add to, and the implementations that have done so.
struct AddsToFloats {
  const Program& program = Program::on();
  CUdeviceptr y = program.floats(64);
  std::vector<std::string> ran;
};

inline contextune::ChoiceMemory memory_of(CUdeviceptr y, int n) {
  return {{{reinterpret_cast<void*>(y), static_cast<std::size_t>(n) * sizeof(float)}}};
}

inline std::vector<float> all(int n, float value) {
  return std::vector<float>(static_cast<std::size_t>(n), value);
}

inline std::vector<float> read(CUdeviceptr y, int n) {
  return Program::read(y, static_cast<std::size_t>(n));
}

inline std::ptrdiff_t times(const std::vector<std::string>& ran, const char* name) {
  return std::count(ran.begin(), ran.end(), name);
}

inline const contextune::ChoiceTiming& of(const std::vector<contextune::ChoiceTiming>& timings,
                                          const std::string& name) {
  for (const contextune::ChoiceTiming& one : timings)
    if (one.implementation == name) return one;
  throw std::runtime_error("no timing of " + name);
}
