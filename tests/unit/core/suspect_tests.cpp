// Configs that were being tried when a process ended abnormally.
#include "catch.hpp"
#include "fake_region.hpp"

using namespace contextune;
using namespace contextune::tests;

namespace {

std::set<std::uint32_t> run_of(const FakeRegion& region, SiteIndex site) {
  const Configs column = region.column(site);
  return {column.begin(), column.end()};
}

}  // namespace

TEST_CASE("A config that is blamed is named, and never run", "[suspects]") {
  FakeRegion region(TuningOptions{});
  region.sites.push_back(
      {.name = "a", .seconds = {10e-6, 8e-6, 1e-6}, .suspicions = {.blamed = {2}, .suspects = {}}});
  region.run();
  CHECK(region.winner(0) == 1);
  CHECK(run_of(region, 0) == std::set<std::uint32_t>{0, 1});
  REQUIRE(region.recorder.count(FallbackReason::ConfigCrashed) == 1);
  CHECK(region.recorder.fallbacks.front().text.find("v=2") != std::string::npos);
}

TEST_CASE("Each suspect is tried alone before anything else is tried", "[suspects]") {
  FakeRegion region(ancestor(0, 1));
  region.sites.push_back({.name = "a",
                          .seconds = {3e-6, 2e-6, 1e-6},
                          .suspicions = {.blamed = {}, .suspects = {2, 1}}});
  region.sites.push_back(
      {.name = "b", .seconds = {3e-6, 2e-6, 1e-6}, .suspicions = {.blamed = {}, .suspects = {1}}});
  SECTION("when results come at once") {
    region.lag = 0;
  }
  SECTION("and only once its result is there") {
    region.lag = 2;
  }
  region.run();
  // Pass 0 shows the sites, with their defaults.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> first;
  for (std::size_t row = 1; row < 4; ++row)
    first.emplace_back(region.rows[row].second[0], region.rows[row].second[1]);
  CHECK(first == std::vector<std::pair<std::uint32_t, std::uint32_t>>{{2, 0}, {1, 0}, {0, 1}});
  CHECK(region.winner(0) == 2);
  CHECK(region.winner(1) == 2);
}

TEST_CASE("A suspect whose site is not launched holds nothing up, and is not tried", "[suspects]") {
  FakeRegion region(TuningOptions{});
  region.sites.push_back({.name = "a",
                          .seconds = {3e-6, 1e-6},
                          .when = [](std::uint64_t entry) { return entry == 0 || entry > 200; },
                          .suspicions = {.blamed = {}, .suspects = {1}}});
  region.sites.push_back({.name = "b", .seconds = {3e-6, 1e-6}});
  region.run();
  CHECK(run_of(region, 0) == std::set<std::uint32_t>{0, 1});  // planned, and never launched
  CHECK(region.winner(0) == 0);
  CHECK(region.winner(1) == 1);
}

TEST_CASE("A stored winner that is blamed meanwhile is not run", "[suspects]") {
  StoredWinner stored;
  stored.config = 1;
  FakeRegion region({.store_knows = true});
  region.sites.push_back({.name = "a",
                          .seconds = {10e-6, 1e-6, 8e-6},
                          .stored = stored,
                          .suspicions = {.blamed = {1}, .suspects = {}}});
  region.run();
  CHECK(region.winner(0) == 2);
  CHECK(run_of(region, 0) == std::set<std::uint32_t>{0, 2});
}

TEST_CASE("A stored winner that is a suspect is tried alone before it runs", "[suspects]") {
  StoredWinner stored;
  stored.config = 1;
  stored.seconds = 1e-6;
  FakeRegion region({.store_knows = true});
  const auto add = [&](const char* name, StoredWinner winner) {
    region.sites.push_back({.name = name,
                            .seconds = {10e-6, 1e-6, 8e-6},
                            .stored = std::move(winner),
                            .suspicions = {.blamed = {}, .suspects = {1}}});
  };
  SECTION("and then holds, without anything being tuned") {
    add("a", stored);
    add("b", stored);
    region.run();
    // The first entry only shows the sites, with their defaults.
    REQUIRE(region.rows.size() >= 3);
    CHECK(region.rows[0].second == Configs{0, 0});
    CHECK(region.rows[1].second == Configs{1, 0});
    CHECK(region.rows[2].second == Configs{1, 1});
    CHECK(region.winner(0) == 1);
    CHECK(region.winner(1) == 1);
    CHECK(run_of(region, 0) == std::set<std::uint32_t>{0, 1});
  }
  SECTION("also where configs have been added to its space") {
    stored.untried = {2};
    add("a", stored);
    region.run();
    CHECK(region.rows[1].second == Configs{1});
    CHECK(region.winner(0) == 1);
    CHECK(run_of(region, 0) == std::set<std::uint32_t>{0, 1, 2});
  }
  SECTION("not at all where its site is not launched any more") {
    add("a", stored);
    region.sites.back().when = [](std::uint64_t entry) { return entry == 0; };
    region.sites.push_back({.name = "b", .seconds = {3e-6, 1e-6}});
    region.run();
    CHECK(region.winner(0) == 0);
    CHECK(region.winner(1) == 1);
  }
}
