// A function that ranks tune together, whose work waits for no other rank. Writes to PATH.<rank>
// when each of its runs began and ended, on the clock that all processes of a host have, and its
// block, and prints a hash of what is left, which is the same whatever ran.
//   function_ranks PATH [WORD RANK]
// Words, of the rank whose number follows, at one of its runs in the middle of the tuning:
//   slow   takes some milliseconds, and so does each of its runs
//   dies   ends
//   stops  is stopped until somebody continues it
//   leaves throws with the default
// Or the function does not say whether it may be run again, on any rank:
//   unsaid   it may
//   adds     on the rank whose number follows it adds to what is there
//   busy     that rank has another thread meanwhile
//   stumbles there its second run throws
// Or what is called is another function, of sizes, with two hints:
//   hints  on all ranks, but the rank whose number follows has the first of them only
#include <cuda.h>
#include <signal.h>
#include <unistd.h>
#include <simcuda/kernel.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include <contextune/contextune.hpp>

#include "rank_meeting.hpp"
#include "simulated_program.hpp"

namespace {

using contextune::Config;
using contextune::ConfigSpace;

constexpr std::size_t num_elements = 1024;
constexpr std::size_t eventful_run = 2;  // of the default, after the one that shows what there is

void fill(const simcuda::Thread& thread, int n, unsigned adds, unsigned* y) {
  for (std::size_t i = thread.global_x(); i < static_cast<std::size_t>(n); i += thread.stride_x())
    y[i] = 7 + static_cast<unsigned>(i) + adds * y[i];
}
void describe_fill(const simcuda_launch* launch, simcuda_work* work) {
  work->block_cycles = launch->block[0] == 128 ? 20e3 : launch->block[0] == 64 ? 30e3 : 60e3;
}
const simcuda_kernel fill_kernel = simcuda::per_thread_kernel<&fill>("fill", &describe_fill);

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

struct Run {
  std::int64_t begin_ns, end_ns;
  unsigned block;
};

class Program {
 public:
  Program(std::string path, std::string word, bool is_meant)
      : path_(std::move(path)),
        word_(is_meant ? word : ""),
        has_hints_(word == "hints"),
        is_unsaid_(word == "unsaid" || word == "adds" || word == "busy" || word == "stumbles") {
    CHECK(cuMemAlloc(&memory_, num_elements * sizeof(unsigned)));
    CHECK(cuMemsetD32(memory_, 0, num_elements));
  }

  void tune() {
    if (has_hints_) return tune_sizes();
    auto filled =
        contextune::autotune("filled", ConfigSpace().parameter("block", {256, 64, 128, 1024}),
                             [this](const Config& config) {
                               return run(static_cast<unsigned>(config.get_int("block")));
                             },
                             {.repeatable = !is_unsaid_});
    std::atomic<bool> is_over{word_ != "busy"};
    std::thread other([&] { is_over.wait(false); });
    if (is_over) other.join();
    try {
      CHECK(filled());
    } catch (const std::runtime_error&) {
      CHECK(launch(256));
      // It goes on with something else for a while: nobody is to wait for its end.
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    is_over = true;
    is_over.notify_all();
    if (other.joinable()) other.join();
  }

  [[nodiscard]] std::uint64_t hash() const {
    std::uint64_t hash = 14695981039346656037ULL;
    std::vector<unsigned> values(num_elements);
    CHECK(cuMemcpyDtoH(values.data(), memory_, values.size() * sizeof values[0]));
    for (const unsigned value : values) hash = (hash ^ value) * 1099511628211ULL;
    return hash;
  }

  void write_runs(int rank) const {
    std::ofstream file(path_ + "." + std::to_string(rank));
    for (const Run& run : runs_)
      file << run.begin_ns << ' ' << run.end_ns << ' ' << run.block << '\n';
  }

 private:
  void tune_sizes() {
    std::vector<std::uint64_t> hints = {512, 4096};
    if (word_ == "hints") hints.pop_back();
    auto filled =
        contextune::autotune(
            "filled", ConfigSpace().parameter("block", {256, 64, 128}),
            [this](const Config& config, int) {
              return run(static_cast<unsigned>(config.get_int("block")));
            },
            {.repeatable = true, .hints = hints, .unseen = contextune::UnseenSize::Nearest})
            .size([](int n) { return n; })
            .inputs([](std::uint64_t size) { return std::tuple(static_cast<int>(size)); });
    CHECK(filled(600));  // of another size than both
    CHECK(filled(600));
    static_cast<void>(filled.tune(600));
  }

  [[nodiscard]] CUresult launch(unsigned block) {
    int n = num_elements;
    unsigned adds = word_ == "adds" ? 1 : 0;
    void* arguments[] = {&n, &adds, &memory_};
    return cuLaunchKernel(function_, 4, 1, 1, block, 1, 1, 0, nullptr, arguments, nullptr);
  }

  [[nodiscard]] CUresult run(unsigned block) {
    const std::int64_t begin = now_ns();
    if (runs_.size() == eventful_run) {
      if (word_ == "dies") std::_Exit(0);
      if (word_ == "stops") raise(SIGSTOP);
      if (word_ == "leaves") throw std::runtime_error("not now");
    }
    if (word_ == "stumbles" && runs_.size() == 1) throw std::runtime_error("not again");
    const CUresult result = launch(block);
    if (word_ == "slow") std::this_thread::sleep_for(std::chrono::milliseconds(5));
    runs_.push_back({begin, now_ns(), block});
    return result;
  }

  const std::string path_, word_;
  const bool has_hints_, is_unsaid_;
  const CUfunction function_ = load(fill_kernel);
  CUdeviceptr memory_ = 0;
  std::vector<Run> runs_;
};

/// Variables that a launcher within the process sets, as Python's multiprocessing has it: those
/// that begin with LATER_, by what follows.
void set_later_variables() {
  const std::string_view later = "LATER_";
  std::vector<std::string> found;
  for (char** one = environ; *one != nullptr; ++one)
    if (std::string_view(*one).starts_with(later)) found.emplace_back(*one + later.size());
  for (const std::string& one : found) {
    const std::size_t equals = one.find('=');
    setenv(one.substr(0, equals).c_str(), one.substr(equals + 1).c_str(), 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  set_later_variables();
  const Place place = place_of_this_process();
  Program program(argv[1], argc > 3 ? argv[2] : "", argc > 3 && std::atoi(argv[3]) == place.rank);
  program.tune();
  std::printf("rank %d: %016llx\n", place.rank, static_cast<unsigned long long>(program.hash()));
  program.write_runs(place.rank);
  return 0;
}
