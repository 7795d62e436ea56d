// Calls that reach the driver past whoever watches its entry points, as those of a library do that
// is opened with RTLD_DEEPBIND: its dlsym is libc's own.
#include <dlfcn.h>

#include <initializer_list>

#include "scenarios.hpp"

namespace awkward {
namespace {

/// The driver's own, as libc finds it.
template <typename Function>
Function* driver_function(const char* name) {
  void* const libc = dlopen("libc.so.6", RTLD_LAZY);
  using Dlsym = void* (*)(void*, const char*);
  const auto find = reinterpret_cast<Dlsym>(dlvsym(libc, "dlsym", "GLIBC_2.34"));
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY);
  void* const found = find == nullptr ? nullptr : find(driver, name);
  check(found == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS, name);
  return reinterpret_cast<Function*>(found);
}

}  // namespace

int memory_that_was_not_seen(Device& device) {
  const CUdeviceptr memory = new_memory();
  CUdeviceptr unseen = 0;
  check(driver_function<decltype(cuMemAlloc)>("cuMemAlloc_v2")(&unseen, num_bytes), "cuMemAlloc");
  check(cuMemsetD32(unseen, 1, num_words), "cuMemsetD32");
  {
    const Range range(region);
    for (const CUdeviceptr written : {memory, unseen}) device.launch(written);
  }
  print_memory("memory", memory);
  print_memory("unseen", unseen);
  return 0;
}

int memory_given_back_unseen(Device& device) {
  const CUdeviceptr memory = new_memory();
  CUdeviceptr large = 0;
  check(cuMemAlloc(&large, 64 * mebibyte), "cuMemAlloc");
  check(driver_function<decltype(cuMemFree)>("cuMemFree_v2")(large), "cuMemFree");
  {
    const Range range(region);
    device.launch(memory);
  }
  print_memory("memory", memory);
  return 0;
}

}  // namespace awkward
