// A rank that is told on its standard input what to do, one word a line, and says on its standard
// output what came of it:
//   say N SECONDS   its part of question N
//   wait N          prints "committed DECISION", "aborted CULPRIT" or "unknown"
//   last N          the same, and ends the process at once
//   lost            prints "lost" or "well"
//   mask            prints whether the coordinator's thread has all signals blocked
//   exit, return    ends the process, in the midst of whatever is under way
//   slow N SECONDS  the same, of a kind whose decider prints "deciding" and takes its time
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include "rank/star/socket_coordinator.hpp"

using contextune::Agreement;
using contextune::Payload;
using contextune::Topic;
using contextune::Verdict;

namespace {

/// The control thread decides, and has no standard output of its own.
std::atomic<bool> decides{false};

void tell_of_decision() {
  std::thread([] {
    decides.wait(false);
    std::cout << "deciding" << std::endl;
  }).detach();
}

Payload joined(std::span<const Payload> said) {
  Payload all;
  for (const Payload& part : said) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string text_of(const Agreement& agreement) {
  switch (agreement.verdict) {
    case Verdict::Open:
      return "open";
    case Verdict::Committed: {
      std::string text = "committed ";
      for (const std::byte byte : agreement.decision) text += static_cast<char>(byte);
      return text;
    }
    case Verdict::Aborted:
      return "aborted " + std::to_string(agreement.culprit);
    case Verdict::Unknown:
      return "unknown";
  }
  return "?";
}

// What the kernel says of the signals of the coordinator's thread.
std::string blocked_on_our_thread() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name != "contextune-rank") continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with("SigBlk:")) continue;
      const auto bit = [](int signal) { return 1ULL << static_cast<unsigned>(signal - 1); };
      // Those that cannot be blocked, and two of the C library's own.
      const auto rest = bit(SIGKILL) | bit(SIGSTOP) | bit(32) | bit(33);
      return (std::stoull(line.substr(7), nullptr, 16) | rest) == ~0ULL ? "all blocked" : line;
    }
  }
  return "no such thread";
}

/// The program's standard descriptors, closed until they are needed.
class PutAway {
 public:
  explicit PutAway(bool wanted) : wanted_(wanted) {
    if (!wanted_) return;
    for (int fd = 0; fd < 3; ++fd) {
      dup3(fd, away + fd, O_CLOEXEC);
      close(fd);
    }
    for (int fd = 0; fd < most; ++fd) before_[static_cast<std::size_t>(fd)] = is_inherited(fd);
  }
  /// Says which of them are taken, and which of the new ones a program that is started would get.
  [[nodiscard]] std::string back() const {
    std::string found;
    for (int fd = 0; fd < most; ++fd) {
      const bool standard = fd < 3 && fcntl(fd, F_GETFD) >= 0;
      if (standard || is_inherited(fd) != before_[static_cast<std::size_t>(fd)])
        found += " " + std::to_string(fd);
    }
    for (int fd = 0; wanted_ && fd < 3; ++fd) dup2(away + fd, fd);
    return found.empty() ? "none" : "open:" + found;
  }

 private:
  static bool is_inherited(int fd) {
    const int flags = fcntl(fd, F_GETFD);
    return flags >= 0 && (flags & FD_CLOEXEC) == 0;
  }

  static constexpr int away = 900;
  static constexpr int most = 1024;
  bool wanted_;
  std::array<bool, most> before_{};
};

}  // namespace

// rank_process JOB RANK NUM_RANKS SILENCE_SECONDS [closed]
// "closed": starts without standard descriptors, agrees on question 0, and says what it has open.
int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const bool closed = argc == 6;
  const PutAway standard(closed);
  if (!closed) tell_of_decision();
  contextune::rank::SocketSettings settings;
  settings.job = argv[1];
  settings.rank = static_cast<std::uint32_t>(std::stoul(argv[2]));
  settings.num_ranks = static_cast<std::uint32_t>(std::stoul(argv[3]));
  settings.address = "unix:contextune-" + settings.job;
  settings.heartbeat_seconds = 0.05;
  settings.silence_seconds = std::stod(argv[4]);
  settings.recovery_seconds = 0.5;
  contextune::rank::SocketCoordinator coordinator(
      settings,
      {{1, [](const Topic&, std::span<const Payload> said, std::string&) { return joined(said); }},
       {2, [](const Topic&, std::span<const Payload> said, std::string&) {
          decides = true;
          decides.notify_all();
          std::this_thread::sleep_for(std::chrono::seconds(2));
          return joined(said);
        }}});
  Topic topic{1, 0, contextune::RankSet::all_of(settings.num_ranks)};
  const Payload part{static_cast<std::byte>('a' + settings.rank)};
  if (closed) {
    coordinator.say(topic, 1, part, 20);
    const std::string answer = text_of(coordinator.wait(topic, 20));
    const std::string open = standard.back();
    std::cout << answer << " " << open << std::endl;
  }
  for (std::string word; std::cin >> word;) {
    if (word == "return") return 0;
    if (word == "exit") std::exit(0);  // with the coordinator as it is
    if (word == "mask") {
      std::cout << blocked_on_our_thread() << std::endl;
      continue;
    }
    if (word == "lost") {
      std::cout << (coordinator.lost().empty() ? "well" : "lost") << std::endl;
      continue;
    }
    std::cin >> topic.question;
    if (word == "say" || word == "slow") {
      double seconds = 0;
      std::cin >> seconds;
      coordinator.say(topic, word == "say" ? 1 : 2, part, seconds);
    } else {
      const std::string answer = text_of(coordinator.wait(topic, 20));
      if (word == "last") {
        // As fast as can be: nothing of the coordinator's runs any more.
        static_cast<void>(!write(STDOUT_FILENO, (answer + "\n").data(), answer.size() + 1));
        _exit(0);
      }
      std::cout << answer << std::endl;
    }
  }
}
