#include "intercept/ranks/domain_question.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "intercept/host/clock.hpp"
#include "intercept/ranks/question_kind.hpp"

namespace contextune::intercept {
namespace {

constexpr std::chrono::microseconds first_pause{100};
constexpr std::chrono::microseconds longest_pause{10'000};
// A question takes rank 0 about 25 us: all ranks that wait for the last one leave it half its time.
constexpr std::chrono::microseconds pause_for_rank{50};
constexpr std::chrono::microseconds longest_pause_of_many{200'000};

/// Asks once. No ranks and no clause: rank 0 does not know them all yet.
Domain ask(Coordinator& coordinator, const Topic& topic, const DomainReport& report,
           double seconds) {
  Domain found;
  coordinator.say(topic, question_kind::domain, encode(report), seconds);
  Agreement answer = coordinator.wait(topic, seconds);
  if (answer.verdict == Verdict::Open) {
    coordinator.withdraw(topic, "rank 0 did not answer");
    answer = coordinator.wait(topic, std::min(seconds, domain_answer_seconds));
  }
  auto ranks = answer.verdict == Verdict::Committed ? decode_domain(answer.decision) : std::nullopt;
  if (ranks) {
    found.ranks = *std::move(ranks);
  } else {
    found.why = answer.why.empty() ? "rank 0 did not answer" : std::move(answer.why);
  }
  return found;
}

}  // namespace

Domain ask_for_domain(Coordinator& coordinator, Topic& topic, DomainReport report, double seconds) {
  const double deadline = now_seconds() + seconds;
  // A short time leaves a quarter for it.
  const double last_answer = std::min(seconds / 4, domain_answer_seconds);
  const auto longest =
      std::clamp(pause_for_rank * coordinator.num_ranks(), longest_pause, longest_pause_of_many);
  auto pause = first_pause;
  for (;;) {
    const double left = deadline - now_seconds();
    const bool is_last = left <= last_answer;
    // Whoever asks later is to hear at once that this rank does not wait any more.
    (report.used.empty() ? report.waits_no_longer : report.leaves) = is_last;
    Domain found = ask(coordinator, topic, report, std::max(left, last_answer));
    ++topic.question;
    found.is_cut_short = is_last;
    if (!found.ranks.empty() || !found.why.empty() || is_last) return found;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, longest);
  }
}

}  // namespace contextune::intercept
