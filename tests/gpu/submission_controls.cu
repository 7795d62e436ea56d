// What has to be seen to go wrong before a comparison of results means anything, and what must not
// go wrong. Prints a line "NAME wrong W of N" or "NAME TIME" for each check asked for; whoever runs
// it judges. A wait that takes longer than its deadline ends the program with status 3.
//   submission_controls [--only NAME] [--sums N] [--turns N]
// The programmatic launches here are the program's own:
//   trigger_without_wait  stale data is read: the checks that follow could see it
//   trigger_and_wait      none is
//   trigger_and_wait_constants  stale constants are read although the second kernel waits
// The others are ordinary launches, right as written, and have to be right however they reach the
// GPU:
//   ordinary_after_trigger, ordinary_constants_after_trigger, ordinary_constants, ordinary_data
//   flag           a kernel writes mapped memory, the next one sets a flag there that the host
//   polls spin           the host spins for the answer of one launch without any call of the driver
//   spin_chain     the same for the last of four launches
//   across_streams a kernel spins on what a kernel launched later in another stream writes
#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>

#include "submission_checks.cuh"

namespace {

constexpr unsigned num_constants = 1024;
__constant__ unsigned constant_words[num_constants];

/// All blocks read constant memory, and the last one writes `round` over it, through its address.
template <bool triggers>
__global__ void write_constants(unsigned* constants, unsigned* sink, unsigned round) {
  if (triggers) let_next_start();
  unsigned sum = 0;
  // For as long as the next kernel takes to come to the same multiprocessors.
  for (unsigned pass = 0; pass < 4; ++pass) {
    for (unsigned i = 0; i < num_constants; i += 4) sum += constant_words[i + pass];
    linger(300);
  }
  if (sum == 0xffffffffu) *sink = sum;
  if (!is_last_block(round)) return;
  linger(500);
  for (unsigned i = threadIdx.x; i < num_constants; i += blockDim.x) constants[i] = round;
}

template <bool waits>
__global__ void read_constants(unsigned long long* wrong, unsigned round) {
  if (waits) wait_for_one_before();
  unsigned found = 0;
  for (unsigned i = 0; i < num_constants; i += 4) found += constant_words[i] != round;
  if (found != 0 && threadIdx.x == 0) atomicAdd(wrong, static_cast<unsigned long long>(found));
}

__global__ void fill_mapped(unsigned* mapped, unsigned value) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= num_words / 4) return;
  mapped[i] = value;
  __threadfence_system();
}

__global__ void set_flag(volatile unsigned* flag, unsigned value) {
  __threadfence_system();
  *flag = value;
}

__global__ void nothing(unsigned* data, unsigned value) {
  if (threadIdx.x == 0 && blockIdx.x == 0) data[0] = value;
}

/// Gives up after a second or two, so that nothing hangs for ever.
__global__ void await_flag(volatile unsigned* flag, unsigned value, unsigned* missed) {
  const long long begin = clock64();
  while (*flag < value) {
    if (clock64() - begin > 3'000'000'000LL) {
      *missed = 1;
      return;
    }
  }
}

class Checks {
 public:
  Checks(std::string only, unsigned sums, unsigned turns)
      : only_(std::move(only)), sums_(sums), turns_(turns) {
    CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    CUDA_CHECK(cudaStreamCreateWithFlags(&other_, cudaStreamNonBlocking));
    CUDA_CHECK(cudaMalloc(&data_, num_words * sizeof(unsigned)));
    CUDA_CHECK(cudaMalloc(&wrong_, sizeof *wrong_));
    CUDA_CHECK(cudaHostAlloc(&mapped_, 2 * num_words * sizeof(unsigned), cudaHostAllocMapped));
    std::memset(mapped_, 0, 2 * num_words * sizeof(unsigned));
    CUDA_CHECK(cudaHostGetDevicePointer(&device_mapped_, mapped_, 0));
    void* address = nullptr;
    CUDA_CHECK(cudaGetSymbolAddress(&address, constant_words));
    constants_ = static_cast<unsigned*>(address);
  }

  void run() {
    data("trigger_without_wait", write_data<true>, read_data<false>, true);
    data("trigger_and_wait", write_data<true>, read_data<true>, true);
    data("ordinary_after_trigger", write_data<true>, read_data<false>, false);
    data("ordinary_data", write_data<false>, read_data<false>, false);
    constants("trigger_and_wait_constants", write_constants<true>, read_constants<true>, true);
    constants("ordinary_constants_after_trigger", write_constants<true>, read_constants<false>,
              false);
    constants("ordinary_constants", write_constants<false>, read_constants<false>, false);
    flag();
    spin("spin", 1);
    spin("spin_chain", 4);
    across_streams();
  }

 private:
  bool wanted(const char* name) const { return only_.empty() || only_ == name; }

  void print(const char* name, std::uint64_t num_read) {
    unsigned long long wrong = 0;
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    CUDA_CHECK(cudaMemcpy(&wrong, wrong_, sizeof wrong, cudaMemcpyDeviceToHost));
    print_wrong(name, wrong, num_read);
  }

  template <class Write, class Read>
  void data(const char* name, Write write, Read read, bool programmatic) {
    if (!wanted(name)) return;
    CUDA_CHECK(cudaMemset(data_, 0, num_words * sizeof(unsigned)));
    CUDA_CHECK(cudaMemset(wrong_, 0, sizeof *wrong_));
    CUDA_CHECK(cudaDeviceSynchronize());
    std::uint64_t num_read = 0;
    for (unsigned round = 1; round <= sums_; ++round) {
      launch(false, stream_, grid_of(round), 128, write, data_, device_mapped_ + num_words, round);
      launch(programmatic, stream_, grid_of(round + 5), 128, read, data_, wrong_, round);
      num_read += std::uint64_t{grid_of(round + 5)} * num_words;
    }
    print(name, num_read);
  }

  template <class Write, class Read>
  void constants(const char* name, Write write, Read read, bool programmatic) {
    if (!wanted(name)) return;
    CUDA_CHECK(cudaMemset(wrong_, 0, sizeof *wrong_));
    CUDA_CHECK(cudaDeviceSynchronize());
    std::uint64_t num_read = 0;
    for (unsigned round = 1; round <= sums_; ++round) {
      launch(false, stream_, grid_of(round), 128, write, constants_, device_mapped_ + num_words,
             round);
      launch(programmatic, stream_, grid_of(round + 5), 128, read, wrong_, round);
      num_read += std::uint64_t{grid_of(round + 5)} * num_constants / 4;
    }
    print(name, num_read);
  }

  volatile unsigned* host_flag() const { return mapped_ + num_words / 2; }
  unsigned* device_flag() const { return device_mapped_ + num_words / 2; }

  void await(const char* name, unsigned value) const {
    const auto deadline = Clock::now() + std::chrono::seconds(5);
    while (*host_flag() != value) {
      if (Clock::now() > deadline) give_up(name);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
  }

  void flag() {
    if (!wanted("flag")) return;
    std::uint64_t wrong = 0, num_read = 0;
    const unsigned block = 128, grid = num_words / 4 / block;
    for (unsigned turn = 1; turn <= turns_; ++turn) {
      // Some launches before, so that there is something to be gathered.
      for (unsigned i = 0; i < turn % 4; ++i) launch(false, stream_, 1, 32, nothing, data_, turn);
      launch(false, stream_, grid, block, fill_mapped, device_mapped_, turn);
      launch(false, stream_, 1, 1, set_flag, static_cast<volatile unsigned*>(device_flag()), turn);
      await("flag", turn);
      for (unsigned i = 0; i < num_words / 4; i += 13, ++num_read) {
        wrong += static_cast<volatile unsigned*>(mapped_)[i] != turn;
      }
    }
    std::printf("flag wrong %llu of %llu\n", static_cast<unsigned long long>(wrong),
                static_cast<unsigned long long>(num_read));
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    std::fflush(stdout);
  }

  void spin(const char* name, unsigned num_launches) {
    if (!wanted(name)) return;
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    *host_flag() = 0;
    std::vector<double> times;
    for (unsigned turn = 1; turn <= std::min(turns_, 5000u); ++turn) {
      const auto start = Clock::now();
      for (unsigned i = 1; i < num_launches; ++i)
        launch(false, stream_, 1, 32, nothing, data_, turn);
      launch(false, stream_, 1, 1, set_flag, static_cast<volatile unsigned*>(device_flag()), turn);
      await(name, turn);
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    std::sort(times.begin(), times.end());
    std::printf("%s median %.1f us, 99 %% %.1f us, most %.1f us\n", name, times[times.size() / 2],
                times[times.size() * 99 / 100], times.back());
    CUDA_CHECK(cudaStreamSynchronize(stream_));
    std::fflush(stdout);
  }

  /// With a launch of the waiting kernel's stream held back or not, the other one has to come.
  void across_streams() {
    if (!wanted("across_streams")) return;
    CUDA_CHECK(cudaDeviceSynchronize());
    unsigned* const flag = data_ + 8;
    unsigned* const missed = data_ + 9;
    CUDA_CHECK(cudaMemset(data_, 0, 64));
    CUDA_CHECK(cudaDeviceSynchronize());
    std::vector<double> times;
    const unsigned turns = std::min(turns_, 1000u);
    for (unsigned turn = 1; turn <= turns; ++turn) {
      const auto start = Clock::now();
      for (unsigned i = 0; i < turn % 3; ++i) launch(false, stream_, 1, 32, nothing, data_, turn);
      launch(false, stream_, 1, 1, await_flag, static_cast<volatile unsigned*>(flag), turn, missed);
      for (unsigned i = 0; i < turn % 5; ++i)
        launch(false, other_, 1, 32, nothing, data_ + 1, turn);
      launch(false, other_, 1, 1, set_flag, static_cast<volatile unsigned*>(flag), turn);
      // No call of the driver after every second turn: both streams are left to themselves.
      if (turn % 2 == 0) {
        CUDA_CHECK(cudaStreamSynchronize(stream_));
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
        if (times.back() > 1e6) break;  // one was missed, and more would take as long
      } else {
        while (Clock::now() - start < std::chrono::microseconds(150)) {
        }
      }
    }
    unsigned was_missed = 0;
    CUDA_CHECK(cudaMemcpy(&was_missed, missed, sizeof was_missed, cudaMemcpyDeviceToHost));
    std::sort(times.begin(), times.end());
    std::printf("across_streams wrong %u of %u\n", was_missed, turns);
    if (!times.empty()) {
      std::printf("across_streams median %.1f us, most %.1f us\n", times[times.size() / 2],
                  times.back());
    }
    std::fflush(stdout);
  }

  const std::string only_;
  const unsigned sums_, turns_;
  cudaStream_t stream_ = nullptr, other_ = nullptr;
  unsigned* data_ = nullptr;
  unsigned long long* wrong_ = nullptr;
  unsigned* mapped_ = nullptr;
  unsigned* device_mapped_ = nullptr;
  unsigned* constants_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  Checks(option(argc, argv, "--only", std::string()),
         static_cast<unsigned>(option(argc, argv, "--sums", 2000L)),
         static_cast<unsigned>(option(argc, argv, "--turns", 20000L)))
      .run();
  return 0;
}
