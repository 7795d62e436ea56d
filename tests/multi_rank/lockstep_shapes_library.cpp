// A library that takes memory of the device while it is being loaded.
#include <cuda.h>

namespace {

[[gnu::constructor]] void take() {
  CUdeviceptr memory = 0;
  (void)cuMemAlloc(&memory, 4096);
}

}  // namespace
