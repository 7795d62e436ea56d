// Measures how long the first entry of a region keeps the host in a program that starts with stored
// winners, and in the same program bare, on the simulated driver: processes in alternation, since a
// process has one first entry.
#include <cudaProfiler.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "child.hpp"
#include "settings.hpp"
#include "simulated_kernels.hpp"

namespace {

constexpr const char* usage =
    "usage: first_entry [--frontend libcontextune_preload.so] [--processes N]\n"
    "Tunes a region of two kernels once, and starts its program N times with the stored winners\n"
    "and N times bare. Prints how long the first entry, the second and a late one took the host, "
    "in\n"
    "us.\n";
constexpr int entries = 400;
constexpr int tuning_entries = 20000;
constexpr std::size_t n = 4096;

void describe(const simcuda_launch* launch, simcuda_work* work) {
  work->block_cycles = launch->block[0] == 256 ? 20e3 : 40e3;
}

void relax(const simcuda::Thread& thread, float* data) {
  float& element = data[thread.global_x()];
  element = 0.75F * element + 1.0F;
}
void square(const simcuda::Thread& thread, float* data) {
  float& element = data[thread.global_x()];
  element = 0.5F * element * element;
}

const simcuda_kernel relax_kernel = simcuda::per_thread_kernel<&relax>("relax", &describe);
const simcuda_kernel square_kernel = simcuda::per_thread_kernel<&square>("square", &describe);

/// The program: goes through the region that often, and writes two times to the file.
int run_program_in_region(const std::string& file, int times) {
  static const std::array<const simcuda_kernel*, 2> kernels{&relax_kernel, &square_kernel};
  CUmodule module = bench::load_kernels(
      kernels, "access relax 0=rw\naccess square 0=rw\ncode relax r\ncode square s\n");
  std::array<CUfunction, 2> functions{};
  bench::require(cuModuleGetFunction(&functions[0], module, "relax"));
  bench::require(cuModuleGetFunction(&functions[1], module, "square"));
  CUdeviceptr data = 0;
  bench::require(cuMemAlloc(&data, n * sizeof(float)));
  bench::require(cuMemsetD32(data, 0, n));
  const auto launch = [&](CUfunction function) {
    void* arguments[] = {&data};
    bench::require(
        cuLaunchKernel(function, n / 64, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
  };
  for (const CUfunction function : functions) launch(function);
  bench::require(cuCtxSynchronize());
  std::vector<double> took;
  for (int i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    bench::require(cuProfilerStart());
    for (const CUfunction function : functions) launch(function);
    bench::require(cuProfilerStop());
    const std::chrono::duration<double, std::micro> one = std::chrono::steady_clock::now() - begin;
    took.push_back(one.count());
    if (i % 4 == 3) bench::require(cuCtxSynchronize());
  }
  std::ofstream(file) << took.front() << ' ' << took[1] << ' ' << took.back() << '\n';
  return 0;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Times of the first entry, the second and a late one, each over all processes.
struct Times {
  std::array<std::vector<double>, 3> entries;

  void take(const std::string& file) {
    std::ifstream from(file);
    for (auto& values : entries)
      if (!(from >> values.emplace_back())) throw std::runtime_error("no times in " + file);
  }
  void print(const char* name) const {
    const auto& first = entries[0];
    std::printf("%-8s %10.0f %8.0f .. %-8.0f %8.0f %10.1f   simulated driver\n", name,
                median(first), *std::ranges::min_element(first), *std::ranges::max_element(first),
                median(entries[1]), median(entries[2]));
  }
};

void write_space(const std::string& file) {
  std::ofstream space(file);
  for (const char* kernel : {"relax", "square"}) {
    space << "kernel \"" << kernel
          << "\" {\n  space = { block = { 64, 128, 256, 512 } },\n"
             "  apply = function(config, launch)\n    launch.grid.x = 4096 // config.block\n"
             "    launch.block.x = config.block\n  end,\n}\n";
  }
}

int run_all(int argc, char** argv) {
  const std::filesystem::path self = bench::this_program();
  std::string frontend = self.parent_path().parent_path() / "lib/libcontextune_preload.so";
  int processes = 21;
  bench::read_settings(argc, argv, usage, {{"--frontend", &frontend}, {"--processes", &processes}});
  if (!std::filesystem::exists(frontend)) throw std::runtime_error(frontend + " does not exist");
  std::string folder = std::filesystem::temp_directory_path() / "contextune-first-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary folder");
  write_space(folder + "/space.lua");
  std::printf("%-8s %10s %20s %8s %10s\n", "host, us", "first", "(range)", "second", "later");
  for (const char* mode : {"live", "replay"}) {
    const std::vector<std::string> tuned{"LD_PRELOAD=" + frontend,
                                         "CONTEXTUNE_REGION=profiler",
                                         std::string("CONTEXTUNE_MODE=") + mode,
                                         "CONTEXTUNE_SPACE=" + folder + "/space.lua",
                                         "CONTEXTUNE_LOG_DIR=" + folder + "/logs",
                                         "CONTEXTUNE_CACHE_DIR=" + folder + "/store-" + mode,
                                         "CONTEXTUNE_CONFIRM=0",
                                         "CONTEXTUNE_MAX_SLOWDOWN=0",
                                         "CONTEXTUNE_STORE=tune"};
    const auto run = [&](int times, const std::vector<std::string>& settings) {
      bench::run_program({self, "--program", folder + "/times", std::to_string(times)}, settings);
    };
    run(tuning_entries, tuned);
    Times bare;
    Times stored;
    for (int i = 0; i < processes; ++i) {
      run(entries, {"LD_PRELOAD"});
      bare.take(folder + "/times");
      run(entries, tuned);
      stored.take(folder + "/times");
    }
    bare.print("bare");
    stored.print(mode);
  }
  std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 4 && std::string(argv[1]) == "--program")
      return run_program_in_region(argv[2], std::atoi(argv[3]));
    return run_all(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "first_entry: %s\n", error.what());
    return 3;
  }
}
