#include <string>
#include <vector>

#include "catch.hpp"
#include "core/agreement/replay_vote.hpp"

using contextune::Payload;
using contextune::ReplayVerdict;
using contextune::ReplayVote;

namespace {

ReplayVote with(std::vector<ReplayVote::Communicator> communicators) {
  return {true, false, {}, std::move(communicators)};
}

ReplayVote unable(bool may_later, const std::string& why) {
  return {false, may_later, why, {}};
}

ReplayVerdict verdict(const std::vector<ReplayVote>& votes) {
  const std::vector<std::uint32_t> ranks{0, 1, 5, 7};
  return contextune::verdict_of(votes, std::span(ranks).first(votes.size()));
}

}  // namespace

TEST_CASE("A region with collectives is replayed together where all their ranks can", "[replay]") {
  const ReplayVerdict all = verdict({with({{9, 2, 77}}), with({{9, 2, 77}})});
  CHECK(all.replays);
  CHECK(all.together);
}

TEST_CASE("Ranks of several communicators, and of none, go together", "[replay]") {
  const ReplayVerdict all =
      verdict({with({{9, 2, 77}, {4, 2, 5}}), with({{9, 2, 77}}), with({{4, 2, 5}}), with({})});
  CHECK(all.replays);
  CHECK(all.together);
}

TEST_CASE("Without a collective each rank replays alone", "[replay]") {
  const ReplayVerdict none = verdict({with({}), with({})});
  CHECK(none.replays);
  CHECK_FALSE(none.together);
}

TEST_CASE("One rank that cannot keeps all from it, and is named with its reason", "[replay]") {
  const ReplayVerdict one =
      verdict({with({{9, 3, 1}}), with({{9, 3, 1}}), unable(false, "It calls a host function.")});
  CHECK_FALSE(one.replays);
  CHECK_FALSE(one.may_later);
  CHECK_THAT(one.why, Catch::Contains("rank 5") && Catch::Contains("a host function"));
}

TEST_CASE("All try another visit only if whoever cannot may then", "[replay]") {
  CHECK(verdict({with({}), unable(true, "Memory came.")}).may_later);
  const ReplayVerdict both = verdict({unable(true, "Memory came."), unable(false, "Too long.")});
  CHECK_FALSE(both.may_later);
  CHECK_THAT(both.why, Catch::Contains("rank 1") && Catch::Contains("Too long."));
}

TEST_CASE("Collectives that would wait for others than they did are not repeated", "[replay]") {
  SECTION("another number or size of them") {
    const ReplayVerdict other = verdict({with({{9, 2, 77}}), with({{9, 2, 78}})});
    CHECK_FALSE(other.replays);
    CHECK_THAT(other.why, Catch::Contains("rank 0") && Catch::Contains("rank 1"));
    CHECK(other.may_later);
  }
  SECTION("a rank that has none") {
    const ReplayVerdict other = verdict({with({{9, 2, 77}}), with({})});
    CHECK_FALSE(other.replays);
    CHECK_THAT(other.why, Catch::Contains("2 ranks, 1 of which"));
  }
  SECTION("a rank that is not asked") {
    CHECK_FALSE(verdict({with({{9, 3, 77}}), with({{9, 3, 77}})}).replays);
  }
}

TEST_CASE("A vote is read as it was written, and garbage is not read", "[replay]") {
  const Payload bytes = encode(ReplayVote{true, true, "why", {{1, 2, 3}, {4, 5, 6}}});
  const auto read = contextune::decode_vote(bytes);
  REQUIRE(read);
  CHECK(read->why == "why");
  REQUIRE(read->communicators.size() == 2);
  CHECK(read->communicators[1].calls == 6);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(contextune::decode_vote({bytes.begin(), bytes.begin() + static_cast<long>(size)}));
  Payload longer = bytes;
  longer.push_back(std::byte{0});
  CHECK_FALSE(contextune::decode_vote(longer));
}
