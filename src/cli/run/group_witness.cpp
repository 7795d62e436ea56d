#include "cli/run/group_witness.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "cli/run/descriptors.hpp"

namespace contextune::cli {
namespace {

constexpr int reply_timeout_ms = 200;
constexpr int look_at_children_ms = 50;

constexpr char tell_signals = '?';
constexpr char wake_parent = 'w';
constexpr char wake_nobody = 'n';

std::uint64_t bit_of(int signal) {
  return 1ULL << (static_cast<unsigned>(signal) & 63U);
}

/// The facts that /proc gives about a process; '\0' is the state of one that is not there.
struct Seen {
  char state = '\0';
  pid_t parent = -1;
  [[nodiscard]] bool is_stopped() const { return state == 'T' || state == 't'; }
};

Seen look_at(pid_t pid) {
  std::array<char, 32> path{};
  static_cast<void>(std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid));
  const int file = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 256> text{};  // behind a name of at most 64 bytes
  const ssize_t size = read(file, text.data(), text.size() - 1);
  close(file);
  Seen seen;
  const char* const name_end = size <= 0 ? nullptr : std::strrchr(text.data(), ')');
  if (name_end == nullptr || std::sscanf(name_end + 1, " %c %d", &seen.state, &seen.parent) != 2)
    return {};
  return seen;
}

bool some_go_on(const std::vector<pid_t>& children, pid_t parent) {
  return std::any_of(children.begin(), children.end(), [parent](pid_t child) {
    const Seen seen = look_at(child);
    return seen.parent == parent && !seen.is_stopped();
  });
}

std::uint64_t take_signals(const sigset_t& all) {
  std::uint64_t seen = 0;
  const timespec no_time{0, 0};
  for (int signal = sigtimedwait(&all, nullptr, &no_time); signal > 0;
       signal = sigtimedwait(&all, nullptr, &no_time)) {
    seen |= bit_of(signal);
  }
  return seen;
}

[[noreturn]] void be_witness(pid_t parent, const std::vector<pid_t>& children, int request,
                             int reply) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  close_all_but({request, reply});
  bool wakes = false;
  while (true) {
    pollfd waiting{request, POLLIN, 0};
    if (poll(&waiting, 1, wakes ? look_at_children_ms : -1) == 0) {
      if (look_at(parent).is_stopped() && some_go_on(children, parent)) kill(parent, SIGCONT);
      continue;
    }
    char ask = 0;
    if (read(request, &ask, 1) != 1) break;
    if (ask != tell_signals) {
      wakes = ask == wake_parent;
      continue;
    }
    const std::uint64_t seen = take_signals(all);
    if (write(reply, &seen, sizeof seen) != static_cast<ssize_t>(sizeof seen)) break;
  }
  _exit(0);
}

}  // namespace

GroupWitness::GroupWitness(const std::vector<pid_t>& children) {
  std::array<int, 2> request{-1, -1};
  std::array<int, 2> reply{-1, -1};
  if (pipe2(request.data(), O_CLOEXEC) != 0) return;
  if (pipe2(reply.data(), O_CLOEXEC) != 0) {
    close(request[0]);
    close(request[1]);
    return;
  }
  const pid_t parent = getpid();
  helper_ = fork();
  if (helper_ == 0) be_witness(parent, children, request[0], reply[1]);
  close(request[0]);
  close(reply[1]);
  request_ = request[1];
  reply_ = reply[0];
}

GroupWitness::~GroupWitness() {
  if (request_ >= 0) close(request_);
  if (reply_ >= 0) close(reply_);
  if (helper_ <= 0) return;
  kill(helper_, SIGKILL);
  while (waitpid(helper_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void GroupWitness::wake_with_children(bool wake) const {
  if (helper_ <= 0) return;
  // Should it be gone, a stop is only what it would be without it.
  [[maybe_unused]] const ssize_t written = write(request_, wake ? &wake_parent : &wake_nobody, 1);
}

bool GroupWitness::saw(int signal) {
  if (helper_ <= 0) return false;
  // The sender goes through the group one process at a time; we may be woken before it has come
  // to the helper.
  const timespec grace{0, 5'000'000};
  nanosleep(&grace, nullptr);
  pollfd waiting{reply_, POLLIN, 0};
  std::uint64_t seen = 0;
  if (write(request_, &tell_signals, 1) == 1 && poll(&waiting, 1, reply_timeout_ms) == 1 &&
      read(reply_, &seen, sizeof seen) == static_cast<ssize_t>(sizeof seen)) {
    seen_ |= seen;
  }
  const bool result = (seen_ & bit_of(signal)) != 0;
  seen_ &= ~bit_of(signal);
  return result;
}

}  // namespace contextune::cli
