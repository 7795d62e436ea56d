// Exchanges between all ranks, found among grouped Sends and Recvs.
#include <algorithm>
#include <optional>
#include <vector>

#include "catch.hpp"
#include "collective/all_to_all.hpp"

using namespace contextune::collective;

namespace {

using Direction = PeerCall::Direction;

std::vector<PeerCall> exchange(int ranks, std::uint64_t count, Datatype datatype) {
  std::vector<PeerCall> calls;
  for (int peer = 0; peer < ranks; ++peer) {
    calls.push_back({Direction::Send, peer, count, datatype});
    calls.push_back({Direction::Recv, peer, count, datatype});
  }
  return calls;
}

std::optional<AllToAll> find_all_to_all(const std::vector<PeerCall>& calls, int ranks) {
  PeerCalls of_group;
  for (const PeerCall& call : calls) of_group.add(call);
  return of_group.all_to_all(ranks);
}

}  // namespace

TEST_CASE("As much to and from every rank is an all-to-all", "[all_to_all]") {
  std::vector<PeerCall> calls = exchange(4, 100, Datatype::BF16);
  const AllToAll expected{100, Datatype::BF16, 800};
  CHECK(find_all_to_all(calls, 4) == expected);
  // The order of a group's calls means nothing.
  std::reverse(calls.begin(), calls.end());
  std::swap(calls[1], calls[6]);
  CHECK(find_all_to_all(calls, 4) == expected);
}

TEST_CASE("Who copies its own part does an all-to-all with the others", "[all_to_all]") {
  std::vector<PeerCall> calls = exchange(4, 100, Datatype::F32);
  calls.erase(calls.begin() + 2, calls.begin() + 4);
  CHECK(find_all_to_all(calls, 4) == AllToAll{100, Datatype::F32, 1600});
  CHECK_FALSE(find_all_to_all(exchange(1, 100, Datatype::F32), 3).has_value());
}

TEST_CASE("An exchange that leaves a rank out is something else", "[all_to_all]") {
  std::vector<PeerCall> calls = exchange(4, 100, Datatype::F32);
  SECTION("without one send") {
    calls.erase(calls.begin() + 2);
  }
  SECTION("without two ranks") {
    calls.erase(calls.begin() + 2, calls.begin() + 6);
  }
  SECTION("without one rank's send and another's receive") {
    calls.erase(calls.begin() + 5);
    calls.erase(calls.begin() + 2);
  }
  SECTION("without sends") {
    calls.erase(std::remove_if(calls.begin(), calls.end(),
                               [](const auto& call) { return call.direction == Direction::Send; }),
                calls.end());
  }
  SECTION("with nothing") {
    calls.clear();
  }
  CHECK_FALSE(find_all_to_all(calls, 4).has_value());
}

TEST_CASE("An exchange that is not the same for all is something else", "[all_to_all]") {
  std::vector<PeerCall> calls = exchange(4, 100, Datatype::F32);
  SECTION("another count") {
    calls[3].count = 101;
  }
  SECTION("another datatype of the same size") {
    calls[3].datatype = Datatype::I32;
  }
  SECTION("a peer twice, another never") {
    calls[2].peer = 2;
  }
  SECTION("a send in place of a receive") {
    calls[3].direction = Direction::Send;
  }
  SECTION("a peer out of range") {
    calls[6].peer = calls[7].peer = 4;
  }
  SECTION("a peer out of any range") {
    calls[6].peer = PeerCalls::most_ranks;
  }
  SECTION("a negative peer") {
    calls[6].peer = -1;
  }
  SECTION("a call too many") {
    calls.push_back(calls.back());
  }
  CHECK_FALSE(find_all_to_all(calls, 4).has_value());
}

TEST_CASE("An exchange of nothing is no site", "[all_to_all]") {
  CHECK_FALSE(find_all_to_all(exchange(4, 0, Datatype::F32), 4).has_value());
  CHECK_FALSE(find_all_to_all({}, 0).has_value());
}
