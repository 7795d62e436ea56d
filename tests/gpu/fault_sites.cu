// A program with three kernels, each on memory of its own, in a region that it repeats between NVTX
// marks, or, built with FAULT_SITES_BODY for contextune, as a body that is repeated until it is
// tuned. FAULT_SITES="KIND:KERNEL:BLOCK" breaks one of them in blocks of that size: it never ends
// (hang), traps (abort) or writes where nothing is (sticky). Prints a hash of all that is left.
// tests/apps/fault_runs_test.py runs it, as it runs fault_sites.cpp on the simulated driver.
#ifdef FAULT_SITES_BODY
#include <contextune/contextune.hpp>
#endif

#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int elements = 4096;

#define CHECK(call)                                                               \
  do {                                                                            \
    const cudaError_t result = (call);                                            \
    if (result != cudaSuccess) {                                                  \
      std::fprintf(stderr, "%s failed: %s\n", #call, cudaGetErrorString(result)); \
      std::exit(1);                                                               \
    }                                                                             \
  } while (0)

enum Kind { none, hang, trap, stray };

struct Fault {
  Kind kind = none;
  int kernel = 0;
  unsigned block = 0;
};

__device__ void fill(unsigned* y, int n, unsigned value, const Fault& fault, int kernel) {
  if (fault.kernel == kernel && fault.block == blockDim.x) {
    // Nothing is read, so that contextune may fill the memory to compare what configs leave there.
    while (fault.kind == hang) __nanosleep(1000);
    if (fault.kind == trap) __trap();
    if (fault.kind == stray) *static_cast<volatile unsigned*>(y + (std::size_t{1} << 40)) = value;
  }
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = value + i;
}

}  // namespace

__global__ void first(unsigned* y, int n, unsigned value, Fault fault) {
  fill(y, n, value, fault, 0);
}
__global__ void second(unsigned* y, int n, unsigned value, Fault fault) {
  fill(y, n, value, fault, 1);
}
__global__ void third(unsigned* y, int n, unsigned value, Fault fault) {
  fill(y, n, value, fault, 2);
}

namespace {

Fault fault_of(const char* text) {
  Fault fault;
  if (text == nullptr) return fault;
  const std::string all = text;
  const std::size_t one = all.find(':');
  const std::size_t two = all.find(':', one + 1);
  const std::string kind = all.substr(0, one);
  const std::string kernel = all.substr(one + 1, two - one - 1);
  fault.kind = kind == "hang" ? hang : kind == "abort" ? trap : stray;
  fault.kernel = kernel == "first" ? 0 : kernel == "second" ? 1 : 2;
  fault.block = static_cast<unsigned>(std::atoi(all.c_str() + two + 1));
  return fault;
}

#ifdef FAULT_SITES_BODY
void run_body(unsigned* const (&y)[3], const Fault& fault) {
  using Kernel = void (*)(unsigned*, int, unsigned, Fault);
  const auto tunable = [&](const char* name, Kernel kernel, unsigned number) {
    return contextune::Tunable(
        name, contextune::ConfigSpace().parameter("block", {256, 64, 128, 512}),
        [memory = y[number], kernel, number, fault](const contextune::Config& config) {
          kernel<<<4, static_cast<unsigned>(config.get_int("block"))>>>(memory, elements, number,
                                                                        fault);
          return cudaGetLastError();
        });
  };
  auto one = tunable("first", &first, 0);
  auto two = tunable("second", &second, 1);
  auto three = tunable("third", &third, 2);
  CONTEXTUAL_AUTOTUNE("step", {.repeatable = true}) {
    (void)one();
    (void)two();
    (void)three();
  }
  CHECK(cudaDeviceSynchronize());
}
#else
void run_body(unsigned* const (&)[3], const Fault&) {
  std::fputs("fault_sites: built without a body\n", stderr);
  std::exit(2);
}
#endif

void run_loop(unsigned* const (&y)[3], const Fault& fault, int steps) {
  for (int step = 0; step < steps; ++step) {
    nvtxRangePushA("step");
    first<<<4, 256>>>(y[0], elements, 0, fault);
    second<<<4, 256>>>(y[1], elements, 1, fault);
    third<<<4, 256>>>(y[2], elements, 2, fault);
    CHECK(cudaGetLastError());
    nvtxRangePop();
    CHECK(cudaDeviceSynchronize());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool is_body = argc == 2 && std::strcmp(argv[1], "body") == 0;
  const bool is_loop = argc == 3 && std::strcmp(argv[1], "loop") == 0;
  if (!is_body && !is_loop) {
    std::fputs("usage: fault_sites body | loop STEPS\n", stderr);
    return 2;
  }
  const Fault fault = fault_of(std::getenv("FAULT_SITES"));
  unsigned* y[3] = {};
  for (unsigned*& one : y) {
    CHECK(cudaMalloc(&one, elements * sizeof(unsigned)));
    CHECK(cudaMemset(one, 0, elements * sizeof(unsigned)));
  }
  is_body ? run_body(y, fault) : run_loop(y, fault, std::atoi(argv[2]));
  std::uint64_t hash = 14695981039346656037ULL;
  std::vector<unsigned> values(elements);
  for (const unsigned* one : y) {
    CHECK(cudaMemcpy(values.data(), one, elements * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (const unsigned value : values) hash = (hash ^ value) * 1099511628211ULL;
  }
  std::printf("%016llx\n", static_cast<unsigned long long>(hash));
  return 0;
}
