#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// What every fuzz target offers. libFuzzer drives it (the preset `fuzz`), and replay_inputs.cpp
/// does where there is no clang.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

struct FuzzInputs {
  std::vector<std::string> seeds;  ///< inputs that reach far
  std::vector<std::string> words;  ///< what inputs are made of
};

/// Where a search begins. Made anew by the code that writes such things, so that it never ages.
[[nodiscard]] FuzzInputs fuzz_inputs();
