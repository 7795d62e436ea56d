// Any bytes as the steps of a program: a finder keeps its promises. Bytes from 0x80 on repeat what
// came before them, so that loops inside loops are short to write.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "../unit/core/period_reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t most_steps = 30'000;
  PeriodReader reader;
  std::vector<std::uint64_t> steps;
  const auto see = [&](std::uint64_t token) {
    reader.see(token);
    steps.push_back(token);
  };
  for (std::size_t i = 0; i < size && steps.size() < most_steps; ++i) {
    if (data[i] == 0x7f) {
      reader.keep_inside();
    } else if (data[i] < 0x7f) {
      see(data[i]);
    } else if (i + 1 < size) {
      const std::size_t times = data[i] & 0x7f;
      const std::size_t byte = data[++i];
      const std::size_t length = byte * (1 + byte / 16);
      if (length > steps.size()) continue;
      for (std::size_t k = 0; k < times * length && steps.size() < most_steps; ++k)
        see(steps[steps.size() - length]);
    }
  }
  if (!reader.broken_promise().empty()) std::abort();
  return 0;
}
