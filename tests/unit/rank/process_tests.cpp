#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "catch.hpp"
#include "tests/case_step.hpp"

namespace {

/// A rank in a process of its own.
class Process {
 public:
  Process(const std::string& job, std::uint32_t rank, std::uint32_t num_ranks,
          const std::string& silence, const char* closed = nullptr) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    const std::string own = std::to_string(rank);
    const std::string all = std::to_string(num_ranks);
    process_ = fork();
    if (process_ == 0) {
      dup2(ends[1], STDIN_FILENO);
      dup2(ends[1], STDOUT_FILENO);
      execl(CONTEXTUNE_TEST_RANK_PROCESS, "rank_process", job.c_str(), own.c_str(), all.c_str(),
            silence.c_str(), closed, nullptr);
      _exit(127);
    }
    close(ends[1]);
    channel_ = ends[0];
  }
  ~Process() {
    signal(SIGKILL);
    close(channel_);
    if (process_ > 0) waitpid(process_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void tell(const std::string& words) const {
    const std::string line = words + "\n";
    static_cast<void>(send(channel_, line.data(), line.size(), MSG_NOSIGNAL));
  }
  /// The next line; empty: the process ended, or there was none in 30 s.
  std::string line() {
    for (;;) {
      const std::size_t end = text_.find('\n');
      if (end != std::string::npos) {
        const std::string result = text_.substr(0, end);
        text_.erase(0, end + 1);
        return result;
      }
      pollfd wait{channel_, POLLIN, 0};
      char piece[256];
      if (poll(&wait, 1, 30000) <= 0) return {};
      const ssize_t got = read(channel_, piece, sizeof(piece));
      if (got <= 0) return {};
      text_.append(piece, static_cast<std::size_t>(got));
    }
  }
  std::string answer(const std::string& words) {
    tell(words);
    return line();
  }
  void signal(int number) const {
    if (process_ > 0) kill(process_, number);
  }
  /// Waits for its end; what waitpid says of it.
  int end() {
    int status = -1;
    waitpid(process_, &status, 0);
    process_ = -1;
    return status;
  }

 private:
  pid_t process_;
  int channel_ = -1;
  std::string text_;
};

using Processes = std::vector<std::unique_ptr<Process>>;

Processes start(std::uint32_t num_ranks, const std::string& silence = "20") {
  static int count = 0;
  const std::string job = "process-" + std::to_string(getpid()) + "-" + std::to_string(count++);
  Processes ranks;
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank)
    ranks.push_back(std::make_unique<Process>(job, rank, num_ranks, silence));
  for (const auto& rank : ranks) rank->tell("say 0 20");
  for (const auto& rank : ranks) REQUIRE(rank->answer("wait 0").starts_with("committed"));
  return ranks;
}

bool keeps_promise(const std::set<std::string>& verdicts) {
  const auto some = [&](const std::string& start) {
    return std::any_of(verdicts.begin(), verdicts.end(),
                       [&](const std::string& verdict) { return verdict.starts_with(start); });
  };
  return !(some("committed") && some("aborted"));
}

}  // namespace

TEST_CASE("Processes agree, and one that ends in order disturbs nobody before it", "[process]") {
  Processes ranks = start(3);
  for (const auto& rank : ranks) rank->tell("say 1 20");
  for (const auto& rank : ranks) CHECK(rank->answer("wait 1") == "committed abc");
}

TEST_CASE("In a program that closed its standard descriptors they stay free, and none is inherited",
          "[process]") {
  const std::string job = "closed-" + std::to_string(getpid());
  Process first(job, 0, 2, "20", "closed");
  Process second(job, 1, 2, "20", "closed");
  CHECK(first.line() == "committed ab none");
  CHECK(second.line() == "committed ab none");
}

TEST_CASE("A program may end in the middle of an agreement", "[process]") {
  const std::size_t at = GENERATE(0U, 1U);
  const std::string how = GENERATE("exit", "return");
  for (int round = 0; round < 5; round += case_step) {
    Processes ranks = start(2);
    ranks[at]->tell("say 1 20");
    // Of what it waits for there is no more than the control thread's next step.
    ranks[at]->tell(how);
    const int status = ranks[at]->end();
    CHECK((WIFEXITED(status) && WEXITSTATUS(status) == 0));
    ranks[1 - at]->tell("say 1 20");
    CHECK(ranks[1 - at]->answer("wait 1").starts_with("aborted"));
  }
}

TEST_CASE("The program's signals are not handled on our thread", "[process]") {
  Processes ranks = start(2);
  CHECK(ranks[0]->answer("mask") == "all blocked");
}

TEST_CASE("A process that is killed is noticed at once, without a sign of life being missed",
          "[process]") {
  // Nobody is given up for silence here.
  Processes ranks = start(3, "1000");
  ranks[0]->tell("say 1 1000");
  ranks[1]->tell("say 1 1000");
  ranks[2]->signal(SIGKILL);
  CHECK(ranks[0]->answer("wait 1") == "aborted 2");
  CHECK(ranks[1]->answer("wait 1") == "aborted 2");
}

TEST_CASE("A rank that ends as soon as it has its answer takes it from nobody", "[process]") {
  const std::size_t first = GENERATE(0U, 2U);
  for (int round = 0; round < 10; round += case_step) {
    Processes ranks = start(3);
    ranks[first]->tell("say 1 20\nlast 1");
    for (std::size_t at = 0; at < ranks.size(); ++at) {
      if (at != first) ranks[at]->tell("say 1 20");
    }
    for (std::size_t at = 0; at < ranks.size(); ++at)
      CHECK((at == first ? ranks[at]->line() : ranks[at]->answer("wait 1")) == "committed abc");
  }
}

TEST_CASE("If the process of rank 0 is killed before the vote, the others go on without",
          "[process]") {
  Processes ranks = start(3, "1000");
  for (const auto& rank : ranks) rank->tell("slow 1 20");
  // All have spoken, and the proposal is still being made.
  REQUIRE(ranks[0]->line() == "deciding");
  ranks[0]->signal(SIGKILL);
  CHECK(ranks[1]->answer("wait 1") == "aborted 0");
  CHECK(ranks[2]->answer("wait 1") == "aborted 0");
  CHECK(ranks[1]->answer("lost") == "lost");
}

TEST_CASE("A process that is stopped is given up, and keeps to what the others got when it goes on",
          "[process]") {
  Processes ranks = start(3, "2");
  const std::size_t stopped = GENERATE(0U, 2U);
  ranks[stopped]->signal(SIGSTOP);
  for (const auto& rank : ranks) rank->tell("say 1 20");
  std::set<std::string> verdicts;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    if (at != stopped) verdicts.insert(ranks[at]->answer("wait 1"));
  }
  CHECK(verdicts == std::set{"aborted " + std::to_string(stopped)});
  ranks[stopped]->signal(SIGCONT);
  verdicts.insert(ranks[stopped]->answer("wait 1"));
  CHECK(keeps_promise(verdicts));
  CHECK_FALSE(verdicts.contains(""));
}

TEST_CASE("Processes killed and stopped at any time keep the promise", "[process]") {
  std::mt19937_64 random(static_cast<std::uint64_t>(GENERATE(range(1, 13, case_step))));
  Processes ranks = start(3, "1");
  for (const auto& rank : ranks) rank->tell("say 1 2");
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 400));
  const std::size_t victim = random() % 3;
  const bool stops = random() % 2 == 0;
  ranks[victim]->signal(stops ? SIGSTOP : SIGKILL);
  std::set<std::string> verdicts;
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    if (at != victim) verdicts.insert(ranks[at]->answer("wait 1"));
  }
  CHECK_FALSE(verdicts.contains("open"));
  CHECK_FALSE(verdicts.contains(""));
  if (stops) {
    ranks[victim]->signal(SIGCONT);
    verdicts.insert(ranks[victim]->answer("wait 1"));
  }
  CHECK(keeps_promise(verdicts));
}
