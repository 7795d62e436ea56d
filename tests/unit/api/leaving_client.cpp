// A program that ends in the middle of a region, in the way that its argument says. What it prints
// and how it ends must be the same with contextune and without.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <stdexcept>
#include <thread>

#include <contextune/contextune.hpp>

#include "program.hpp"

namespace {

using Clock = std::chrono::steady_clock;

contextune::Tunable<std::function<CUresult(const contextune::Config&)>> adder(
    const Program& program, CUdeviceptr y) {
  return {"add", contextune::ConfigSpace().parameter("block", {256, 64, 128}),
          [&program, y](const contextune::Config& config) {
            return program.add(y, 8, 1.0F, 1, static_cast<unsigned>(config.get_int("block")));
          }};
}

/// Ends amid a body whose GPU waits until all work is there.
void end_amid_slow_body(const Program& program, CUdeviceptr y) {
  static Clock::time_point ended;
  std::atexit([] {
    Program::synchronise();
    std::puts(Clock::now() - ended < std::chrono::milliseconds(80) ? "idle" : "late");
  });
  auto add = adder(program, y);
  int runs = 0;
  CONTEXTUAL_AUTOTUNE("slow", {.repeatable = true, .n_warmup = 0, .n_repeat = 2}) {
    add();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    program.launch("set", y, 8, 1.0F, 1, 256);
    if (++runs < 10 && contextune_current_state() == contextune_state_full) continue;
    ended = Clock::now();
    std::exit(10);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  if (argc != 2 || std::strcmp(how, "--help") == 0) {
    std::puts("usage: leaving_client exit|quick_exit|abort|throw|sigterm|sigkill|thread|slow|end");
    return argc == 2 ? 0 : 2;
  }
  const Program& program = Program::on();
  const CUdeviceptr y = program.floats(8);
  std::printf("in the region\n");
  std::fflush(stdout);
  std::atexit([] { std::puts("at exit"); });
  if (std::strcmp(how, "slow") == 0) end_amid_slow_body(program, y);
  auto add = adder(program, y);
  int runs = 0;
  CONTEXTUAL_AUTOTUNE("leaving", {.restore = {{reinterpret_cast<void*>(y), 32}}}) {
    add();
    // Some passes in, where there are passes.
    if (++runs < 3 && contextune_current_state() == contextune_state_full) {
      if (std::strcmp(how, "end") != 0) continue;
    }
    if (std::strcmp(how, "exit") == 0) std::exit(7);
    if (std::strcmp(how, "quick_exit") == 0) std::_Exit(8);
    if (std::strcmp(how, "abort") == 0) std::abort();
    if (std::strcmp(how, "throw") == 0) throw std::runtime_error("nobody catches this");
    if (std::strcmp(how, "sigterm") == 0) std::raise(SIGTERM);
    if (std::strcmp(how, "sigkill") == 0) std::raise(SIGKILL);
    if (std::strcmp(how, "thread") == 0) std::thread([] { std::exit(9); }).join();
  }
  std::printf("y is %g\n", static_cast<double>(Program::read(y, 1).front()));
  return 3;
}
