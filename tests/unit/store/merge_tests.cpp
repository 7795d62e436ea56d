#include "catch.hpp"
#include "store_fixture.hpp"

using namespace contextune;
using namespace contextune::store;
using namespace contextune::store::test;

namespace {

const Facts old_driver = {{"driver", "12.4"}};
const Facts new_driver = {{"driver", "13.0"}};

std::string day(int number) {
  return "2026-11-" + std::string(number < 10 ? "0" : "") + std::to_string(number) + "T00:00:00Z";
}

StoredSite site_with(std::initializer_list<std::int64_t> tried, std::int64_t winner) {
  StoredSite made = site("saxpy", winner);
  made.trials.clear();
  for (const std::int64_t threads : tried)
    made.trials.push_back({block(threads), TrialStatus::Measured, 5, 1e-6, 1e-6, 1e-6});
  return made;
}

std::vector<Config> configs(const EntrySite& site) {
  std::vector<Config> all;
  for (const StoredTrial& trial : site.site.trials) all.push_back(trial.config);
  return all;
}

Entry tuned(int on_day, std::int64_t winner, const Facts& software = new_driver) {
  Entry entry;
  add_tuning(entry, software, {site_with({winner}, winner)}, confirm(), day(on_day));
  return entry;
}

}  // namespace

TEST_CASE("What compared nothing takes the place of no comparison") {
  StoredConfirm skipped;
  Entry entry = full_entry();
  add_tuning(entry, {{"driver", "14.0"}}, {site()}, skipped, "2026-11-25T20:33:53Z");
  REQUIRE(entry.confirm);
  CHECK(entry.confirm->figures.pairs == 8);
  Entry other = full_entry();
  other.confirm->figures = skipped;
  other.confirm->tuned_at = "2026-11-26T20:33:53Z";
  CHECK(merge_entry(entry, other).same == 1);
  CHECK(entry.confirm->figures.pairs == 8);
}

TEST_CASE("A site that is tuned again takes its place, and the last five winners are kept") {
  Entry entry;
  for (int i = 1; i <= 8; ++i)
    add_tuning(entry, new_driver, {site_with({i}, i)}, std::nullopt, day(i));
  REQUIRE(entry.sites.size() == 1);
  CHECK(entry.sites[0].site.winner == block(8));
  CHECK(entry.sites[0].site.tuned_at == day(8));
  REQUIRE(entry.sites[0].replaced.size() == 5);
  CHECK(entry.sites[0].replaced.front().winner == block(7));
  CHECK(entry.sites[0].replaced.back().winner == block(3));
}

TEST_CASE("A site's progress is that of its last tuning, also where stores are merged") {
  const auto with_progress = [](int on_day, const std::string& progress) {
    StoredSite made = site_with({64}, 64);
    made.progress = progress;
    made.reason = WinnerReason::SoFar;
    Entry entry;
    add_tuning(entry, new_driver, {made}, std::nullopt, day(on_day));
    return entry;
  };
  const Entry old = with_progress(1, "1 old");
  const Entry late = with_progress(2, "1 late");
  Entry tuned_again = old;
  add_tuning(tuned_again, new_driver, {late.sites[0].site}, std::nullopt, day(2));
  CHECK(tuned_again.sites.at(0).site.progress == "1 late");
  Entry merged = old;
  CHECK(merge_entry(merged, late).replaced == 1);
  CHECK(merged.sites.at(0).site.progress == "1 late");
  merged = late;
  CHECK(merge_entry(merged, old).older == 1);
  CHECK(merged.sites.at(0).site.progress == "1 late");
}

TEST_CASE("Sites are told apart by name and key, and those that were not tuned now stay") {
  Entry entry;
  StoredSite other_key = site();
  other_key.key.add("stream", std::string("1"));
  add_tuning(entry, new_driver, {site(), other_key, site("gemm")}, confirm(), day(1));
  add_tuning(entry, new_driver, {site("axpy")}, std::nullopt, day(2));
  REQUIRE(entry.sites.size() == 4);
  CHECK(entry.sites[0].site.name == "axpy");
  CHECK(entry.sites[1].site.name == "gemm");
  CHECK(entry.sites[2].site.key == site().key);
  CHECK(entry.sites[3].site.key == other_key.key);
  REQUIRE(entry.confirm);
  CHECK(entry.confirm->tuned_at == day(1));
}

TEST_CASE("A whole number and a text that looks like it are two keys") {
  Entry entry;
  StoredSite number = site();
  StoredSite text = site();
  number.key = {{"n", std::int64_t{1}}};
  text.key = {{"n", std::string("1")}};
  add_tuning(entry, new_driver, {number, text}, std::nullopt, day(1));
  CHECK(entry.sites.size() == 2);
}

TEST_CASE(
    "Configs of another program's space stay, if they were measured under the same software") {
  Entry entry;
  add_tuning(entry, new_driver, {site_with({64, 128, 256}, 256)}, std::nullopt, day(1));
  add_tuning(entry, new_driver, {site_with({64, 512}, 512)}, std::nullopt, day(2));
  CHECK(configs(entry.sites[0]) == std::vector{block(64), block(512), block(128), block(256)});
  add_tuning(entry, old_driver, {site_with({64}, 64)}, std::nullopt, day(3));
  CHECK(configs(entry.sites[0]) == std::vector{block(64)});
}

TEST_CASE("A config of the same values in another order is the same config") {
  Entry entry;
  StoredSite turned = site_with({256}, 256);
  turned.trials[0].config = {{"per_sm", std::int64_t{4}}, {"block", std::int64_t{256}}};
  add_tuning(entry, new_driver, {site_with({256}, 256)}, std::nullopt, day(1));
  add_tuning(entry, new_driver, {turned}, std::nullopt, day(2));
  CHECK(entry.sites[0].site.trials.size() == 1);
}

TEST_CASE("Configs that were not tried are not stored") {
  Entry entry;
  StoredSite made = site_with({64, 128}, 64);
  made.trials[1].status = TrialStatus::Untried;
  add_tuning(entry, new_driver, {made}, std::nullopt, day(1));
  CHECK(configs(entry.sites[0]) == std::vector{block(64)});
}

TEST_CASE("Software is kept as long as something refers to it") {
  Entry entry;
  add_tuning(entry, old_driver, {site("a"), site("b")}, std::nullopt, day(1));
  add_tuning(entry, new_driver, {site("a")}, std::nullopt, day(2));
  CHECK(entry.software.size() == 2);
  for (int i = 3; i < 9; ++i)
    add_tuning(entry, new_driver, {site("a"), site("b")}, std::nullopt, day(i));
  CHECK(entry.software.size() == 1);
}

TEST_CASE("Of two entries the site that was tuned later wins, whichever is merged into the other") {
  Entry one = tuned(1, 64);
  Entry two = tuned(2, 128);
  Entry into_one = one;
  Entry into_two = two;
  CHECK(merge_entry(into_one, two).replaced == 1);
  CHECK(merge_entry(into_two, one).older == 1);
  CHECK(to_text(into_one) == to_text(into_two));
  CHECK(into_one.sites[0].site.winner == block(128));
  REQUIRE(into_one.sites[0].replaced.size() == 1);
  CHECK(into_one.sites[0].replaced[0].winner == block(64));
  CHECK(into_one.confirm->tuned_at == day(2));
}

TEST_CASE("Merging again changes nothing") {
  Entry entry = tuned(1, 64);
  const Entry other = tuned(2, 128, old_driver);
  static_cast<void>(merge_entry(entry, other));
  const std::string once = to_text(entry);
  CHECK(merge_entry(entry, other).same == 1);
  CHECK(to_text(entry) == once);
  CHECK(merge_entry(entry, parse_entry(once)).same == 1);
  CHECK(to_text(entry) == once);
}

TEST_CASE("A merge keeps the five latest of both histories, each once") {
  Entry one;
  Entry two;
  for (int i = 1; i <= 6; ++i) {
    Entry& entry = i % 2 == 0 ? one : two;
    add_tuning(entry, new_driver, {site_with({i}, i)}, std::nullopt, day(i));
  }
  static_cast<void>(merge_entry(one, two));
  static_cast<void>(merge_entry(one, two));
  CHECK(one.sites[0].site.winner == block(6));
  REQUIRE(one.sites[0].replaced.size() == 5);
  for (int i = 0; i < 5; ++i)
    CHECK(one.sites[0].replaced[static_cast<std::size_t>(i)].winner == block(5 - i));
}
