// A rank that is told on its standard input what to do, one word a line, and says on its standard
// output what came of it:
//   say N SECONDS   its part of question N
//   wait N          prints "committed DECISION", "aborted CULPRIT" or "unknown"
//   last N          the same, and ends the process at once
//   lost            prints "lost" or "well"
//   slow N SECONDS  the same, of a kind whose decider prints "deciding" and takes its time
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <numeric>
#include <string>
#include <thread>

#include "rank/socket_coordinator.hpp"

using contextune::Agreement;
using contextune::Payload;
using contextune::Topic;
using contextune::Verdict;

namespace {

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

}  // namespace

// rank_process JOB RANK NUM_RANKS SILENCE_SECONDS
int main(int argc, char** argv) {
  if (argc != 5) return 2;
  contextune::rank::SocketSettings settings;
  settings.job = argv[1];
  settings.rank = static_cast<std::uint32_t>(std::stoul(argv[2]));
  settings.num_ranks = static_cast<std::uint32_t>(std::stoul(argv[3]));
  settings.address = "unix:contextune-" + settings.job;
  settings.heartbeat_seconds = 0.05;
  settings.silence_seconds = std::stod(argv[4]);
  settings.recovery_seconds = 0.5;
  contextune::rank::SocketCoordinator coordinator(
      settings, {{1, [](std::span<const Payload> said, std::string&) { return joined(said); }},
                 {2, [](std::span<const Payload> said, std::string&) {
                    std::cout << "deciding" << std::endl;
                    std::this_thread::sleep_for(std::chrono::milliseconds(300));
                    return joined(said);
                  }}});
  Topic topic{1, 0, std::vector<std::uint32_t>(settings.num_ranks)};
  std::iota(topic.ranks.begin(), topic.ranks.end(), 0U);
  const Payload part{static_cast<std::byte>('a' + settings.rank)};
  for (std::string word; std::cin >> word;) {
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
