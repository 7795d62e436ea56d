// How a program has its processor calculate.
#include <cfenv>
#include <cstdio>

#include "scenarios.hpp"

namespace awkward {
namespace {

constexpr int watched = FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW;

void visits(const Device& device) {
  const CUdeviceptr memory = new_memory();
  for (int visit = 0; visit < 3; ++visit) {
    const Range range(region);
    device.launch(memory);
  }
  print_memory("memory", memory);
}

}  // namespace

int arithmetic_that_traps(Device& device) {
  // As gfortran does with -ffpe-trap=invalid,zero,overflow,underflow.
  (void)feenableexcept(watched);
  visits(device);
  std::printf("traps: %d\n", fegetexcept() == watched);
  return 0;
}

int flags_of_arithmetic(Device& device) {
  // As gfortran tells at a program's end which of them have been raised.
  (void)std::feclearexcept(FE_ALL_EXCEPT);
  visits(device);
  std::printf("raised: %x\n", static_cast<unsigned>(std::fetestexcept(watched)));
  return 0;
}

int arithmetic_that_rounds_up(Device& device) {
  (void)std::fesetround(FE_UPWARD);
  visits(device);
  std::printf("rounds up: %d\n", std::fegetround() == FE_UPWARD);
  return 0;
}

}  // namespace awkward
