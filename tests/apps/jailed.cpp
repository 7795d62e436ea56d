// A program that makes the folder of its first argument its root once CUDA is up, as servers do
// that give up what they need no more.
#include <unistd.h>

#include "awkward/device.hpp"

int main(int argc, char** argv) {
  const awkward::Device device = awkward::Device::open();
  const CUdeviceptr memory = awkward::new_memory();
  if (argc != 2 || chroot(argv[1]) != 0) return 2;
  for (int i = 0; i < 100; ++i) {
    const awkward::Range range(awkward::region);
    device.launch(memory);
  }
  awkward::print_memory("memory", memory);
  return 0;
}
