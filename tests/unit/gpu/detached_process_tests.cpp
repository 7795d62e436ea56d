#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include <contextune/error.hpp>

#include "catch.hpp"
#include "gpu/driver/detached_process.hpp"

using contextune::Error;
using contextune::gpu::environment_for_detached;
using contextune::gpu::output_of_detached;

namespace {

constexpr double patience = 60;

std::string output_of_shell(const std::string& script) {
  return output_of_detached({"/bin/sh", "-c", script}, environment_for_detached(), patience);
}

volatile sig_atomic_t children_ended = 0;

}  // namespace

TEST_CASE("A detached process is nobody's child", "[detached_process]") {
  struct sigaction count {};
  struct sigaction before {};
  count.sa_handler = [](int) { children_ended = children_ended + 1; };
  sigaction(SIGCHLD, &count, &before);
  for (int i = 0; i < 50; ++i) REQUIRE(output_of_detached({"/bin/true"}, {}, patience).empty());
  CHECK(output_of_shell("echo out; echo err >&2; exit 3") == "out\n");
  CHECK(output_of_shell("sleep 0.05; echo $PPID") != std::to_string(getpid()) + "\n");
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
  CHECK(children_ended == 0);
  sigaction(SIGCHLD, &before, nullptr);
}

TEST_CASE("A detached process is nobody's child for a reaper of orphans either",
          "[detached_process]") {
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
  CHECK(output_of_shell("echo out") == "out\n");
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
  CHECK(errno == ECHILD);
  REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 0) == 0);
  const int kept = open("/dev/null", O_RDONLY);                 // for others to inherit
  CHECK(output_of_shell("ls /proc/self/fd | wc -l") == "4\n");  // 0 to 2, and the folder itself
  close(kept);
}

TEST_CASE("A program that has no descriptor left starts a detached process all the same",
          "[detached_process]") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const rlimit few{64, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &few) == 0);
  std::vector<int> taken;
  for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY))
    taken.push_back(fd);
  CHECK(output_of_shell("echo out") == "out\n");
  for (const int fd : taken) close(fd);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

TEST_CASE("A detached process gets nothing that is the program's own", "[detached_process]") {
  setenv("LD_PRELOAD", "", 1);
  setenv("CONTEXTUNE_REGION", "process", 1);
  setenv("NVTX_INJECTION64_PATH", "/no/such/file", 1);
  setenv("KEPT_FOR_IT", "yes", 1);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const std::string seen =
      output_of_shell("env | grep -E 'LD_|CONTEXTUNE|NVTX|KEPT'; grep SigBlk /proc/self/status");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  CHECK(seen.find("KEPT_FOR_IT=yes") != std::string::npos);
  CHECK(seen.find("LD_PRELOAD") == std::string::npos);
  CHECK(seen.find("CONTEXTUNE") == std::string::npos);
  CHECK(seen.find("NVTX") == std::string::npos);
  CHECK(seen.find("0000000000000000") != std::string::npos);
  for (const char* name :
       {"LD_PRELOAD", "CONTEXTUNE_REGION", "NVTX_INJECTION64_PATH", "KEPT_FOR_IT"}) {
    unsetenv(name);
  }
}

TEST_CASE("What cannot be started, and what does not end, is an error", "[detached_process]") {
  CHECK_THROWS_AS(output_of_detached({"/no/such/program"}, {}, patience), Error);
  CHECK_THROWS_AS(output_of_detached({"/bin/sleep", "1000"}, {}, 0.1), Error);
  CHECK(output_of_shell("head -c 1000000 /dev/zero").size() == 1000000);
}
