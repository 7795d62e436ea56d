// A program that has just what it needs of what its first argument names: `stack` for the thread
// that uses CUDA, or `data`, memory of the host.
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "awkward/device.hpp"

namespace {

constexpr std::size_t stack_bytes = 48 << 10;
constexpr std::size_t spare_bytes = 4 << 20;

void* use_cuda(void*) {
  const awkward::Device device = awkward::Device::open();
  const CUdeviceptr memory = awkward::new_memory();
  for (int i = 0; i < 100; ++i) {
    const awkward::Range range(awkward::region);
    device.launch(memory);
  }
  awkward::print_memory("memory", memory);
  return nullptr;
}

void use_cuda_on_little_stack() {
  pthread_attr_t attributes;
  pthread_t thread{};
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  if (pthread_create(&thread, &attributes, use_cuda, nullptr) != 0) std::exit(3);
  pthread_join(thread, nullptr);
}

// What counts for the limit, in bytes.
rlim_t used_bytes() {
  unsigned long pages[6] = {};
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%lu %lu %lu %lu %lu %lu", &pages[0], &pages[1],
                                     &pages[2], &pages[3], &pages[4], &pages[5]) != 6) {
    std::exit(3);
  }
  std::fclose(file);
  return pages[5] * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}

void use_cuda_with_little_memory() {
  const rlimit limit{used_bytes() + spare_bytes, used_bytes() + spare_bytes};
  setrlimit(RLIMIT_DATA, &limit);
  use_cuda(nullptr);
  // The program's own share, of which nothing may be missing.
  char* const needed = static_cast<char*>(std::malloc(spare_bytes / 2));
  if (needed != nullptr) std::memset(needed, 1, spare_bytes / 2);
  std::printf("memory that the program needs: %s\n", needed != nullptr ? "there" : "MISSING");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "stack") == 0) {
    use_cuda_on_little_stack();
  } else if (argc == 2 && std::strcmp(argv[1], "data") == 0) {
    use_cuda_with_little_memory();
  } else {
    return 2;
  }
  return 0;
}
