#include "core/submission.hpp"

#include <optional>

#include "catch.hpp"
#include "core/submission_budget.hpp"
#include "core/submission_judge.hpp"

using namespace contextune;

TEST_CASE("A submission's words name it", "[submission]") {
  for (const auto& [submission, words] : {std::pair{Submission{}, "as written"},
                                          {Submission{true, 0}, "chained"},
                                          {Submission{false, 16}, "gathered=16"},
                                          {Submission{true, 8}, "chained gathered=8"}}) {
    CHECK(text_of(submission) == words);
    CHECK(submission_of(words) == submission);
  }
}

TEST_CASE("Other words name no submission", "[submission]") {
  for (const char* const words : {"", "as", "chained ", "chainedgathered=8", "gathered",
                                  "gathered=", "gathered=0", "gathered=8 chained", "gathered=8x",
                                  "gathered=-8", "gathered=99999999999", "chained chained"})
    CHECK(submission_of(words) == std::nullopt);
}

TEST_CASE("A search may cost a share of the time so far and something beside it", "[submission]") {
  SubmissionBudget budget(0.10, 0.050);
  CHECK(budget.covers(0.050));
  CHECK_FALSE(budget.covers(0.051));
  budget.elapsed(1.0);
  budget.elapsed(0.5);
  CHECK(budget.allowance() == Approx(0.150));
  budget.spend(0.100);
  CHECK(budget.covers(0.049));
  CHECK_FALSE(budget.covers(0.051));
}

TEST_CASE("Blocks on their way are held against the budget until they arrive", "[submission]") {
  SubmissionBudget budget(0.10, 0.050);
  budget.hold(0.040);
  CHECK_FALSE(budget.covers(0.020));
  budget.release(0.040);
  CHECK(budget.covers(0.020));
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
