// What an earlier run has found out: it holds, is shown again, or is added to.
#include "catch.hpp"
#include "core/trials/grown_space.hpp"
#include "core/trials/stored_winner.hpp"
#include "fake_region.hpp"

using namespace contextune;
using namespace contextune::tests;

namespace {

StoredWinner found(std::uint32_t config) {
  StoredWinner stored;
  stored.config = config;
  stored.seconds = 7e-6;
  stored.default_seconds = 10e-6;
  return stored;
}

TuningOptions with_store() {
  TuningOptions options;
  options.store_knows = true;
  return options;
}

std::vector<std::uint32_t> tried(const FakeRegion& region, SiteIndex site) {
  std::set<std::uint32_t> configs;
  for (const TrialEvent& event : region.recorder.trials)
    if (event.site == site) configs.insert(event.config);
  return {configs.begin(), configs.end()};
}

}  // namespace

TEST_CASE("A region whose winners are all stored runs them from its first launch on", "[store]") {
  FakeRegion region(with_store());
  region.sites.push_back({.name = "a", .seconds = {10e-6, 8e-6, 7e-6}, .stored = found(2)});
  region.sites.push_back({.name = "b", .seconds = {10e-6}});
  const PassPlan first = region.entry();
  CHECK(first.counted);
  CHECK(first.measure == Measure::Nothing);
  CHECK(region.configs_run[0] == 2);
  CHECK(region.tuning.finished());
  CHECK(region.tuning.progress().passes == 0);
  CHECK(region.recorder.trials.empty());
  REQUIRE(region.recorder.winner_of(0) != nullptr);
  CHECK(region.recorder.winner_of(0)->reason == WinnerReason::Stored);
  CHECK(region.recorder.winner_of(0)->config == 2);
  CHECK(region.recorder.winner_of(0)->seconds == Approx(7e-6));
  CHECK(region.recorder.winner_of(0)->default_seconds == Approx(10e-6));
  CHECK_FALSE(region.entry().counted);
}

TEST_CASE("Sites that are not stored are tuned beside those that are", "[store]") {
  FakeRegion region(with_store());
  region.sites.push_back({.name = "a", .seconds = {10e-6, 8e-6, 7e-6}, .stored = found(1)});
  region.sites.push_back({.name = "b", .seconds = {10e-6, 5e-6}});
  region.run();
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 1);
  CHECK(tried(region, 0).empty());
  CHECK(tried(region, 1) == Configs{0, 1});
  for (const std::uint32_t config : region.column(0)) CHECK(config == 1);
  CHECK(region.recorder.winner_of(0)->reason == WinnerReason::Stored);
}

TEST_CASE("A stored site that appears late runs its winner and starts nothing", "[store]") {
  FakeRegion region(with_store());
  region.sites.push_back({.name = "a", .seconds = {10e-6, 8e-6}, .stored = found(1)});
  region.sites.push_back({.name = "late",
                          .seconds = {10e-6, 8e-6},
                          .when = [](std::uint64_t entry) { return entry > 3; },
                          .stored = found(1)});
  for (int i = 0; i < 8; ++i) region.entry();
  CHECK(region.tuning.finished());
  CHECK(region.tuning.progress().passes == 0);
  CHECK(region.winner(1) == 1);
}

TEST_CASE("A config that was added to a space is measured beside the stored winner and the default",
          "[store]") {
  StoredWinner stored = found(1);
  stored.untried = {3};
  SECTION("and wins if it is faster") {
    FakeRegion region(with_store());
    region.sites.push_back({.name = "a", .seconds = {10e-6, 8e-6, 9e-6, 6e-6}, .stored = stored});
    region.run();
    CHECK(tried(region, 0) == Configs{0, 1, 3});
    CHECK(region.winner(0) == 3);
  }
  SECTION("and changes nothing if it is not") {
    FakeRegion region(with_store());
    region.sites.push_back({.name = "a", .seconds = {10e-6, 8e-6, 5e-6, 12e-6}, .stored = stored});
    region.run();
    CHECK(tried(region, 0) == Configs{0, 1, 3});
    CHECK(region.winner(0) == 1);
  }
  SECTION("and the stored winner stays where the region is not faster with it") {
    FakeRegion region(with_store());
    region.sites.push_back({.name = "a", .seconds = {10e-6, 8e-6, 9e-6, 6e-6}, .stored = stored});
    region.region_time = [](const Configs& configs) { return configs[0] == 3 ? 9e-6 : 8e-6; };
    region.run();
    CHECK(region.winner(0) == 1);
    CHECK(region.recorder.winner_of(0)->reason == WinnerReason::Stored);
    CHECK(region.recorder.count(FallbackReason::StaleWinners) == 0);
  }
  SECTION("also where the region's time alone decides") {
    FakeRegion region(with_store());
    region.sites.push_back({.name = "a",
                            .seconds = {10e-6, 8e-6, 1e-6, 6e-6},
                            .objective = Objective::Region,
                            .stored = stored});
    region.run();
    CHECK(region.winner(0) == 3);
    for (const std::uint32_t config : region.column(0)) CHECK(config != 2);
  }
}

TEST_CASE(
    "Winners of other software go through the confirmation, and nothing else, before they count",
    "[store]") {
  StoredWinner stored = found(1);
  stored.needs_confirm = true;
  SECTION("and do not run before that") {
    FakeRegion region(with_store());
    region.sites.push_back({.name = "a", .seconds = {10e-6, 8e-6, 2e-6}, .stored = stored});
    const PassPlan first = region.entry();
    CHECK(first.stage == Stage::Table);
    CHECK(region.configs_run[0] == 0);
    CHECK(region.winner(0) == 0);
    region.run();
    CHECK(region.winner(0) == 1);
  }
  SECTION("and say so where the passes do not suffice for it") {
    TuningOptions options = with_store();
    options.max_passes = 3;
    FakeRegion region(options);
    region.sites.push_back({.name = "a", .seconds = {10e-6, 8e-6, 2e-6}, .stored = stored});
    for (int i = 0; i < 40; ++i) region.entry();
    for (const WinnerEvent& winner : region.recorder.winners)
      CHECK((winner.config == 0 || winner.reason == WinnerReason::Stored));
  }
  SECTION("and are kept where the region is faster with them") {
    FakeRegion region(with_store());
    region.sites.push_back({.name = "a", .seconds = {10e-6, 8e-6, 2e-6}, .stored = stored});
    region.run();
    CHECK(region.winner(0) == 1);
    CHECK(region.recorder.trials.empty());
    REQUIRE(region.recorder.confirms.size() == 1);
    CHECK(region.recorder.confirms.front().verdict == ConfirmVerdict::Kept);
    CHECK(region.recorder.winner_of(0)->reason == WinnerReason::Stored);
  }
  SECTION("and their sites are tuned anew where it is not") {
    FakeRegion region(with_store());
    region.sites.push_back({.name = "a", .seconds = {10e-6, 12e-6, 7e-6}, .stored = stored});
    region.run();
    CHECK(region.winner(0) == 2);
    CHECK(tried(region, 0) == Configs{0, 1, 2});
    CHECK(region.recorder.count(FallbackReason::StaleWinners) == 1);
    CHECK(region.recorder.winner_of(0)->config == 2);
  }
}

TEST_CASE("A stored winner whose build fails here is as if it were not stored", "[store]") {
  FakeRegion region(with_store());
  region.sites.push_back(
      {.name = "a", .seconds = {10e-6, 8e-6, 7e-6}, .ready = false, .stored = found(2)});
  region.entry();
  CHECK(region.configs_run[0] == 0);
  SECTION("it runs once it is built") {
    region.tuning.site_ready(0);
    CHECK(region.winner(0) == 2);
    region.run();
    CHECK(region.tuning.progress().passes == 0);
  }
  SECTION("it cannot be built") {
    const std::uint32_t unusable[] = {2};
    region.tuning.site_ready(0, unusable);
    region.run();
    CHECK(region.winner(0) == 1);
    CHECK(tried(region, 0) == Configs{0, 1});
  }
}

TEST_CASE("A site that is built within its first entry is tuned beside stored ones", "[store]") {
  FakeRegion region(with_store());
  region.sites.push_back({.name = "a", .seconds = {10e-6, 8e-6, 7e-6}, .stored = found(1)});
  region.sites.push_back({.name = "b", .seconds = {10e-6, 5e-6}, .ready = false});
  region.entry();
  CHECK_FALSE(region.tuning.finished());
  region.tuning.site_ready(1);
  CHECK_FALSE(region.tuning.finished());
  region.run();
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 1);
  CHECK(tried(region, 1) == Configs{0, 1});
  CHECK(tried(region, 0).empty());
}

TEST_CASE("Configs are found in the store by their values", "[store]") {
  StoredSite stored;
  stored.winner = {{"v", 2}};
  for (const int value : {0, 2, 9}) {
    StoredTrial trial;
    trial.config = {{"v", value}};
    stored.trials.push_back(trial);
  }
  const auto configs = make_configs(4);
  const auto winner = stored_winner(stored, configs);
  REQUIRE(winner);
  CHECK(winner->config == 2);
  CHECK(winner->untried == Configs{1, 3});
  CHECK_FALSE(winner->needs_confirm);
  stored.same_software = false;
  CHECK(stored_winner(stored, configs)->needs_confirm);
  stored.winner = {{"v", 9}};  // is no config any more
  CHECK_FALSE(stored_winner(stored, configs));
}

TEST_CASE("A failure counts as long as nothing is different that it came of", "[store]") {
  StoredSite stored;
  stored.winner = {{"v", 0}};
  stored.terms = {"f32:1e-5", 2, 3, true, 1000};
  StoredTrial trial;
  trial.config = {{"v", 1}};
  const auto configs = make_configs(2);
  const auto is_tried = [&](TrialStatus status, const Judging& here) {
    trial.status = status;
    stored.trials = {{{{"v", 0}}}, trial};
    CHECK(is_open(stored, here) ==
          (status != TrialStatus::Crashed && !counts_as_tried(trial, stored, here)));
    return stored_winner(stored, configs, here)->untried.empty();
  };
  const Judging same{Selection::Median, "f32:1e-5", 2, 3, true, 1000};
  for (const TrialStatus status :
       {TrialStatus::Measured, TrialStatus::LaunchFailed, TrialStatus::NoSample,
        TrialStatus::CutOff, TrialStatus::WrongResult, TrialStatus::TimedOut,
        TrialStatus::TooMuchMemory})
    CHECK(is_tried(status, same));
  CHECK_FALSE(is_tried(TrialStatus::Crashed, same));  // the journal knows
  for (const char* tolerance : {"", "f32:1e-6"})
    CHECK(is_tried(TrialStatus::WrongResult, {Selection::Median, tolerance, 2, 3, true}));
  for (const char* tolerance : {"f32:1e-4", "f16:1e-5"})
    CHECK_FALSE(is_tried(TrialStatus::WrongResult, {Selection::Median, tolerance, 2, 3, true}));
  CHECK(is_tried(TrialStatus::TimedOut, {Selection::Median, "", 1, 3, true}));
  CHECK_FALSE(is_tried(TrialStatus::TimedOut, {Selection::Median, "", 4, 3, true}));
  CHECK(is_tried(TrialStatus::CutOff, {Selection::Median, "", 2, 2, true}));
  CHECK_FALSE(is_tried(TrialStatus::CutOff, {Selection::Median, "", 2, 4, true}));
  CHECK_FALSE(is_tried(TrialStatus::CutOff, {Selection::Median, "", 2, 0, true}));
  CHECK(is_tried(TrialStatus::TooMuchMemory, {Selection::Median, "", 2, 3, true, 999}));
  CHECK_FALSE(is_tried(TrialStatus::TooMuchMemory, {Selection::Median, "", 2, 3, true, 1001}));
  stored.terms.reset();  // an earlier contextune's
  CHECK(is_tried(TrialStatus::TimedOut, {Selection::Median, "f32:0.1", 90, 0, true}));
}

TEST_CASE("A winner that was not confirmed is, by a run that confirms", "[store]") {
  StoredSite stored;
  stored.winner = {{"v", 1}};
  stored.trials = {{{{"v", 0}}}, {{{"v", 1}}}};
  stored.terms = {"", 30, 3, false};
  const auto configs = make_configs(2);
  Judging here;
  CHECK(stored_winner(stored, configs, here)->needs_confirm);
  CHECK(is_open(stored, here));
  here.confirm = false;
  CHECK(stored_winner(stored, configs, here)->holds());
  CHECK_FALSE(is_open(stored, here));
  here.confirm = true;
  stored.terms->confirmed = true;
  CHECK(stored_winner(stored, configs, here)->holds());
  stored.terms->confirmed = false;
  stored.winner = {{"v", 0}};
  CHECK(stored_winner(stored, configs, here)->holds());
}

TEST_CASE("A winner that was not compared is, by a run that compares", "[store]") {
  StoredSite stored;
  stored.winner = {{"v", 1}};
  stored.trials = {{{{"v", 0}}}, {{{"v", 1}}}};
  stored.terms = {"", 30, 3, true};
  const auto configs = make_configs(2);
  Judging here;
  CHECK(stored_winner(stored, configs, here)->holds());
  here.compares = true;
  CHECK(stored_winner(stored, configs, here)->needs_confirm);
  CHECK(is_open(stored, here));
  stored.terms->compared = true;
  CHECK(stored_winner(stored, configs, here)->holds());
  CHECK_FALSE(is_open(stored, here));
  stored.terms.reset();  // an earlier contextune's
  CHECK(stored_winner(stored, configs, here)->needs_confirm);
  stored.winner = {{"v", 0}};
  CHECK(stored_winner(stored, configs, here)->holds());
}

TEST_CASE("A winner is refuted by its own trial that was wrong, crashed or failed", "[store]") {
  StoredSite stored;
  stored.winner = {{"v", 1}};
  stored.trials = {{{{"v", 0}}}, {{{"v", 1}}}, {{{"v", 2}}}};
  stored.trials[2].status = TrialStatus::WrongResult;
  CHECK_FALSE(refutation(stored));
  for (const TrialStatus status :
       {TrialStatus::LaunchFailed, TrialStatus::WrongResult, TrialStatus::TimedOut,
        TrialStatus::Crashed, TrialStatus::TooMuchMemory}) {
    stored.trials[1].status = status;
    CHECK(refutation(stored) == status);
  }
  stored.trials[0].status = TrialStatus::LaunchFailed;
  stored.winner = {{"v", 0}};
  CHECK_FALSE(refutation(stored));  // the default
}

TEST_CASE("A winner that a looser tolerance has let through is loose", "[store]") {
  StoredSite stored;
  stored.winner = {{"v", 1}};
  stored.trials = {{{{"v", 0}}}, {{{"v", 1}}}};
  Judging here;
  CHECK_FALSE(is_loose(stored, here));  // an earlier contextune's
  stored.terms = {"f32:1e-3", 30, 3, true};
  CHECK(is_loose(stored, here));
  CHECK(is_open(stored, here));
  here.tolerance = "f32:1e-3";
  CHECK_FALSE(is_loose(stored, here));
  here.tolerance = "f32:1e-5";
  CHECK(is_loose(stored, here));
  stored.terms->tolerance = "";
  CHECK_FALSE(is_loose(stored, here));
}

TEST_CASE("A site of which prune keeps a part is found when its space has got more configs",
          "[store]") {
  const auto make = [](const std::string& kept, std::initializer_list<int> tried) {
    StoredSite made;
    made.name = "saxpy";
    made.key = {{"code", std::string("c")}, {"kept", kept}};
    for (const int value : tried) made.trials.push_back({{{"v", value}}});
    made.winner = {{"v", *(tried.end() - 1)}};
    made.tuned_at = "2026-11-20T20:33:53Z";
    return made;
  };
  const auto key = [](const std::string& kept) {
    return Key{{"code", std::string("c")}, {"kept", kept}};
  };
  std::vector<StoredSite> stored = {make("1of3-aa", {0, 1}), make("2of3-bb", {0, 1, 2}),
                                    make("2of3-cc", {0, 2, 3})};
  const auto find = [&](const std::string& kept, std::initializer_list<int> values) {
    std::vector<Config> configs;
    for (const int value : values) configs.push_back({{"v", value}});
    return find_before_growth(stored, "saxpy", key(kept), configs);
  };
  CHECK(find("2of5-dd", {0, 1, 4}) == &stored[0]);
  CHECK(find("4of5-dd", {0, 1, 2, 4, 5}) == &stored[1]);
  CHECK(find("2of5-dd", {0, 2, 3}) == &stored[2]);
  CHECK(find("3of5-dd", {0, 1, 3, 4}) == nullptr);  // none of those that there were
  CHECK(find("3of3-dd", {0, 1, 2, 3}) == nullptr);  // another launch of the same space
  CHECK(find("2of5-dd", {0, 4, 5}) == nullptr);
  CHECK(find_before_growth(stored, "daxpy", key("2of5-dd"), make_configs(2)) == nullptr);
  CHECK(find_before_growth(stored, "saxpy", {{"code", std::string("c")}}, make_configs(2)) ==
        nullptr);
  stored.push_back(make("1of4-ee", {0, 1}));
  stored.back().tuned_at = "2026-11-21T20:33:53Z";
  CHECK(find("2of5-dd", {0, 1, 4}) == &stored[3]);  // the later one
}

TEST_CASE("A declaration is another one where a word of it is, and not where one is added",
          "[store]") {
  CHECK(is_same_declaration("", "aa bb"));
  CHECK(is_same_declaration("aa bb", "aa bb"));
  CHECK(is_same_declaration("aa bb", "aa"));
  CHECK(is_same_declaration("aa", "aa cc bb"));
  CHECK(is_same_declaration("aa bb", "aa cc bb"));
  CHECK_FALSE(is_same_declaration("aa", "bb"));
  CHECK_FALSE(is_same_declaration("aa bb", "aa cc"));
  CHECK_FALSE(is_same_declaration("aa dd", "aa cc bb"));
}

TEST_CASE("Ranks that have stored different winners take the first rank's, in one environment only",
          "[store]") {
  const std::optional<StoredWinner> none;
  const auto vote = [](std::vector<std::optional<StoredWinner>> ranks) {
    return vote_on_stored(ranks);
  };
  CHECK(vote({found(2), found(2)}).winner->config == 2);
  CHECK_FALSE(vote({found(2), found(2)}).split);
  CHECK(vote({found(2), found(1)}).winner->config == 2);
  CHECK(vote({found(2), found(1)}).split);
  CHECK(vote({found(2), none}).winner->config == 2);
  CHECK_FALSE(vote({none, found(2)}).winner);
  CHECK(vote({none, found(2)}).split);
  CHECK_FALSE(vote({none, none}).split);
  StoredWinner elsewhere = found(1);
  elsewhere.environment = 5;
  CHECK_FALSE(vote({found(2), elsewhere}).winner);
  StoredWinner old = found(2);
  old.needs_confirm = true;
  CHECK(vote({found(2), old}).winner->needs_confirm);
}
