// A program with variables of its own that have names of POSIX, which C and C++ leave to it. It
// lets its libraries see them, as with -rdynamic, so these find them before libc's functions.
#include <cstdio>

#include "awkward/device.hpp"

#define EXPORTED extern "C" __attribute__((visibility("default")))
#define VARIABLE(name)                         \
  EXPORTED int variable_##name __asm__(#name); \
  int variable_##name = 0;
VARIABLE(stat)
VARIABLE(lstat)
VARIABLE(fstat)
VARIABLE(flock)
VARIABLE(fsync)
VARIABLE(pread)
VARIABLE(pwrite)
VARIABLE(getrandom)
VARIABLE(gettid)
VARIABLE(send)
VARIABLE(recv)

int main() {
  using namespace awkward;
  const Device device = Device::open();
  const CUdeviceptr memory = new_memory();
  for (int visit = 0; visit < 3; ++visit) {
    const Range range(region);
    device.launch(memory);
    ++variable_stat;
  }
  print_memory("memory", memory);
  std::printf("%d\n", variable_stat + variable_lstat + variable_fstat + variable_flock +
                          variable_fsync + variable_pread + variable_pwrite + variable_getrandom +
                          variable_gettid + variable_send + variable_recv);
  return 0;
}
