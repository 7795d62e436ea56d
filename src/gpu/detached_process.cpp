#include "gpu/detached_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include <contextune/error.hpp>

namespace contextune::gpu {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const noexcept { return number_; }
  void close() noexcept {
    if (number_ >= 0) (void)::close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

struct Spawn {
  const char* path = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  int output = -1;
  pid_t pid = 0;
  int error = 0;
};

// In a process of its own for an instant, which shares our memory while our thread waits for it.
int spawn(void* given) {
  auto& request = *static_cast<Spawn*>(given);
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  (void)posix_spawn_file_actions_init(&files);
  (void)posix_spawnattr_init(&attributes);
  (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  (void)posix_spawn_file_actions_adddup2(&files, request.output, 1);
  (void)posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  (void)posix_spawnattr_setsigmask(&attributes, &none);
  (void)posix_spawnattr_setsigdefault(&attributes, &all);
  (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  request.error = posix_spawn(&request.pid, request.path, &files, &attributes, request.arguments,
                              request.environment);
  (void)posix_spawnattr_destroy(&attributes);
  (void)posix_spawn_file_actions_destroy(&files);
  _exit(0);
}

// The program's parent is the process above, which is gone at once. That one has no exit signal, so
// only a wait that asks for such processes finds it.
void start_detached(Spawn& request) {
  struct alignas(16) Stack {
    std::array<std::byte, std::size_t{64} * 1024> bytes;
  };
  const auto stack = std::make_unique<Stack>();
  // It has the program's handlers, in the program's memory: the end of its child must not run one.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t between =
      clone(&spawn, stack->bytes.data() + stack->bytes.size(), CLONE_VM | CLONE_VFORK, &request);
  if (between < 0) request.error = errno;
  (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
  while (between > 0 && waitpid(between, nullptr, static_cast<int>(__WCLONE)) < 0 &&
         errno == EINTR) {
  }
}

bool stays_here(std::string_view variable) {
  constexpr std::string_view names[] = {
      "LD_PRELOAD=",      "LD_AUDIT=",  "NVTX_INJECTION64_PATH=", "CUDA_INJECTION64_PATH=",
      "LD_LIBRARY_PATH=", "CONTEXTUNE_"};
  return std::ranges::any_of(names,
                             [&](std::string_view name) { return variable.starts_with(name); });
}

std::vector<char*> environment_with(std::string& library_path) {
  std::vector<char*> variables{library_path.data()};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (!stays_here(*entry)) variables.push_back(*entry);
  }
  variables.push_back(nullptr);
  return variables;
}

}  // namespace

std::string output_of_detached(const std::vector<std::string>& command,
                               const std::string& library_path, double seconds) {
  const std::string& path = command.front();
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(path + ": no pipe to it: " + std::strerror(errno));
  }
  const Descriptor from(ends[0]);
  Descriptor to(ends[1]);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::string variable = "LD_LIBRARY_PATH=" + library_path;
  const std::vector<char*> environment = environment_with(variable);
  Spawn request{path.c_str(), arguments.data(), environment.data(), to.number()};
  start_detached(request);
  to.close();
  if (request.error != 0) {
    throw Error(path + ": cannot be started: " + std::strerror(request.error));
  }

  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  std::string output;
  std::array<char, 65536> piece{};
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd wait{from.number(), POLLIN, 0};
    const int ready = left > 0 ? poll(&wait, 1, static_cast<int>(left)) : 0;
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) {
      (void)kill(request.pid, SIGKILL);
      throw Error(path + ": has not ended after " + std::to_string(static_cast<int>(seconds)) +
                  " s and was killed");
    }
    const ssize_t count = read(from.number(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error(path + ": cannot be read: " + std::strerror(errno));
    if (count == 0) return output;
    output.append(piece.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace contextune::gpu
