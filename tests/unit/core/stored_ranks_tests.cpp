// Ranks that start with what earlier runs have found out.
#include "catch.hpp"
#include "core/agreement/batch_message.hpp"
#include "several_ranks.hpp"

namespace contextune::tests {
namespace {

StoredWinner found(std::uint32_t config) {
  StoredWinner stored;
  stored.config = config;
  stored.seconds = 1e-3;
  stored.default_seconds = 2e-3;
  return stored;
}

void store(SeveralRanks& ranks, const std::vector<std::optional<StoredWinner>>& by_rank) {
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank)
    ranks[rank].sites.front().stored = by_rank[rank];
}

TEST_CASE("ranks that have stored the same winner start with it, and try nothing") {
  SeveralRanks ranks(4, TuningOptions{});
  ranks.add("kernel",
            {{2e-3, 3e-3, 1e-3}, {2e-3, 3e-3, 1e-3}, {2e-3, 3e-3, 1e-3}, {2e-3, 3e-3, 1e-3}});
  store(ranks, {found(2), found(2), found(2), found(2)});
  ranks.run();
  CHECK(ranks.meeting.num_decided() == 2);  // they meet, and say what they have
  for (std::size_t rank = 0; rank < 4; ++rank) {
    CHECK(ranks[rank].winner(0) == 2);
    CHECK(ranks[rank].recorder.trials.empty());
    REQUIRE(ranks[rank].recorder.winner_of(0) != nullptr);
    CHECK(ranks[rank].recorder.winner_of(0)->reason == WinnerReason::Stored);
  }
}

TEST_CASE("where ranks have stored different winners, that of the first one holds on all") {
  SeveralRanks ranks(2, TuningOptions{});
  ranks.add("kernel", {{2e-3, 3e-3, 1e-3}, {2e-3, 3e-3, 1e-3}});
  store(ranks, {found(2), found(1)});
  ranks.run();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(ranks[rank].winner(0) == 2);
    CHECK(ranks[rank].recorder.trials.empty());
    CHECK(ranks[rank].recorder.count(FallbackReason::StoredDiffer) == 1);
  }
}

TEST_CASE("where their environments differ as well, the site is tuned on all") {
  SeveralRanks ranks(2, TuningOptions{});
  ranks.add("kernel", {{3e-3, 2e-3, 1e-3}, {3e-3, 2e-3, 1e-3}});
  StoredWinner elsewhere = found(1);
  elsewhere.environment = 1;
  store(ranks, {found(0), elsewhere});
  ranks.run();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(ranks[rank].winner(0) == 2);
    CHECK_FALSE(ranks[rank].recorder.trials.empty());
  }
  require_same_passes(ranks);
}

TEST_CASE("a rank without anything stored takes part: no rank is left to tune alone") {
  SeveralRanks ranks(2, TuningOptions{});
  ranks.add("kernel", {{3e-3, 2e-3, 1e-3}, {3e-3, 2e-3, 1e-3}});
  SECTION("the first rank has something") {
    store(ranks, {found(1), std::nullopt});
    ranks.run();
    for (std::size_t rank = 0; rank < 2; ++rank) CHECK(ranks[rank].winner(0) == 1);
  }
  SECTION("it has nothing") {
    store(ranks, {std::nullopt, found(1)});
    ranks.run();
    for (std::size_t rank = 0; rank < 2; ++rank) CHECK(ranks[rank].winner(0) == 2);
  }
  require_same_passes(ranks);
}

TEST_CASE("winners of other software on one rank are confirmed by all") {
  SeveralRanks ranks(2, TuningOptions{});
  ranks.add("kernel", {{3e-3, 2e-3, 1e-3}, {3e-3, 2e-3, 1e-3}});
  StoredWinner old = found(1);
  old.needs_confirm = true;
  store(ranks, {found(1), old});
  ranks.run();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(ranks[rank].winner(0) == 1);
    CHECK(ranks[rank].recorder.trials.empty());
    REQUIRE(ranks[rank].recorder.confirms.size() == 1);
    CHECK(ranks[rank].recorder.confirms.front().verdict == ConfirmVerdict::Kept);
  }
  require_same_passes(ranks);
}

TEST_CASE("what the first rank has stored of a kernel that is another one elsewhere is confirmed") {
  SeveralRanks ranks(2, TuningOptions{});
  // The second rank's config 1 is another one now.
  const bool is_slower = GENERATE(false, true);
  ranks.add("kernel", {{3e-3, 1e-3, 2e-3}, {3e-3, is_slower ? 4e-3 : 1e-3, 2e-3}});
  store(ranks, {found(1), std::nullopt});
  ranks[1].sites.front().outdated = true;
  ranks.run();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(ranks[rank].winner(0) == (is_slower ? 2 : 1));
    CHECK(ranks[rank].recorder.trials.empty() == !is_slower);
    REQUIRE_FALSE(ranks[rank].recorder.confirms.empty());
    CHECK(ranks[rank].recorder.count(FallbackReason::StoredDiffer) == 1);
    CHECK(ranks[rank].recorder.count(FallbackReason::StaleWinners) == (is_slower ? 1 : 0));
  }
  require_same_passes(ranks);
}

TEST_CASE("what is stored travels unchanged") {
  BatchReport report;
  StoredWinner stored = found(3);
  stored.needs_confirm = true;
  stored.untried = {1, 4};
  stored.environment = 77;
  report.new_sites.push_back({SharedSite{}, true, {}, {}, stored, {}, true});
  BatchReport read;
  REQUIRE(decode(encode(report), read));
  REQUIRE(read.new_sites.size() == 1);
  REQUIRE(read.new_sites[0].stored);
  CHECK(read.new_sites[0].outdated);
  CHECK(read.new_sites[0].stored->config == 3);
  CHECK(read.new_sites[0].stored->needs_confirm);
  CHECK(read.new_sites[0].stored->untried == Configs{1, 4});
  CHECK(read.new_sites[0].stored->environment == 77);
  CHECK(read.new_sites[0].stored->seconds == 1e-3);
}

}  // namespace
}  // namespace contextune::tests
