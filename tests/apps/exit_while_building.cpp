// A program that ends while a kernel's source is being built must end with its own status.
// Started with a number of milliseconds it is that program; without, it tries several.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include <contextune/error.hpp>

#include "gpu/driver/detached_process.hpp"
#include "gpu/driver/kernel_access.hpp"
#include "gpu/driver/source_build.hpp"

namespace {

constexpr int own_status = 7;
constexpr int skipped = 4;  // as ctest has it

void write_source(const std::string& path, int kernels, int depth) {
  std::ofstream source(path);
  source << "template <int N> struct F { static __device__ float f(float x) {"
            " return F<N - 1>::f(x) * x + N; } };\n"
            "template <> struct F<0> { static __device__ float f(float x) { return x; } };\n";
  for (int i = 0; i < kernels; ++i) {
    source << "extern \"C\" __global__ void k" << i
           << "(float* x) { for (int j = 0; j < 100; ++j) x[j] = F<" << depth << ">::f(x[j]); }\n";
  }
}

int end_while_building(const std::string& source, int milliseconds) {
  static std::atomic<bool> started{false};
  std::thread([source] {
    started = true;
    try {
      (void)contextune::gpu::build_source(source, {}, "k0", 90,
                                          contextune::gpu::environment_for_detached());
    } catch (const contextune::Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
  }).detach();
  while (!started) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  std::exit(own_status);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) return end_while_building(argv[1], std::atoi(argv[2]));
  const std::string small = std::string(argv[0]) + ".small.cu";
  const std::string large = std::string(argv[0]) + ".large.cu";
  write_source(small, 1, 1);
  write_source(large, 60, 100);
  try {
    const auto built = contextune::gpu::build_source(small, {}, "k0", 90,
                                                     contextune::gpu::environment_for_detached());
    std::printf("built %s: %zu bytes\n", built.symbol.c_str(), built.image.size());
    if (built.symbol != "k0" || built.image.size() < 100) return 1;
    // From its PTX a replay knows that it may be compared on other contents.
    const auto accesses = contextune::gpu::read_ptx_accesses(built.ptx);
    if (!accesses.contains("k0") || !accesses.at("k0").unknown.empty()) {
      std::printf("its PTX does not tell what it reads and writes\n");
      return 1;
    }
  } catch (const contextune::Error& error) {
    std::printf("%s\n", error.what());
    return std::string(error.what()).find("NVRTC was not found") == std::string::npos ? 1 : skipped;
  }
  int failures = 0;
  for (const int delay : {0, 2, 10, 50, 200, 400}) {
    const std::string command =
        std::string("exec ") + argv[0] + " " + large + " " + std::to_string(delay);
    const int status = std::system(command.c_str());
    const bool right = WIFEXITED(status) && WEXITSTATUS(status) == own_status;
    std::printf("exit after %d ms of a build: wait status 0x%x%s\n", delay,
                static_cast<unsigned>(status), right ? "" : ", wrong");
    failures += right ? 0 : 1;
  }
  return failures == 0 ? 0 : 1;
}
