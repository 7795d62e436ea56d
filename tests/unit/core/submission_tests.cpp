#include "core/submission/submission.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "catch.hpp"
#include "core/submission/submission_budget.hpp"
#include "core/submission/submission_judge.hpp"

using namespace contextune;

TEST_CASE("A submission's words name it", "[submission]") {
  for (const auto& [submission, words] :
       {std::pair{Submission{}, "as written"},
        {Submission{true, 0}, "chained"},
        {Submission{false, 16}, "gathered=16"},
        {Submission{true, 8}, "chained gathered=8"},
        {Submission{true, 0, 0b1}, "chained but=0"},
        {Submission{true, 16, 0b1000'0000'0101}, "chained but=0,2,11 gathered=16"}}) {
    CHECK(text_of(submission) == words);
    CHECK(submission_of(words) == submission);
  }
}

TEST_CASE("Other words name no submission", "[submission]") {
  for (const char* const words :
       {"", "as", "chained ", "chainedgathered=8", "gathered", "gathered=", "gathered=0",
        "gathered=8 chained", "gathered=8x", "gathered=-8", "gathered=99999999999",
        "chained chained", "chained but=", "chained but=32", "chained but=0,", "but=0"})
    CHECK(submission_of(words) == std::nullopt);
}

TEST_CASE("Launches are pinned to a submission, or to one in turns with as written",
          "[submission]") {
  CHECK(pinned_launches_of("as written") == PinnedLaunches{});
  CHECK(pinned_launches_of("chained") == PinnedLaunches{{true, 0}});
  CHECK(pinned_launches_of("chained gathered=8 in turns") == PinnedLaunches{{true, 8}, true});
  for (const char* const words :
       {"", " in turns", "as written in turns", "chained but=0", "chained in turns in turns",
        "chained  in turns", "chained in turns ", "gathered=0 in turns"}) {
    INFO(words);
    CHECK_THROWS_WITH(
        pinned_launches_of(words),
        "launches are pinned to \"as written\", or to \"chained\", \"gathered=16\" or "
        "\"chained gathered=16\", behind which \" in turns\" may stand, not to \"" +
            std::string(words) + '"');
  }
}

TEST_CASE("A search may cost a share of the time so far and something beside it", "[submission]") {
  SubmissionBudget budget(0.10, 0.050);
  CHECK(budget.covers({true, 0}, 0.050));
  CHECK_FALSE(budget.covers({true, 0}, 0.051));
  budget.elapsed(1.0);
  budget.elapsed(0.5);
  CHECK(budget.allowance() == Approx(0.150));
  budget.spend(0.100);
  CHECK(budget.covers({true, 0}, 0.049));
  CHECK_FALSE(budget.covers({true, 0}, 0.051));
}

TEST_CASE("A submission that costs nothing may run although all is spent", "[submission]") {
  SubmissionBudget budget(0.10, 0.050);
  budget.spend(1);
  CHECK(budget.covers({}, 0));
  CHECK_FALSE(budget.covers({}, 1e-6));
  budget.expose({true, 0}, 0.001);
  CHECK_FALSE(budget.covers({true, 0}, 0));
  budget.expose({true, 0}, -0.002);
  CHECK(budget.covers({true, 0}, 0));
}

TEST_CASE("Blocks on their way are held against the budget until they arrive", "[submission]") {
  SubmissionBudget budget(0.10, 0.050);
  budget.hold(0.040);
  CHECK_FALSE(budget.covers({true, 0}, 0.020));
  budget.release(0.040);
  CHECK(budget.covers({true, 0}, 0.020));
}

TEST_CASE("The gains of one submission do not pay for what another costs", "[submission]") {
  SubmissionBudget budget(0.10, 0.050);
  budget.expose({true, 0}, -0.200);
  budget.expose({false, 16}, 0.030);
  budget.expose({false, 16}, -0.010);
  CHECK(budget.spent() == Approx(0.020));
}

TEST_CASE("Nothing to try is settled as written", "[submission]") {
  const SubmissionJudgement judgement = judge_submissions({}, {}, {});
  CHECK(judgement.step.kind == SubmissionStep::Kind::Settled);
  CHECK(judgement.verdict.settled);
  CHECK(judgement.verdict.winner.is_as_written());
}

namespace {

/// What every block of one submission said, as ratios of the screen and as pairs.
void add_blocks(SubmissionState& state, const Submission& submission,
                const std::vector<double>& ratios, const std::vector<double>& paired_ratios = {},
                const Submission& against = {}) {
  state.choices = {.may_chain = true, .may_gather = {8, 16}};
  state.screened.push_back({submission, ratios});
  SubmissionPairs pairs{submission, against, {}, {}};
  for (const double ratio : paired_ratios) {
    auto& to = pairs.against_first.size() > pairs.candidate_first.size() ? pairs.candidate_first
                                                                         : pairs.against_first;
    to.push_back(-std::log(ratio));
  }
  state.pairs.push_back(pairs);
}

}  // namespace

TEST_CASE("Gains of pairs are shares of the time as written, in the order in which they ran",
          "[submission]") {
  SubmissionState state;
  add_blocks(state, {true, 16}, {}, {0.75, 0.5, 1.25});
  add_blocks(state, {false, 16}, {}, {0.9});
  add_blocks(state, {true, 16}, {}, {0.3}, {false, 16});  // not with as written
  const std::vector<double> gains = gains_of_pairs(state, {true, 16});
  REQUIRE(gains.size() == 3);
  CHECK(gains[0] == Approx(0.25));
  CHECK(gains[1] == Approx(0.5));
  CHECK(gains[2] == Approx(-0.25));
  CHECK(gains_of_pairs(state, {}).empty());
}

TEST_CASE("All blocks of a run without an answer speak together", "[submission]") {
  const SubmissionLimits limits;
  SubmissionState state;
  add_blocks(state, {true, 16}, {0.80, 0.81}, {0.79, 0.80, 0.80, 0.81});
  const auto verdict = verdict_of_all(state, limits, 6);
  REQUIRE(verdict);
  CHECK(verdict->settled);
  CHECK(verdict->winner == Submission{true, 16});
  CHECK(verdict->pairs == 6);
  CHECK(verdict->gain == Approx(0.2).margin(0.01));
  CHECK(verdict->low < verdict->gain);
  CHECK(verdict->gain < verdict->high);
  CHECK(verdict->low > limits.margin);
  CHECK_FALSE(verdict_of_all(state, limits, 7));
}

TEST_CASE("One block, or pairs with another submission, show nothing", "[submission]") {
  SubmissionState state;
  CHECK_FALSE(verdict_of_all(state, {}, 0));
  add_blocks(state, {true, 0}, {0.5});
  CHECK_FALSE(verdict_of_all(state, {}, 0));
  state = {};
  add_blocks(state, {true, 0}, {}, {0.5, 0.5, 0.5, 0.5}, {false, 16});
  CHECK_FALSE(verdict_of_all(state, {}, 2));
}

TEST_CASE("A gain within the scatter of its blocks, or within the margin, is none",
          "[submission]") {
  SubmissionState state;
  add_blocks(state, {true, 0}, {0.5, 1.2, 0.6, 1.3});
  CHECK_FALSE(verdict_of_all(state, {}, 4));
  state = {};
  add_blocks(state, {true, 0}, {0.9950, 0.9951, 0.9949, 0.9950});
  CHECK_FALSE(verdict_of_all(state, {}, 4));
  state = {};
  add_blocks(state, {true, 0}, {1.5, 1.5, 1.5, 1.5});
  CHECK_FALSE(verdict_of_all(state, {}, 4));
}

TEST_CASE("Of two that are faster the one that is surely faster by more is kept", "[submission]") {
  SubmissionState state;
  add_blocks(state, {true, 8}, {0.40, 0.95, 0.40, 0.93, 0.45, 0.90});
  add_blocks(state, {false, 16}, {0.80, 0.81, 0.80, 0.79, 0.80, 0.81});
  const auto verdict = verdict_of_all(state, {}, 4);
  REQUIRE(verdict);
  CHECK(verdict->winner == Submission{false, 16});
}

TEST_CASE("A block that took no time shows no gain", "[submission]") {
  for (const double odd :
       {0.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    SubmissionState state;
    add_blocks(state, {true, 16}, {0.8, 0.8, odd, 0.8});
    CHECK_FALSE(verdict_of_all(state, {}, 4));
  }
}

TEST_CASE("What may not be tried any more is not kept for what it showed before", "[submission]") {
  SubmissionState state;
  add_blocks(state, {true, 16}, {0.6, 0.6, 0.6, 0.6});
  add_blocks(state, {false, 16}, {0.8, 0.8, 0.8, 0.8});
  state.choices = {.may_chain = false, .may_gather = {16}};
  const auto verdict = verdict_of_all(state, {}, 4);
  REQUIRE(verdict);
  CHECK(verdict->winner == Submission{false, 16});
}
