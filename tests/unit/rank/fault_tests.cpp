#include <algorithm>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "byte_proxy.hpp"
#include "catch.hpp"
#include "mentions.hpp"
#include "several_ranks.hpp"
#include "tests/case_step.hpp"

using contextune::Agreement;
using contextune::Topic;
using contextune::Verdict;
using contextune::rank::SocketCoordinator;
using contextune::rank::SocketSettings;

namespace {

const Topic all_three{1, 1, {0, 1, 2}};

bool keeps_promise(const std::vector<Agreement>& agreements) {
  const auto some = [&](Verdict verdict) {
    return std::any_of(agreements.begin(), agreements.end(),
                       [&](const Agreement& agreement) { return agreement.verdict == verdict; });
  };
  return !(some(Verdict::Committed) && some(Verdict::Aborted));
}

SocketSettings impatient(SocketSettings settings) {
  settings.join_seconds = 0.5;
  settings.heartbeat_seconds = 0.05;
  settings.silence_seconds = 0.3;
  settings.vote_seconds = 0.3;
  settings.recovery_seconds = 0.3;
  return settings;
}

// Three ranks, two of them behind proxies that fail after some bytes; some come late, some change
// their mind, one may end. All of it drawn from the seed.
std::vector<Agreement> run_schedule(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const SocketSettings settings = impatient(test_settings(3));
  std::vector<std::unique_ptr<ByteProxy>> proxies;
  Ranks ranks;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    SocketSettings own = of_rank(settings, rank);
    if (rank != 0) {
      ByteProxy::Limits limits;
      if (random() % 3 != 0) limits.to_target = random() % 500;
      if (random() % 3 != 0) limits.to_caller = random() % 700;
      limits.then_holds = random() % 3 == 0;
      const std::string address = settings.address + "-" + std::to_string(rank);
      proxies.push_back(std::make_unique<ByteProxy>(address, settings.address, limits));
      own.address = address;
    }
    ranks.push_back(std::make_unique<SocketCoordinator>(own, test_deciders()));
  }
  std::vector<Agreement> agreements(3);
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank, late = random() % 8, ends = random() % 8 == 0,
                          withdraws = random() % 12 == 0, after = random() % 20] {
      const auto ms = [](std::uint64_t count) {
        std::this_thread::sleep_for(std::chrono::milliseconds(count));
      };
      if (late == 0) ms(after * 10);
      ranks[rank]->say(all_three, join_parts, bytes_of(std::string(40, 'x')), 0.4);
      if (withdraws) {
        ms(after);
        ranks[rank]->withdraw(all_three, "changed its mind");
      }
      if (ends) {
        ms(after);
        agreements[rank] = ranks[rank]->poll(all_three);
        ranks[rank].reset();
        return;
      }
      agreements[rank] = ranks[rank]->wait(all_three, long_enough);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return agreements;
}

}  // namespace

TEST_CASE("Over real sockets that fail anywhere, no rank sees Committed where another sees Aborted",
          "[fault]") {
  std::mutex mutex;
  std::map<Verdict, int> counts;
  std::vector<std::uint64_t> broken;
  std::uint64_t next = 0;
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 12; ++worker) {
    threads.emplace_back([&] {
      for (;;) {
        std::uint64_t seed = 0;
        {
          const std::lock_guard lock(mutex);
          if (next >= 240) return;
          seed = next;
          next += case_step;
        }
        const auto agreements = run_schedule(seed);
        const std::lock_guard lock(mutex);
        for (const Agreement& agreement : agreements) ++counts[agreement.verdict];
        if (!keeps_promise(agreements)) broken.push_back(seed);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(broken.empty());
  // Those that ended did so before they had an answer.
  INFO(counts[Verdict::Open] << " open, " << counts[Verdict::Unknown] << " unknown");
  CHECK(counts[Verdict::Committed] > 10 / case_step);
  CHECK(counts[Verdict::Aborted] > 50 / case_step);
}

TEST_CASE("While rank 0 lives, whoever loses its connection to it learns the verdict", "[fault]") {
  // However much of what rank 0 sends still arrives.
  std::map<Verdict, int> counts;
  for (std::size_t arrives = 0; arrives < 600; arrives += 12) {
    CAPTURE(arrives);
    SocketSettings settings = impatient(test_settings(3));
    // What a proxy held back is no answer.
    settings.recovery_seconds = long_enough;
    ByteProxy::Limits limits;
    limits.to_caller = arrives;
    const ByteProxy first(settings.address + "-1", settings.address, limits);
    const ByteProxy second(settings.address + "-2", settings.address, limits);
    Ranks ranks;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      SocketSettings own = of_rank(settings, rank);
      if (rank != 0) own.address += "-" + std::to_string(rank);
      ranks.push_back(std::make_unique<SocketCoordinator>(own, test_deciders()));
      ranks.back()->say(all_three, join_parts, bytes_of(std::string(40, 'x')), 0.3);
    }
    std::vector<Agreement> agreements;
    for (const auto& rank : ranks) agreements.push_back(rank->wait(all_three, long_enough));
    CHECK(keeps_promise(agreements));
    for (const Agreement& agreement : agreements) ++counts[agreement.verdict];
    CHECK(counts[Verdict::Unknown] == 0);
    CHECK(counts[Verdict::Open] == 0);
  }
  CHECK(counts[Verdict::Committed] > 0);
  CHECK(counts[Verdict::Aborted] > 0);
}

TEST_CASE("A rank that ends before it speaks is named at once", "[fault]") {
  Ranks ranks = make_ranks(test_settings(3));
  const Topic first{1, 7, {0, 1, 2}};
  for (const auto& rank : ranks) rank->say(first, join_parts, bytes_of("x"), long_enough);
  for (const auto& rank : ranks)
    REQUIRE(rank->wait(first, long_enough).verdict == Verdict::Committed);
  ranks[0]->say(all_three, join_parts, bytes_of("x"), 1000);
  ranks[1]->say(all_three, join_parts, bytes_of("x"), 1000);
  ranks[2].reset();
  for (std::size_t at = 0; at < 2; ++at) {
    const Agreement agreement = ranks[at]->wait(all_three, long_enough);
    CHECK(agreement.verdict == Verdict::Aborted);
    CHECK(agreement.culprit == 2);
    CHECK(mentions(agreement.why, "rank 2 is lost"));
  }
}

TEST_CASE("Ranks that have not voted go on without rank 0, and say so", "[fault]") {
  Ranks ranks = make_ranks(test_settings(3));
  const Topic first{1, 7, {0, 1, 2}};
  for (const auto& rank : ranks) rank->say(first, join_parts, bytes_of("x"), long_enough);
  for (const auto& rank : ranks)
    REQUIRE(rank->wait(first, long_enough).verdict == Verdict::Committed);
  ranks[1]->say(all_three, join_parts, bytes_of("x"), 1000);
  ranks[0].reset();
  const Agreement agreement = ranks[1]->wait(all_three, long_enough);
  CHECK(agreement.verdict == Verdict::Aborted);
  // Whether rank 0 could still say so itself or was just gone, it was it.
  CHECK(agreement.culprit == 0);
  ranks[2]->say(all_three, join_parts, bytes_of("x"), 1000);
  CHECK(ranks[2]->wait(all_three, long_enough).verdict == Verdict::Aborted);
}

TEST_CASE("A rank that takes its word back says who has not come yet", "[fault]") {
  const SocketSettings settings = test_settings(3);
  Topic topic = all_three;
  const auto why = [&topic](SocketCoordinator& rank) {
    ++topic.question;
    rank.say(topic, join_parts, bytes_of("x"), 1000);
    rank.withdraw(topic, "it went on");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return rank.wait(topic, long_enough).why;
  };
  const auto comes_to_say = [&](SocketCoordinator& rank, const std::string& text) {
    for (int i = 0; i < 1000; ++i)
      if (why(rank) == text) return true;
    return false;
  };
  SocketCoordinator early(of_rank(settings, 1), test_deciders());
  CHECK(comes_to_say(early, "it went on; rank 0 was not reached at " + settings.address +
                                " (no connection: Connection refused)"));
  SocketCoordinator first(of_rank(settings, 0), test_deciders());
  CHECK(comes_to_say(first, "it went on; only 2 of 3 ranks have come to " + settings.address));
  SocketCoordinator last(of_rank(settings, 2), test_deciders());
  CHECK(comes_to_say(first, "it went on"));
}

TEST_CASE("A rank without a rank 0 gives up after a while", "[fault]") {
  SocketSettings settings = of_rank(test_settings(2), 1);
  settings.join_seconds = 0.1;
  SocketCoordinator lonely(settings, test_deciders());
  const Topic topic{1, 1, {0, 1}};
  lonely.say(topic, join_parts, bytes_of("x"), 1000);
  const Agreement agreement = lonely.wait(topic, long_enough);
  CHECK(agreement.verdict == Verdict::Aborted);
  CHECK(mentions(agreement.why, "was not reached"));
  CHECK(mentions(lonely.lost(), settings.address));
}

TEST_CASE("A decision that takes for ever holds up no destructor", "[fault]") {
  auto gate = std::make_shared<std::timed_mutex>();
  gate->lock();
  {
    SocketSettings settings = test_settings(1);
    SocketCoordinator alone(
        settings,
        {{1, [gate](const contextune::Topic&, std::span<const contextune::Payload>, std::string&) {
            gate->lock();
            gate->unlock();
            return bytes_of("late");
          }}});
    alone.say({1, 1, {0}}, 1, bytes_of("x"), 1);
    CHECK(alone.wait({1, 1, {0}}, 0.1).verdict == Verdict::Open);
  }
  gate->unlock();
  // The thread that was left behind ends by itself.
  while (gate.use_count() > 1) std::this_thread::yield();
  SUCCEED();
}
