#include "cli/group_witness.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "cli/descriptors.hpp"

namespace contextune::cli {
namespace {

constexpr int reply_timeout_ms = 200;

std::uint64_t bit_of(int signal) {
  return 1ULL << (static_cast<unsigned>(signal) & 63U);
}

[[noreturn]] void be_witness(pid_t parent, int request, int reply) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  close_all_but({request, reply});
  char ask = 0;
  while (read(request, &ask, 1) == 1) {
    std::uint64_t seen = 0;
    const timespec no_time{0, 0};
    for (int signal = sigtimedwait(&all, nullptr, &no_time); signal > 0;
         signal = sigtimedwait(&all, nullptr, &no_time)) {
      seen |= bit_of(signal);
    }
    if (write(reply, &seen, sizeof seen) != static_cast<ssize_t>(sizeof seen)) break;
  }
  _exit(0);
}

}  // namespace

GroupWitness::GroupWitness() {
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
  if (helper_ == 0) be_witness(parent, request[0], reply[1]);
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

bool GroupWitness::saw(int signal) {
  if (helper_ <= 0) return false;
  // The sender goes through the group one process at a time; we may be woken before it has come
  // to the helper.
  const timespec grace{0, 5'000'000};
  nanosleep(&grace, nullptr);
  pollfd waiting{reply_, POLLIN, 0};
  std::uint64_t seen = 0;
  if (write(request_, "?", 1) == 1 && poll(&waiting, 1, reply_timeout_ms) == 1 &&
      read(reply_, &seen, sizeof seen) == static_cast<ssize_t>(sizeof seen)) {
    seen_ |= seen;
  }
  const bool result = (seen_ & bit_of(signal)) != 0;
  seen_ &= ~bit_of(signal);
  return result;
}

}  // namespace contextune::cli
