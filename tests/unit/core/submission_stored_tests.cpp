#include "core/submission/submission_stored.hpp"

#include <cmath>

#include "catch.hpp"
#include "core/submission/submission_text.hpp"
#include "core/trials/stored_winner.hpp"

using namespace contextune;

namespace {

const Key key = {{"program", std::string("engine")}, {"arguments", std::string("00ff")}};

/// Of a search that has screened two submissions and compared one of them.
SubmissionState compared_state() {
  SubmissionState state;
  state.runs = 1;
  state.choices = {true, {16}};
  state.screened = {{{true, 16}, {0.7, 0.8}}, {{false, 16}, {0.9}}, {{true, 0}, {}}};
  state.pairs = {{{true, 16}, {}, {0.25, 0.3}, {0.25}}};
  state.verdict.winner = {true, 16};
  return state;
}

StoredSite stored(const SubmissionState& state) {
  return stored_submission(state, "launches", key, "build 1");
}

}  // namespace

TEST_CASE("A site of the store takes a search along", "[submission]") {
  const SubmissionState state = compared_state();
  const StoredSite site = stored(state);
  CHECK(site.name == "launches");
  CHECK(site.key == key);
  CHECK(site.code == "build 1");
  CHECK(site.winner.to_string() == "chained=true gathered=16");
  CHECK(submission_of(site) == state);
}

TEST_CASE("The trials of a stored search are what it measured, as written first", "[submission]") {
  const StoredSite site = stored(compared_state());
  REQUIRE(site.trials.size() == 3);
  CHECK(site.trials[0].config == config_of({}));
  CHECK(site.trials[0].samples == 3);
  CHECK(site.trials[1].config == config_of({true, 16}));
  CHECK(site.trials[1].samples == 5);
  CHECK(site.trials[2].config == config_of({false, 16}));
  CHECK(site.trials[2].samples == 1);
  for (const StoredTrial& trial : site.trials) {
    CHECK(trial.status == TrialStatus::Measured);
    CHECK(std::isnan(trial.seconds));
  }
  CHECK(std::isnan(site.seconds));
  CHECK(std::isnan(site.default_seconds));
  CHECK_FALSE(keeps_default(site));
  CHECK(keeps_default(stored({})));
}

TEST_CASE("A stored search says why it has its winner", "[submission]") {
  SubmissionState state = compared_state();
  CHECK(stored(state).reason == WinnerReason::SoFar);
  state.verdict.settled = true;
  CHECK(stored(state).reason == WinnerReason::Region);
  state.verdict.winner = {};
  CHECK(stored(state).reason == WinnerReason::Margin);
}

TEST_CASE("A search does not go on where its winner has failed since", "[submission]") {
  StoredSite site = stored(compared_state());
  site.winner = config_of({});
  CHECK_FALSE(submission_of(site));
  site = stored(compared_state());
  site.progress.clear();
  CHECK_FALSE(submission_of(site));
}
