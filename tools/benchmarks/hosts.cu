// Programs whose hosts leave little or nothing to gain for chained and gathered launches, and much
// to lose. Prints a checksum of what was computed, and on stderr how long the host took in us from
// the first launch to the end.
//   hosts WHAT [KERNELS.cubin]
//   spin    the host spins for the answer of every fourth launch, without any call of the driver
//   work    the host computes 100 us between two launches
//   random  50 kernels in random order with random sizes: nothing repeats
//   many    each kernel of KERNELS.cubin, which are named k0, k1, and so on, a few times
//   brief   8000 launches, 30 to 40 ms
//   glance  1200 launches, 6 to 8 ms
#include <cuda_runtime.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned num_words = 1 << 16;

void check(cudaError_t result) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "hosts: %s\n", cudaGetErrorString(result));
  std::exit(1);
}

template <unsigned salt>
__global__ void mix(unsigned* data, unsigned n) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    data[i] = (data[i] ^ (salt * 0x9e3779b1u)) * 0x85ebca77u + salt;
}

__global__ void set(volatile unsigned* flag, unsigned value) {
  __threadfence_system();
  *flag = value;
}

using Mix = void(unsigned*, unsigned);
template <unsigned... salts>
std::vector<Mix*> mixes(std::integer_sequence<unsigned, salts...>) {
  return {&mix<salts>...};
}

void compute_until(Clock::time_point end) {
  while (Clock::now() < end) {
  }
}

class Program {
 public:
  Program() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    check(cudaMalloc(&data_, num_words * sizeof *data_));
    check(cudaMemset(data_, 0, num_words * sizeof *data_));
    check(cudaDeviceSynchronize());
  }

  void spin() {
    unsigned* flag = nullptr;
    check(cudaHostAlloc(&flag, sizeof *flag, cudaHostAllocMapped));
    *flag = 0;
    for (unsigned turn = 1; turn <= 10000; ++turn) {
      for (unsigned i = 0; i < 3; ++i) mix<1><<<64, 256, 0, stream_>>>(data_, num_words);
      set<<<1, 1, 0, stream_>>>(flag, turn);
      const auto deadline = Clock::now() + std::chrono::seconds(5);
      while (*static_cast<volatile unsigned*>(flag) != turn) {
        if (Clock::now() > deadline) {
          std::fprintf(stderr, "no answer in 5 s\n");
          std::exit(3);
        }
      }
    }
  }

  void work() {
    for (unsigned i = 0; i < 3000; ++i) {
      const auto end = Clock::now() + std::chrono::microseconds(100);
      mix<1><<<64, 256, 0, stream_>>>(data_, num_words);
      compute_until(end);
    }
  }

  void random() {
    const std::vector<Mix*> kernels = mixes(std::make_integer_sequence<unsigned, 50>{});
    std::mt19937 engine(1);
    for (unsigned i = 0; i < 60000; ++i) {
      Mix* const kernel = kernels[engine() % kernels.size()];
      kernel<<<1 + engine() % 128, 128, 0, stream_>>>(data_, 1 + engine() % num_words);
    }
  }

  void many(const std::string& file) {
    cudaLibrary_t library = nullptr;
    check(
        cudaLibraryLoadFromFile(&library, file.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    unsigned count = 0;
    check(cudaLibraryGetKernelCount(&count, library));
    std::vector<cudaKernel_t> kernels(count);
    for (unsigned i = 0; i < count; ++i)
      check(cudaLibraryGetKernel(&kernels[i], library, ("k" + std::to_string(i)).c_str()));
    unsigned n = num_words;
    void* arguments[] = {&data_, &n};
    for (unsigned pass = 0; pass < 8; ++pass) {
      for (cudaKernel_t kernel : kernels)
        check(cudaLaunchKernel(kernel, dim3(16), dim3(128), arguments, 0, stream_));
    }
  }

  void repeat(unsigned entries) {
    for (unsigned i = 0; i < entries; ++i) {
      mix<1><<<64, 256, 0, stream_>>>(data_, num_words);
      mix<2><<<64, 256, 0, stream_>>>(data_, num_words);
      mix<3><<<32, 256, 0, stream_>>>(data_, num_words / 2);
      mix<4><<<64, 128, 0, stream_>>>(data_, num_words);
    }
  }

  void print() {
    check(cudaStreamSynchronize(stream_));
    check(cudaGetLastError());
    std::vector<unsigned> host(num_words);
    check(cudaMemcpy(host.data(), data_, num_words * sizeof *data_, cudaMemcpyDeviceToHost));
    std::uint64_t sum = 0xcbf29ce484222325u;
    for (const unsigned word : host) sum = (sum ^ word) * 0x100000001b3u;
    std::printf("data %016llx\n", static_cast<unsigned long long>(sum));
  }

 private:
  cudaStream_t stream_ = nullptr;
  unsigned* data_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  Program program;
  const auto start = Clock::now();
  if (what == "spin") program.spin();
  if (what == "work") program.work();
  if (what == "random") program.random();
  if (what == "many") program.many(argc > 2 ? argv[2] : "");
  if (what == "brief") program.repeat(2000);
  if (what == "glance") program.repeat(300);
  program.print();
  std::fprintf(stderr, "%.1f\n",
               std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  return 0;
}
