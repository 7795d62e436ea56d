#include "ranks.hpp"

#include <fcntl.h>
#include <nccl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "catch.hpp"

namespace {

constexpr auto longest_run = std::chrono::seconds(20);

struct Process {
  pid_t pid;
  int output;
};

std::string hex(const ncclUniqueId& id) {
  std::string text;
  for (const char byte : id.internal) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

Process start(const std::vector<std::string>& arguments, const Variables& variables) {
  int pipes[2];
  REQUIRE(pipe2(pipes, O_CLOEXEC) == 0);
  std::vector<char*> argv;
  for (const std::string& one : arguments) argv.push_back(const_cast<char*>(one.c_str()));
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(pipes[1], STDOUT_FILENO);
    dup2(pipes[1], STDERR_FILENO);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    execv(argv[0], argv.data());
    _exit(127);
  }
  ::close(pipes[1]);
  return {pid, pipes[0]};
}

RankEnd finish(const Process& process, std::chrono::steady_clock::time_point until) {
  RankEnd end;
  char buffer[4096];
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    pollfd waiting{process.output, POLLIN, 0};
    if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) <= 0) {
      kill(process.pid, SIGKILL);
      break;
    }
    const ssize_t got = read(process.output, buffer, sizeof buffer);
    if (got <= 0) break;
    end.output.append(buffer, static_cast<std::size_t>(got));
  }
  ::close(process.output);
  int status = 0;
  waitpid(process.pid, &status, 0);
  if (WIFEXITED(status)) end.status = WEXITSTATUS(status);
  return end;
}

}  // namespace

std::vector<RankEnd> run_ranks(const std::string& scenario, int count, const Variables& variables) {
  ncclUniqueId id;
  REQUIRE(ncclGetUniqueId(&id) == ncclSuccess);
  std::vector<Process> processes;
  for (int rank = 0; rank < count; ++rank) {
    Variables all = variables;
    all.emplace_back("TEST_RANK", std::to_string(rank));
    processes.push_back(start(
        {SIMNCCL_TEST_RANK_PROGRAM, scenario, std::to_string(rank), std::to_string(count), hex(id)},
        all));
  }
  const auto until = std::chrono::steady_clock::now() + longest_run;
  std::vector<RankEnd> ends;
  for (const Process& process : processes) ends.push_back(finish(process, until));
  return ends;
}

std::string first_words(const std::string& output) {
  std::string words;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) words += line.substr(0, line.find(' ')) + ' ';
  return words;
}

std::vector<std::string> lines_with(const std::string& output, const std::string& beginning) {
  std::vector<std::string> found;
  std::istringstream stream(output);
  for (std::string line; std::getline(stream, line);)
    if (line.compare(0, beginning.size(), beginning) == 0) found.push_back(line);
  return found;
}
