#include "gpu/driver/detached_process.hpp"

#include <fcntl.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <string_view>

#include <contextune/error.hpp>

#include "environment/variables.hpp"
#include "host/own_thread.hpp"

namespace contextune::gpu {
namespace {

constexpr int output = 3;  ///< descriptor of the program's output in the process between

struct Run {
  const char* path = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  double seconds = 0;
  int error = 0;
  const char* output = nullptr;  ///< mapped
  std::size_t output_bytes = 0;
};

int spawn(const Run& run, pid_t& pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  (void)posix_spawn_file_actions_init(&files);
  (void)posix_spawnattr_init(&attributes);
  (void)posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  (void)posix_spawn_file_actions_adddup2(&files, output, 1);
  (void)posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  (void)posix_spawn_file_actions_addclose(&files, output);
  sigset_t none;
  sigset_t all;
  sigemptyset(&none);
  sigfillset(&all);
  (void)posix_spawnattr_setsigmask(&attributes, &none);
  (void)posix_spawnattr_setsigdefault(&attributes, &all);
  (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error =
      posix_spawn(&pid, run.path, &files, &attributes, run.arguments, run.environment);
  (void)posix_spawnattr_destroy(&attributes);
  (void)posix_spawn_file_actions_destroy(&files);
  return error;
}

// Its memory, which it shares with us, outlives it; its descriptors do not.
void map_output(Run& run) {
  struct stat status {};
  if (fstat(output, &status) != 0 || status.st_size == 0) return;
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* const text = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, output, 0);
  if (text == MAP_FAILED) {
    run.error = errno;
    return;
  }
  run.output = static_cast<const char*>(text);
  run.output_bytes = bytes;
}

// In a process of its own, the program's parent, which shares our memory while our thread stands
// still. Its descriptors are copies: none may keep a pipe of the program that we are in open.
int between(void* given) {
  auto& run = *static_cast<Run*>(given);
  (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
  (void)syscall(SYS_close_range, 0U, ~0U, 0U);
  // Made here, where the program can neither close it nor open a file of its own under its number.
  const int file = memfd_create("contextune", MFD_CLOEXEC);
  if (file < 0) run.error = errno;
  (void)dup2(file, output);
  pid_t pid = 0;
  if (run.error == 0) run.error = spawn(run, pid);
  constexpr double poll_seconds = 2e-3;
  const timespec pause{0, static_cast<long>(poll_seconds * 1e9)};
  for (double waited = 0; run.error == 0; waited += poll_seconds) {
    const pid_t ended = waitpid(pid, nullptr, WNOHANG);
    if (ended == pid || (ended < 0 && errno != EINTR)) break;
    if (waited > run.seconds) {
      (void)kill(pid, SIGKILL);
      (void)waitpid(pid, nullptr, 0);
      run.error = ETIMEDOUT;
    }
    (void)nanosleep(&pause, nullptr);
  }
  if (run.error == 0) map_output(run);
  _exit(0);
}

void run_detached(Run& run) {
  struct alignas(16) Stack {
    std::array<std::byte, std::size_t{64} * 1024> bytes;
  };
  const auto stack = std::make_unique<Stack>();
  // The process between has the program's handlers, in the program's memory: the end of its child
  // must not run one. It has no exit signal of its own, so that only a wait that asks for such
  // processes finds it.
  pid_t pid = -1;
  {
    const host::SignalsBlocked blocked;
    pid = clone(&between, stack->bytes.data() + stack->bytes.size(), CLONE_VM | CLONE_VFORK, &run);
    if (pid < 0) run.error = errno;
  }
  while (pid > 0 && waitpid(pid, nullptr, static_cast<int>(__WCLONE)) < 0 && errno == EINTR) {
  }
}

bool stays_here(std::string_view variable) {
  constexpr std::string_view names[] = {"LD_PRELOAD=", "LD_AUDIT=", "NVTX_INJECTION64_PATH=",
                                        "CUDA_INJECTION64_PATH=", "CONTEXTUNE_"};
  return std::ranges::any_of(names,
                             [&](std::string_view name) { return variable.starts_with(name); });
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size());
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::vector<std::string> environment_for_detached() {
  std::vector<std::string> handed_on;
  for (const std::string_view entry : variables()) {
    if (!stays_here(entry)) handed_on.emplace_back(entry);
  }
  return handed_on;
}

std::string output_of_detached(const std::vector<std::string>& command,
                               const std::vector<std::string>& environment, double seconds) {
  const std::string& path = command.front();
  const std::vector<char*> arguments = pointers_to(command);
  const std::vector<char*> variables = pointers_to(environment);
  Run run{path.c_str(), arguments.data(), variables.data(), seconds};
  run_detached(run);
  if (run.error == ETIMEDOUT) {
    throw Error(path + ": has not ended after " + std::to_string(static_cast<int>(seconds)) +
                " s and was killed");
  }
  if (run.error != 0) throw Error(path + ": cannot be started: " + std::strerror(run.error));

  if (run.output == nullptr) return {};
  std::string text(run.output, run.output_bytes);
  (void)munmap(const_cast<char*>(run.output), run.output_bytes);
  return text;
}

}  // namespace contextune::gpu
