// Who takes part, and in which generation.

#include <contextune/error.hpp>

#include "catch.hpp"
#include "core/search/tuning_site.hpp"
#include "fake_region.hpp"

using namespace contextune;
using namespace contextune::tests;

namespace {

std::function<bool(std::uint64_t)> from(std::uint64_t first) {
  return [first](std::uint64_t entry) { return entry >= first; };
}

}  // namespace

TEST_CASE("A site is admitted in the very pass in which it is first launched", "[admission]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"a", {2e-6, 1e-6, 3e-6}});
  region.sites.push_back({.name = "late", .seconds = {2e-6, 1e-6}, .when = from(2)});
  region.run();
  CHECK(region.column(0) == Configs{0, 0, 1, 1, 2, 2});
  CHECK(region.column(1) == Configs{0, 0, 0, 0, 1, 1});
  CHECK(region.winner(1) == 1);
}

TEST_CASE("A site's part of the table takes as many passes as is said before", "[admission]") {
  SiteSpec spec;
  spec.configs.resize(3);
  CHECK(table_passes(spec, {1, 0, 2}) == 6);
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"a", {2e-6, 1e-6, 3e-6}});
  region.run();
  CHECK(region.column(0).size() == 6);
  spec.n_warmup = 1;
  spec.n_repeat = 4;
  CHECK(table_passes(spec, {1, 0, 2}) == 15);
  spec.stored.emplace().config = 1;
  CHECK(table_passes(spec, {1, 0, 2}) == 0);
  spec.stored->untried = {2};
  spec.stored->config = 0;
  CHECK(table_passes(spec, {1, 0, 2}) == 10);
  spec.pinned = 2;
  CHECK(table_passes(spec, {1, 0, 2}) == 0);
  spec = {};
  spec.configs.resize(1);
  CHECK(table_passes(spec, {1, 0, 2}) == 0);
  spec.configs.resize(2);
  spec.objective = Objective::Region;
  CHECK(table_passes(spec, {1, 0, 2}) == 0);
}

TEST_CASE("A site first seen within sixteen passes joins the generation", "[admission]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"a", std::vector<double>(20, 1e-6)});
  region.sites.push_back({.name = "b", .seconds = {2e-6, 1e-6}, .when = from(15)});
  region.run();
  CHECK(region.tuning.progress().passes == 40);
  for (const auto& [stage, generation] : region.recorder.stages) CHECK(generation == 0);
  CHECK(region.winner(1) == 1);
}

TEST_CASE("A site first seen after sixteen passes waits for a generation of its own",
          "[admission]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"a", std::vector<double>(10, 1e-6)});
  region.sites.push_back({.name = "b", .seconds = {2e-6, 1e-6}, .when = from(16)});
  region.run();
  // 20 passes of the first generation, then 4 of the second; its default until then.
  CHECK(region.tuning.progress().passes == 24);
  const Configs ran = region.column(1);
  CHECK(Configs(ran.begin(), ran.begin() + 20) == Configs(20, 0));
  CHECK(Configs(ran.begin() + 20, ran.end()) == Configs{0, 0, 1, 1});
  CHECK(region.recorder.stages.back() == std::pair{Stage::Finished, 1U});
  CHECK(region.winner(1) == 1);
}

TEST_CASE("Winners of an earlier generation keep running while a later one is tuned",
          "[admission]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"a", {2e-6, 1e-6}});
  region.run();
  region.sites.push_back({"b", {3e-6, 1e-6, 2e-6}});
  // Its first entry is not enough: a key that never comes back is not worth a generation.
  region.entry();
  CHECK(region.tuning.finished());
  region.entry();
  CHECK_FALSE(region.tuning.finished());
  region.run();
  const Configs ran = region.column(0);
  CHECK(Configs(ran.begin() + 4, ran.end()) == Configs(6, 1));
  CHECK(region.winner(1) == 1);
}

TEST_CASE("Endless new keys do not keep the tuning from finishing", "[admission]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"steady", {2e-6, 1e-6, 3e-6}});
  for (std::uint64_t entry = 0; entry < 400; ++entry) {
    region.sites.push_back({.name = "step" + std::to_string(entry),
                            .seconds = {2e-6, 1e-6},
                            .when = [entry](std::uint64_t now) { return now == entry; }});
  }
  region.run();
  CHECK(region.winner(0) == 1);
  // The sixteen that joined hold it up for 32 passes at most.
  CHECK(region.tuning.progress().passes <= 16 + 32 + 2);
  CHECK(region.recorder.count(FallbackReason::SeldomLaunched) == 16);
  for (int i = 0; i < 600; ++i) region.entry();
  CHECK(region.tuning.finished());
  CHECK(region.tuning.num_sites() == 256);
  CHECK(region.recorder.count(FallbackReason::TooManySites) == 1);
}

TEST_CASE("New keys that each come twice end when max_sites is reached", "[admission]") {
  TuningOptions options = ancestor(0, 2);
  options.max_sites = 64;
  FakeRegion region(options);
  for (std::uint64_t i = 0; i < 2000; ++i) {
    region.sites.push_back({.name = "step" + std::to_string(i),
                            .seconds = {2e-6, 1e-6},
                            .when = [i](std::uint64_t now) { return now / 2 == i; }});
  }
  for (int i = 0; i < 3900; ++i) region.entry();
  CHECK(region.tuning.finished());
  CHECK(region.tuning.num_sites() == 64);
}

TEST_CASE("Sites beyond max_sites run their default and are said once", "[admission]") {
  TuningOptions options = ancestor(0, 1);
  options.max_sites = 2;
  FakeRegion region(options);
  for (const char* name : {"a", "b", "c", "d"}) region.sites.push_back({name, {2e-6, 1e-6}});
  region.run();
  CHECK(region.sites[2].index == no_site);
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 1);
  CHECK(region.recorder.count(FallbackReason::TooManySites) == 1);
}

TEST_CASE("A site that does not come back keeps its default and says so", "[admission]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({"a", {2e-6, 1e-6}});
  region.sites.push_back({.name = "once", .seconds = {2e-6, 1e-6}, .when = [](std::uint64_t entry) {
                            return entry < 3;
                          }});
  region.run();
  CHECK(region.winner(0) == 1);
  CHECK(region.winner(1) == 0);
  REQUIRE(region.recorder.winner_of(1) != nullptr);
  CHECK(region.recorder.winner_of(1)->reason == WinnerReason::NoSamples);
  CHECK(region.recorder.count(FallbackReason::SeldomLaunched) == 1);
  CHECK(region.tuning.progress().passes <= 3 + 33);
}

TEST_CASE("A site whose variants are being built runs its default until they are", "[admission]") {
  FakeRegion region(ancestor(0, 2));
  region.sites.push_back({.name = "a", .seconds = {2e-6, 1e-6}, .ready = false});
  region.entry();
  for (int i = 0; i < 5; ++i) {
    const PassPlan plan = region.entry();
    CHECK_FALSE(plan.counted);
    CHECK(plan.waiting == Waiting::Builds);
    CHECK(plan.configs[0] == 0);
    CHECK_FALSE(region.tuning.finished());
  }
  region.tuning.site_ready(0);
  region.run();
  CHECK(region.winner(0) == 1);
}

TEST_CASE("A config that could not be built counts as failed and takes no passes", "[admission]") {
  const auto schedule =
      GENERATE(ScheduleKind::Table, ScheduleKind::Interleaved, ScheduleKind::Racing);
  TuningOptions options = ancestor(0, 2);
  options.schedule = schedule;
  FakeRegion region(options);
  region.sites.push_back({.name = "a", .seconds = {3e-6, 1e-6, 2e-6}, .ready = false});
  region.entry();
  region.tuning.site_ready(0, std::vector<std::uint32_t>{1});
  region.entry();
  region.run();
  CHECK(region.winner(0) == 2);
  for (const auto& [pass, configs] : region.rows) CHECK(configs[0] != 1);
  CHECK(std::count_if(region.rows.begin(), region.rows.end(),
                      [](const auto& row) { return row.second[0] == 0; }) <= 3);
}

TEST_CASE("A pinned site runs its config from the first pass and is not tuned", "[admission]") {
  Recorder recorder;
  Tuning tuning(TuningOptions{}, &recorder);
  SiteSpec pinned{.name = "a", .key = {}, .configs = make_configs(3)};
  pinned.pinned = 2;
  const SiteIndex site = tuning.add_site(pinned);
  const PassPlan plan = tuning.begin_pass(next_pass(), 0);
  CHECK(plan.configs[site] == 2);
  tuning.end_pass(plan.pass, std::vector{site}, {}, 0);
  tuning.add_result(PassResult::none(plan.pass), 0);
  CHECK(tuning.finished());
  CHECK(tuning.winners()[site] == 2);
  REQUIRE(recorder.winner_of(site) != nullptr);
  CHECK(recorder.winner_of(site)->reason == WinnerReason::Pinned);
}

TEST_CASE("A site without configs or with an impossible pin is refused", "[admission]") {
  Recorder recorder;
  Tuning tuning(TuningOptions{}, &recorder);
  CHECK_THROWS_AS(tuning.add_site({.name = "none", .key = {}, .configs = {}}), Error);
  SiteSpec pinned{.name = "a", .key = {}, .configs = make_configs(3)};
  pinned.pinned = 3;
  CHECK_THROWS_WITH(tuning.add_site(pinned), Catch::Contains("'a' is pinned to config 3"));
  CHECK(tuning.num_sites() == 0);
}

TEST_CASE("The plan stays as it is while sites are added in mid-pass", "[admission]") {
  Recorder recorder;
  Tuning tuning(TuningOptions{}, &recorder);
  const SiteIndex first = tuning.add_site({.name = "a", .key = {}, .configs = make_configs(2)});
  const PassPlan plan = tuning.begin_pass(next_pass(), 0);
  const std::uint32_t* data = plan.configs.data();
  for (int i = 0; i < 100; ++i)
    (void)tuning.add_site({.name = "b", .key = {}, .configs = make_configs(2)});
  CHECK(plan.configs.data() == data);
  CHECK(plan.configs.size() == 1);
  CHECK(plan.configs[first] == 0);
}
