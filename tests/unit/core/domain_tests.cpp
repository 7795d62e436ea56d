#include "catch.hpp"
#include "core/agreement/domain_planner.hpp"

using contextune::DomainPlanner;
using contextune::DomainReport;
using Ranks = std::vector<std::uint32_t>;
using Used = std::vector<DomainReport::Communicator>;

namespace {

struct Job {
  DomainPlanner planner;
  std::uint32_t num_ranks = 4;

  /// What the rank is answered.
  Ranks say(std::uint32_t rank, const Used& used, bool waits_no_longer = false,
            std::uint64_t region = 1, bool leaves = false, bool attends = false) {
    return tell(rank, {region, used, num_ranks, waits_no_longer, leaves, attends});
  }
  Ranks tell(std::uint32_t rank, const DomainReport& report) {
    const contextune::Payload said[] = {encode(report)};
    std::string why;
    const auto answer = planner.decide({9, 0, {rank}}, said, why);
    CHECK(why.empty());
    return contextune::decode_domain(answer).value();
  }
  /// Why it is not answered.
  std::string refused(std::uint32_t rank, const DomainReport& report) {
    const contextune::Payload said[] = {encode(report)};
    std::string why;
    CHECK(planner.decide({9, 0, {rank}}, said, why).empty());
    return why;
  }
  // Of ranks that repeat bodies.
  Ranks attend(std::uint32_t rank, std::uint64_t region) {
    return say(rank, {}, false, region, false, true);
  }
  void begin(std::uint32_t rank, std::uint64_t region) { move(rank, region, Kind::Begins); }
  void end(std::uint32_t rank, std::uint64_t region) { move(rank, region, Kind::Ends); }

 private:
  using Kind = DomainReport::Kind;
  void move(std::uint32_t rank, std::uint64_t region, Kind kind) {
    DomainReport report;
    report.region = region;
    report.kind = kind;
    CHECK(tell(rank, report).empty());
  }
};

}  // namespace

TEST_CASE("Ranks that share a communicator in a region are its domain once all have come",
          "[domain]") {
  Job job;
  CHECK(job.say(0, {{7, 2, 1}}).empty());
  CHECK(job.say(0, {{7, 2, 1}}).empty());
  CHECK(job.say(3, {{7, 2, 1}}) == Ranks{0, 3});
  CHECK(job.say(0, {{7, 2, 1}}) == Ranks{0, 3});
}

TEST_CASE("Communicators that overlap make one domain", "[domain]") {
  Job job;
  CHECK(job.say(0, {{7, 2, 1}}).empty());
  CHECK(job.say(2, {{8, 2, 1}}).empty());
  CHECK(job.say(1, {{7, 2, 1}, {8, 2, 1}}) == Ranks{0, 1, 2});
  CHECK(job.say(3, {{9, 1, 1}}) == Ranks{3});
}

TEST_CASE("Ranks that use none belong together with all that use none", "[domain]") {
  Job job;
  CHECK(job.say(0, {}).empty());
  CHECK(job.say(1, {{7, 2, 1}}).empty());
  CHECK(job.say(2, {{7, 2, 1}}) == Ranks{1, 2});
  CHECK(job.say(3, {}) == Ranks{0, 3});
}

TEST_CASE("Once all ranks wait in some region, those that use none go with who is there",
          "[domain]") {
  Job job;
  const auto attend = [&](std::uint32_t rank, std::uint64_t region, const Used& used = {}) {
    return job.say(rank, used, false, region, false, true);
  };
  CHECK(attend(0, 1).empty());
  CHECK(attend(2, 2).empty());
  CHECK(attend(3, 2).empty());
  SECTION("all without") {
    CHECK(attend(1, 1) == Ranks{0, 1});
    CHECK(attend(0, 1) == Ranks{0, 1});
    // They were complete as well.
    CHECK(attend(2, 2) == Ranks{2, 3});
    CHECK(attend(3, 2) == Ranks{2, 3});
  }
  SECTION("one of them with a communicator that others have") {
    CHECK(attend(1, 1, {{7, 2, 1}}).empty());
    CHECK(attend(0, 1) == Ranks{0});
    CHECK(attend(1, 1, {{7, 2, 1}}).empty());
  }
}

TEST_CASE("Nobody waits in a region for ranks that repeat the body of another one", "[domain]") {
  Job job;
  for (const std::uint32_t rank : {0U, 1U}) job.begin(rank, 1);
  CHECK(job.attend(0, 1).empty());
  job.begin(2, 2);
  CHECK(job.attend(1, 1).empty());
  job.begin(3, 2);
  SECTION("while they do") {
    CHECK(job.attend(0, 1) == Ranks{0, 1});
    CHECK(job.attend(1, 1) == Ranks{0, 1});
    CHECK(job.attend(2, 2).empty());  // the other one has yet to ask
    CHECK(job.attend(3, 2) == Ranks{2, 3});
  }
  SECTION("and no longer") {
    job.end(3, 2);
    CHECK(job.attend(0, 1).empty());
    CHECK(job.attend(3, 1).empty());  // from where it comes the last one may come as well
    job.end(2, 2);
    CHECK(job.attend(2, 1) == Ranks{0, 1, 2, 3});
  }
}

TEST_CASE("Ranks that are still in a region from which the others have come on are waited for",
          "[domain]") {
  Job job;
  for (const std::uint32_t rank : {0U, 1U, 2U, 3U}) job.begin(rank, 1);
  for (const std::uint32_t rank : {0U, 1U}) job.end(rank, 1);
  for (const std::uint32_t rank : {0U, 1U}) job.begin(rank, 2);
  CHECK(job.attend(0, 2).empty());
  CHECK(job.attend(1, 2).empty());
  for (const std::uint32_t rank : {2U, 3U}) job.end(rank, 1);
  CHECK(job.attend(2, 2).empty());
  CHECK(job.attend(3, 2) == Ranks{0, 1, 2, 3});
}

TEST_CASE("A region within another one is waited in for ranks that have yet to come to it",
          "[domain]") {
  Job job;
  job.num_ranks = 2;
  for (const std::uint32_t rank : {0U, 1U}) job.begin(rank, 1);
  job.begin(0, 2);
  CHECK(job.attend(0, 2).empty());
  job.begin(1, 2);
  CHECK(job.attend(0, 2).empty());  // it has not asked yet
  CHECK(job.attend(1, 2) == Ranks{0, 1});
}

TEST_CASE("Whoever waits no longer goes with those that have come", "[domain]") {
  Job job;
  CHECK(job.say(0, {{7, 4, 1}, {8, 2, 1}}).empty());
  CHECK(job.say(1, {{7, 4, 1}, {8, 2, 1}}).empty());
  CHECK(job.say(0, {{7, 4, 1}, {8, 2, 1}}, true) == Ranks{0, 1});
  CHECK(job.say(1, {{7, 4, 1}, {8, 2, 1}}) == Ranks{0, 1});
  CHECK(job.say(2, {{7, 4, 1}}).empty());  // too late for them
  CHECK(job.say(2, {{7, 4, 1}}, true) == Ranks{2});
}

TEST_CASE("Nobody waits for a rank that has left", "[domain]") {
  Job job;
  const auto leave = [&](std::uint32_t rank, const Used& used) {
    return job.say(rank, used, false, 1, true);
  };
  SECTION("before it came") {
    CHECK(job.say(0, {{7, 3, 1}}).empty());
    CHECK(leave(1, {{7, 3, 1}}).empty());
  }
  SECTION("after it came") {
    CHECK(job.say(1, {{7, 3, 1}}).empty());
    CHECK(leave(1, {{7, 3, 1}}).empty());
    CHECK(job.say(0, {{7, 3, 1}}).empty());
  }
  CHECK(job.say(2, {{7, 3, 1}}) == Ranks{0, 2});
  CHECK(job.say(0, {{7, 3, 1}}) == Ranks{0, 2});
  CHECK(job.say(3, {}) == Ranks{3});
}

TEST_CASE("A body that a rank has left is repeated by nobody who does something with that rank",
          "[domain]") {
  Job job;
  const auto attend = [&](std::uint32_t rank, const Used& used, bool leaves = false) {
    return job.tell(rank, {1, used, job.num_ranks, false, leaves, true});
  };
  const Used first{{7, 2, 1}};
  const Used both{{7, 2, 1}, {8, 2, 1}};
  const Used second{{8, 2, 1}};
  CHECK(attend(1, both).empty());
  CHECK(attend(2, second, true).empty());
  CHECK(job.refused(1, {1, both, job.num_ranks, false, false, true}) ==
        "rank 2, of a communicator that it uses, does not repeat it");
  // With the one that has left it has nothing to do, with the one that was refused it has.
  CHECK(job.refused(0, {1, first, job.num_ranks, false, false, true}) ==
        "rank 1, of a communicator that it uses, does not repeat it");
  CHECK(attend(3, {{9, 1, 1}}) == Ranks{3});
}

TEST_CASE("A body is not repeated where one has left whom only others of it know", "[domain]") {
  Job job;
  const auto report = [&](const Used& used, bool leaves = false) {
    return DomainReport{1, used, job.num_ranks, false, leaves, true};
  };
  CHECK(job.tell(1, report({{7, 2, 1}, {8, 2, 1}})).empty());
  CHECK(job.tell(2, report({{8, 2, 1}}, true)).empty());
  CHECK(job.refused(0, report({{7, 2, 1}})) ==
        "rank 2, of a communicator that it uses, does not repeat it");
}

TEST_CASE("A rank that comes back after it has left counts once", "[domain]") {
  Job job;
  SECTION("of those that use none") {
    CHECK(job.say(1, {}, false, 1, true).empty());
    CHECK(job.say(1, {}).empty());
    CHECK(job.say(0, {}).empty());
    CHECK(job.say(2, {}).empty());  // one is missing
    CHECK(job.say(3, {}) == Ranks{0, 1, 2, 3});
  }
  SECTION("of a communicator") {
    const Used used{{7, 3, 1}};
    CHECK(job.say(1, used, false, 1, true).empty());
    CHECK(job.say(1, used).empty());
    CHECK(job.say(0, used).empty());
    CHECK(job.say(2, used) == Ranks{0, 1, 2});
  }
  SECTION("in a domain already") {
    CHECK(job.say(1, {}, false, 1, true).empty());
    CHECK(job.say(1, {}, true) == Ranks{1});
    CHECK(job.say(0, {}).empty());
    CHECK(job.say(2, {}).empty());  // one is missing
    CHECK(job.say(3, {}) == Ranks{0, 2, 3});
  }
}

TEST_CASE("A rank that leaves hears who has found it, and has to tell them", "[domain]") {
  Job job;
  CHECK(job.say(0, {{7, 2, 1}}).empty());
  CHECK(job.say(1, {{7, 2, 1}}) == Ranks{0, 1});
  CHECK(job.say(0, {{7, 2, 1}}, false, 1, true) == Ranks{0, 1});
}

TEST_CASE("Several ranks of a communicator in one process count as that many", "[domain]") {
  Job job;
  CHECK(job.say(0, {{7, 4, 2}}).empty());
  CHECK(job.say(1, {{7, 4, 2}}) == Ranks{0, 1});
}

// Where each question compared every rank with every other, rank 0 stood still for seconds.
TEST_CASE("A thousand ranks that ask until all have come are answered in a moment", "[domain]") {
  Job job;
  job.num_ranks = 1000;
  const auto used_by = [](std::uint32_t rank) {
    return Used{{7, 1000, 1}, {8 + rank % 8, 125, 1}};
  };
  Ranks all;
  for (std::uint32_t rank = 0; rank < job.num_ranks; ++rank) {
    all.push_back(rank);
    CHECK(job.say(rank, used_by(rank)).empty() == (rank + 1 < job.num_ranks));
    CHECK(job.say(rank / 2, used_by(rank / 2)).empty() == (rank + 1 < job.num_ranks));
    CHECK(job.say(rank, {}, false, 2).empty() == (rank + 1 < job.num_ranks));
  }
  for (const std::uint64_t region : {1U, 2U}) CHECK(job.say(17, {}, false, region) == all);
}

TEST_CASE("Regions have domains of their own", "[domain]") {
  Job job;
  CHECK(job.say(0, {{7, 2, 1}}, false, 1).empty());
  CHECK(job.say(1, {{7, 2, 1}}, false, 2).empty());
  CHECK(job.say(1, {{7, 2, 1}}, false, 1) == Ranks{0, 1});
}

TEST_CASE("What cannot be read has no domain", "[domain]") {
  DomainPlanner planner;
  std::string why;
  auto bytes = encode(DomainReport{1, {{7, 2, 1}}, 4, false});
  bytes.pop_back();
  const contextune::Payload said[] = {bytes};
  CHECK(planner.decide({9, 0, {0}}, said, why).empty());
  CHECK_FALSE(why.empty());
  CHECK_FALSE(contextune::decode_domain(bytes).has_value());
}
