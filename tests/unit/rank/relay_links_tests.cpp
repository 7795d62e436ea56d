// Relays over real sockets, and ranks that lose theirs.
#include "by_hand.hpp"
#include "catch.hpp"
#include "several_ranks.hpp"

using contextune::Agreement;
using contextune::RankSet;
using contextune::Topic;
using contextune::Verdict;
using namespace contextune::rank;

namespace {

constexpr std::uint32_t num_ranks = 8;
constexpr std::uint32_t relay = 4;

Topic without_relay(std::uint64_t question) {
  return {3, question,
          RankSet::all_of(num_ranks).filtered([](std::uint32_t rank) { return rank != relay; })};
}

void say(const Ranks& ranks, const Topic& topic, double seconds) {
  for (const auto& rank : ranks)
    if (rank && has_rank(topic, rank->rank()))
      rank->say(topic, join_parts, bytes_of(std::to_string(rank->rank())), seconds);
}

void require_agreement(const Ranks& ranks, const Topic& topic) {
  for (const auto& rank : ranks) {
    if (!rank || !has_rank(topic, rank->rank())) continue;
    const Agreement agreement = rank->wait(topic, long_enough);
    CAPTURE(rank->rank(), agreement.why);
    REQUIRE(agreement.verdict == Verdict::Committed);
    REQUIRE(agreement.decision == bytes_of("0123567"));
  }
}

}  // namespace

TEST_CASE("Ranks whose relay ends agree as before, and have none from then on", "[relay]") {
  Ranks ranks = make_relayed_ranks(num_ranks);
  say(ranks, without_relay(1), long_enough);
  require_agreement(ranks, without_relay(1));
  // In the midst of an agreement, and between two.
  const bool midst = GENERATE(false, true);
  if (midst) say(ranks, without_relay(2), long_enough);
  ranks[relay].reset();
  if (!midst) say(ranks, without_relay(2), long_enough);
  require_agreement(ranks, without_relay(2));
  for (const std::uint32_t rank : {5U, 6U, 7U}) wait_for_relay(*ranks[rank], false);
  say(ranks, without_relay(3), long_enough);
  require_agreement(ranks, without_relay(3));
}

TEST_CASE("A relay that passes nothing on is left within the time that was stated", "[relay]") {
  SocketSettings settings = test_settings(num_ranks);
  settings.fewest_relayed_ranks = fewest_relayed;
  Ranks ranks(num_ranks);
  for (std::uint32_t rank = 0; rank < num_ranks; ++rank)
    if (rank != relay)
      ranks[rank] = std::make_unique<SocketCoordinator>(of_rank(settings, rank), test_deciders());
  ByHand silent(settings, relay);
  const auto joined = silent.call(Purpose::Join);
  silent.tell_address(*joined, silent.listen());
  const auto have_relay = [&](bool has) {
    for (const std::uint32_t rank : {5U, 6U, 7U})
      if (dynamic_cast<const SocketCoordinator&>(*ranks[rank]).has_relay() != has) return false;
    return true;
  };
  silent.run_until([&] { return have_relay(true); });
  CHECK(silent.num_callers == 3);
  say(ranks, without_relay(1), 3);
  silent.run_until([&] { return have_relay(false); });
  require_agreement(ranks, without_relay(1));
  joined->close("the test is over");
}
