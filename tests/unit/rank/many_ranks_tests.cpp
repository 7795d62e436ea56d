// What agreeing costs where there are thousands of ranks.
#include <set>
#include <span>
#include <string>
#include <utility>

#include "catch.hpp"
#include "simulated_star.hpp"

using bench::NetworkModel;
using bench::SimulatedStar;
using contextune::Agreement;
using contextune::Payload;
using contextune::RankSet;
using contextune::Topic;
using contextune::Verdict;
using contextune::rank::Deciders;
using contextune::rank::Hub;
using contextune::rank::Knowledge;
using contextune::rank::Member;
using contextune::rank::Message;
using contextune::rank::MessageType;
using contextune::rank::Outbox;
using contextune::rank::Outgoing;

namespace {

constexpr double stated_seconds = 5;
constexpr std::size_t part_bytes = 16;

Deciders deciding() {
  return {{1, [](const Topic&, std::span<const Payload>, std::string&) {
             return Payload(8, std::byte{1});
           }}};
}

/// All ranks of a job, and when each was told what came of the topic.
struct Job {
  explicit Job(std::uint32_t num_ranks)
      : topic{1, 1, RankSet::all_of(num_ranks)}, star(num_ranks, NetworkModel{}, deciding(), 1) {
    star.on_verdict([this](std::uint32_t, const Topic&, double now, const Agreement& agreement) {
      verdicts.insert(agreement.verdict);
      last_told_at = now;
      ++num_told;
    });
  }
  void say(std::uint32_t begin, std::uint32_t end, double at = 0) {
    for (std::uint32_t rank = begin; rank < end; ++rank)
      star.say(at, rank, topic, Payload(part_bytes), stated_seconds);
  }

  Topic topic;
  std::set<Verdict> verdicts;
  std::size_t num_told = 0;
  double last_told_at = 0;
  SimulatedStar star;
};

}  // namespace

TEST_CASE(
    "Of thousands of ranks, rank 0 exchanges six messages with each of its span and each relay",
    "[many_ranks]") {
  constexpr std::uint32_t num_ranks = 4096;
  constexpr std::uint32_t span = 64;
  Job job(num_ranks);
  job.say(0, num_ranks);
  job.star.run();
  CHECK(job.num_told == num_ranks);
  CHECK(job.verdicts == std::set{Verdict::Committed});
  CHECK(job.star.traffic().messages == 6 * (span - 1 + num_ranks / span - 1));
  CHECK(job.star.traffic().passed_on == 6 * (num_ranks - span - (num_ranks / span - 1)));
  CHECK(job.star.hub().num_topics() == 0);
}

TEST_CASE("Without relays, messages are as long among many ranks as among few", "[many_ranks]") {
  Job many(32);
  many.say(0, 32);
  many.star.run();
  Job few(4);
  few.say(0, 4);
  few.star.run();
  CHECK(many.star.traffic().messages == 6 * 31);
  CHECK(many.star.traffic().bytes / 31 == few.star.traffic().bytes / 3);
}

TEST_CASE("A relay among thousands of ranks that dies holds up none of the others",
          "[many_ranks]") {
  constexpr std::uint32_t num_ranks = 1024;
  constexpr std::uint32_t relay = 64;
  Job job(num_ranks);
  job.topic.ranks = job.topic.ranks.filtered([](std::uint32_t rank) { return rank != relay; });
  const double dies_at = GENERATE(0.0, 0.0001, 0.0003, 0.0006, 0.001);
  job.star.kill(dies_at, relay);
  job.say(0, relay);
  job.say(relay + 1, num_ranks);
  job.star.run();
  CHECK(job.num_told == num_ranks - 1);
  CHECK(job.verdicts == std::set{Verdict::Committed});
  CHECK(job.last_told_at < 0.1);
  CHECK(job.star.hub().num_topics() == 0);
}

TEST_CASE("A rank that dies among a thousand frees all others at once", "[many_ranks]") {
  constexpr std::uint32_t num_ranks = 1024;
  Job job(num_ranks);
  job.say(0, num_ranks - 1);
  job.star.kill(1, num_ranks - 1);
  job.star.run();
  CHECK(job.num_told == num_ranks - 1);
  CHECK(job.verdicts == std::set{Verdict::Aborted});
  CHECK(job.last_told_at < 1.1);
  CHECK(job.star.hub().num_topics() == 0);
}

TEST_CASE("A silent rank among a thousand frees all others in the time they stated",
          "[many_ranks]") {
  constexpr std::uint32_t num_ranks = 1024;
  Job job(num_ranks);
  job.star.stand_still(0, num_ranks - 1);
  job.say(0, num_ranks - 1);
  job.star.run();
  CHECK(job.num_told == num_ranks - 1);
  CHECK(job.verdicts == std::set{Verdict::Aborted});
  CHECK(job.last_told_at > stated_seconds / 2);
  CHECK(job.last_told_at < stated_seconds);
}

TEST_CASE("Ranks that wait for many occupied ones are not told of each of them", "[many_ranks]") {
  constexpr std::uint32_t num_ranks = 1024;
  constexpr std::uint32_t half = num_ranks / 2;
  Job job(num_ranks);
  job.say(0, half);
  for (std::uint32_t rank = half; rank < num_ranks; ++rank)
    job.star.occupied(rank, job.topic, 4 * stated_seconds);
  job.say(half, num_ranks, 3 * stated_seconds);
  job.star.run();
  CHECK(job.num_told == num_ranks);
  CHECK(job.verdicts == std::set{Verdict::Committed});
  CHECK(job.star.traffic().messages < 10 * num_ranks);
}

TEST_CASE("Ranks hear how long they wait for the occupied one that takes longest", "[many_ranks]") {
  Job job(4);
  job.say(0, 2);
  job.star.occupied(2, job.topic, 2 * stated_seconds);
  job.star.occupied(3, job.topic, 10 * stated_seconds);
  job.say(2, 4, 8 * stated_seconds);
  job.star.run();
  CHECK(job.verdicts == std::set{Verdict::Committed});
  CHECK(job.num_told == 4);
}

TEST_CASE("A rank of a thousand that lost rank 0 asks few others at first, and all within a second",
          "[many_ranks]") {
  constexpr std::uint32_t num_ranks = 1024;
  constexpr std::uint32_t rank = 500;
  const Topic topic{1, 1, RankSet::all_of(num_ranks)};
  Member member(rank, num_ranks, 600);
  Outbox out;
  member.say(topic, 1, Payload(part_bytes), stated_seconds, out);
  Message proposal;
  proposal.type = MessageType::Propose;
  proposal.topic = topic;
  proposal.payload = Payload(8);
  REQUIRE(member.receive(proposal, out).empty());
  out.clear();
  member.lose_hub("lost", 0, out);
  CHECK(out.size() == 16);
  CHECK(out[0].to == 0);
  CHECK(out[1].to == rank + 1);
  std::set<std::uint32_t> asked;
  const bool one_knows = GENERATE(false, true);
  for (double now = 0; now < 1; now += 0.02) {
    for (const Outgoing& question : std::exchange(out, {})) {
      CHECK(question.message.type == MessageType::Ask);
      CHECK(asked.insert(question.to).second);
      Message answer;
      answer.topic = topic;
      answer.knowledge =
          one_knows && question.to == rank + 1 ? Knowledge::Committed : Knowledge::Lost;
      member.told(question.to, answer);
    }
    member.tick(now, out);
  }
  CHECK(asked.size() == (one_knows ? 16 : num_ranks - 1));
  CHECK_FALSE(asked.contains(rank));
  CHECK(member.poll(topic).verdict == (one_knows ? Verdict::Committed : Verdict::Unknown));
}

TEST_CASE("Each of thousands of ranks may ask a question of its own at a time", "[many_ranks]") {
  constexpr std::uint32_t num_ranks = 10000;
  Hub hub(deciding(), 5, num_ranks);
  Outbox out;
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank) {
    Message message;
    message.type = MessageType::Say;
    message.topic = {rank, 1, {rank}};
    message.kind = 1;
    message.seconds = stated_seconds;
    message.payload = Payload(part_bytes);
    REQUIRE(hub.receive(rank, std::move(message), 0, out).empty());
    REQUIRE(out.back().message.type == MessageType::Propose);
  }
  CHECK(hub.num_topics() == num_ranks);
}
