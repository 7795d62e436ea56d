// A program with a function and a choice, for tests of what one run leaves to the next: says what
// each of them came to. With "crash" the fastest implementation takes the process down; with "slow"
// it is as slow as the default, as is what was the function's fastest config. With "hang" it
// launches what is to hang, in blocks of 96, and with "stuck" it never comes back; then somebody
// interrupts it. FUNCTION_VERSION, CHOICE_VERSION and FAST_VERSION are the versions of the
// function, of the choice and of its fastest implementation.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "added.hpp"

namespace {

/// As from a terminal, once it is said what does not end.
[[noreturn]] void stay_until_interrupted() {
  using namespace std::chrono_literals;
  for (int i = 0; i < 500 && log_lines({"reason=trial_timeout"}).empty(); ++i)
    std::this_thread::sleep_for(20ms);
  std::raise(SIGINT);
  std::abort();
}

std::string version(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const how = argc == 2 ? argv[1] : "";
  const bool crashes = std::strcmp(how, "crash") == 0;
  const bool is_slow = std::strcmp(how, "slow") == 0;
  const bool hangs = std::strcmp(how, "hang") == 0;
  const bool is_stuck = std::strcmp(how, "stuck") == 0;
  if (argc > 2 || (argc == 2 && !crashes && !is_slow && !hangs && !is_stuck)) {
    std::puts("usage: choice_runs_client [crash|slow|hang|stuck]");
    return 2;
  }
  const auto threads = [&](std::int64_t wanted) {
    return is_slow && wanted == 128 ? 256U : static_cast<unsigned>(wanted);
  };
  const CUdeviceptr y = Program::on().floats(8);
  std::int64_t block = 0;
  auto scale = contextune::autotune(
      "scale", contextune::ConfigSpace().parameter("block", {256, 128}),
      [&](const contextune::Config& config) {
        block = config.get_int("block");
        return Program::on().add(y, 8, 1.0F, 1, threads(block));
      },
      {.n_warmup = 0, .n_repeat = 2, .repeatable = true, .version = version("FUNCTION_VERSION")});
  scale();
  std::printf("block %d\n", static_cast<int>(block));
  std::fflush(stdout);

  bool has_hung = false;
  std::vector<std::string> ran;
  Add add("add", quick({.version = version("CHOICE_VERSION")}));
  add.key([](CUdeviceptr, int n) { return n; })
      .buffers(memory_of)
      .add("plain", adding(ran, "plain", 256))
      .add("fast",
           [&](const contextune::Config&, CUdeviceptr at, int n) {
             if (crashes && n == 8) std::abort();
             if (is_stuck && n == 8) stay_until_interrupted();
             if (!hangs || n != 8) return Program::on().add(at, n, 1.0F, 1, threads(128));
             has_hung = true;
             return Program::on().add(at, n, 1.0F, 1, 96);
           },
           {.version = version("FAST_VERSION")})
      .add("middle", adding(ran, "middle", 64))
      .add("wrong", adding(ran, "wrong", 128, 2.0F));
  add(y, 8);
  if (has_hung) stay_until_interrupted();
  add(y, 4);
  for (const contextune::ChoiceTiming& one : add.timings({}, 8)) {
    std::printf("%s state=%d samples=%zu us=%.3f%s\n", one.implementation.c_str(),
                static_cast<int>(one.state), one.samples, one.seconds * 1e6,
                one.is_winner ? " winner" : "");
  }
}
