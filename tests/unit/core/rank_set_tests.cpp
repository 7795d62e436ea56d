#include "core/coordination/rank_set.hpp"

#include <random>
#include <set>
#include <vector>

#include "catch.hpp"

using contextune::RankSet;

namespace {

using List = std::vector<std::uint32_t>;

List list_of(const RankSet& ranks) {
  return {ranks.begin(), ranks.end()};
}

/// The same runs, put in one by one; absent: they are refused.
bool takes_runs(const std::vector<RankSet::Run>& runs) {
  RankSet set;
  for (const RankSet::Run& run : runs)
    if (!set.push_back(run)) return false;
  return true;
}

}  // namespace

TEST_CASE("A set of ranks gives back what was put in, and knows what it has", "[rank_set]") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    std::set<std::uint32_t> drawn;
    const std::uint64_t range = 1 + random() % 40;
    for (std::uint64_t count = random() % 30; count > 0; --count)
      drawn.insert(static_cast<std::uint32_t>(random() % range));
    const List list(drawn.begin(), drawn.end());
    const RankSet set = list;
    CHECK(list_of(set) == list);
    CHECK(set.size() == list.size());
    CHECK(set.empty() == list.empty());
    CHECK(set.ascends());
    for (std::uint32_t rank = 0; rank < range + 1; ++rank)
      CHECK(set.contains(rank) == drawn.contains(rank));
    for (std::size_t place = 0; place < list.size(); ++place)
      CHECK(set.place_of(list[place]) == place);
    const auto is_even = [](std::uint32_t rank) { return rank % 2 == 0; };
    for (const std::uint32_t rank : set.filtered(is_even))
      CHECK((is_even(rank) && drawn.contains(rank)));
    if (list.empty()) continue;
    CHECK(set.front() == list.front());
    CHECK(set.back() == list.back());
    // As it is sent.
    RankSet received;
    for (const RankSet::Run& run : set.runs()) CHECK(received.push_back(run));
    CHECK(received == set);
    CHECK_FALSE(received < set);
  }
}

TEST_CASE("Ranks at equal distances are one run, however many they are", "[rank_set]") {
  CHECK(RankSet::all_of(16384).runs().size() == 1);
  CHECK(RankSet::all_of(16384).size() == 16384);
  CHECK(RankSet::all_of(3) == RankSet{0, 1, 2});
  CHECK(RankSet::all_of(1) == RankSet{0});
  CHECK(RankSet::all_of(0).empty());
  CHECK(RankSet{5, 13, 21, 29}.runs().size() == 1);
  CHECK(RankSet{0, 1, 2, 3, 8, 9, 10, 11}.runs().size() == 2);
}

TEST_CASE("Ranks that do not ascend are kept as they are", "[rank_set]") {
  for (const List& list : {List{2, 2}, List{3, 1}, List{0, 1, 2, 2}, List{0, 4, 8, 3}}) {
    const RankSet set = list;
    CHECK(list_of(set) == list);
    CHECK_FALSE(set.ascends());
  }
}

TEST_CASE("Runs that ranks would not make are refused", "[rank_set]") {
  CHECK(takes_runs({{0, 1, 3}, {7, 2, 2}, {100, 0, 1}}));
  CHECK_FALSE(takes_runs({{0, 1, 0}}));             // no rank
  CHECK_FALSE(takes_runs({{0, 0, 2}}));             // one rank twice
  CHECK_FALSE(takes_runs({{0, 1, 1}}));             // one rank with a distance
  CHECK_FALSE(takes_runs({{0, 1, 3}, {3, 1, 2}}));  // goes on with the run before
  CHECK_FALSE(takes_runs({{0, 0, 1}, {4, 0, 1}}));  // two ranks are a run
  CHECK_FALSE(takes_runs({{0, 2, 3}, {3, 0, 1}}));  // within the run before
  CHECK_FALSE(takes_runs({{0, 0x80000000U, 3}}));   // past the largest number
  CHECK_FALSE(takes_runs({{0xffffffffU, 0xffffffffU, 0xffffffffU}}));
}
