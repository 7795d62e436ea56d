#include "catch.hpp"
#include "core/trials/stored_winner.hpp"
#include "store_fixture.hpp"

using namespace contextune;
using namespace contextune::store;
using namespace contextune::store::test;

namespace {

const Facts software = {{"driver", "13.0"}};
const std::string earlier = "2026-11-20T00:00:00Z";
const std::string later = "2026-11-21T00:00:00Z";

StoredSite seen() {
  StoredSite made = site("saxpy", 128);
  made.trials.clear();
  made.reason = WinnerReason::NoSamples;
  made.seconds = made.default_seconds = not_measured;
  return made;
}

StoredTrial untried(std::int64_t threads) {
  return {block(threads), TrialStatus::Untried, 0, not_measured, not_measured, not_measured};
}

/// A site that is tuned, and a note of it.
struct NotedSite {
  NotedSite() { add_tuning(entry, software, {site()}, std::nullopt, earlier); }
  Entry entry;
  StoredSite note = seen();
};

}  // namespace

TEST_CASE("A site that was only seen is noted, and what is found out then takes its place") {
  Entry entry;
  add_tuning(entry, software, {seen()}, std::nullopt, earlier);
  REQUIRE(entry.sites.size() == 1);
  CHECK(is_open(entry.sites[0].site));
  add_tuning(entry, software, {site()}, std::nullopt, later);
  CHECK_FALSE(is_open(entry.sites[0].site));
  CHECK(entry.sites[0].site.winner == block(256));
  CHECK(entry.sites[0].replaced.empty());
}

TEST_CASE_METHOD(NotedSite,
                 "A note leaves the progress of a search, unless it tells of other code") {
  note.progress = "";
  note.trials = {untried(256)};
  note.trials[0].status = TrialStatus::Crashed;
  add_tuning(entry, software, {note}, std::nullopt, later);
  CHECK(entry.sites.at(0).site.progress == site().progress);
  note.code = "fedcba9876543210";
  add_tuning(entry, software, {note}, std::nullopt, later);
  CHECK(entry.sites.at(0).site.progress.empty());
}

TEST_CASE_METHOD(
    NotedSite,
    "Configs that were seen of a known site are noted beside its winner, until they are tried") {
  note.trials = {untried(512), untried(128)};
  for (int i = 0; i < 2; ++i) add_tuning(entry, software, {note}, std::nullopt, later);
  const StoredSite& known = entry.sites.at(0).site;
  CHECK(is_open(known));
  CHECK(known.winner == block(256));
  CHECK(known.tuned_at == earlier);
  CHECK(known.trials.size() == site().trials.size() + 1);
  add_tuning(entry, software, {site("saxpy", 128)}, std::nullopt, later);
  CHECK_FALSE(is_open(entry.sites[0].site));
}

TEST_CASE("What a tuning had found before its end is no winner that history tells of") {
  Entry entry;
  add_tuning(entry, software, {site()}, std::nullopt, earlier);
  StoredSite so_far = site("saxpy", 128);
  so_far.reason = WinnerReason::SoFar;
  for (int i = 0; i < 3; ++i) add_tuning(entry, software, {so_far}, std::nullopt, later);
  add_tuning(entry, software, {site("saxpy", 128)}, std::nullopt, later);
  const std::vector<ReplacedWinner>& history = entry.sites.at(0).replaced;
  REQUIRE(history.size() == 1);
  CHECK(history[0].winner == block(256));
  CHECK(history[0].tuned_at == earlier);
}

TEST_CASE("A winner that was found so far becomes no history where stores are merged or it fails") {
  Entry entry;
  StoredSite so_far = site();
  so_far.reason = WinnerReason::SoFar;
  add_tuning(entry, software, {so_far}, std::nullopt, earlier);
  Entry other;
  add_tuning(other, software, {site("saxpy", 128)}, std::nullopt, later);
  CHECK(merge_entry(entry, other).replaced == 1);
  CHECK(entry.sites.at(0).replaced.empty());
  Entry failed;
  add_tuning(failed, software, {so_far}, std::nullopt, earlier);
  StoredSite note = seen();
  note.trials = {untried(256)};
  note.trials[0].status = TrialStatus::Crashed;
  add_tuning(failed, software, {note}, std::nullopt, later);
  CHECK(failed.sites.at(0).site.reason == WinnerReason::NoSamples);
  CHECK(failed.sites[0].replaced.empty());
}

TEST_CASE_METHOD(NotedSite, "A winner that has failed since is history, and the site is open") {
  note.trials = {untried(256)};
  note.trials[0].status = TrialStatus::Crashed;
  const Entry with_winner = entry;
  add_tuning(entry, software, {note}, std::nullopt, later);
  const EntrySite& known = entry.sites.at(0);
  CHECK(is_open(known.site));
  CHECK(known.site.winner == block(128));
  REQUIRE(known.replaced.size() == 1);
  CHECK(known.replaced[0].winner == block(256));
  CHECK(to_text(parse_entry(to_text(entry))) == to_text(entry));
  // Nor does it come back from where it has not failed yet.
  Entry merged = entry;
  CHECK(merge_entry(merged, with_winner).replaced == 0);
  CHECK(is_open(merged.sites.at(0).site));
  merged = with_winner;
  CHECK(merge_entry(merged, entry).replaced == 1);
  CHECK(is_open(merged.sites.at(0).site));
}

TEST_CASE("Of an entry that has found out and one that has only seen, the former counts") {
  Entry seen_later;
  add_tuning(seen_later, software, {seen()}, std::nullopt, later);
  Entry found;
  add_tuning(found, software, {site()}, std::nullopt, earlier);
  Entry merged = seen_later;
  CHECK(merge_entry(merged, found).replaced == 1);
  CHECK_FALSE(is_open(merged.sites.at(0).site));
  CHECK(merge_entry(found, seen_later).replaced == 0);
  CHECK_FALSE(is_open(found.sites.at(0).site));
  CHECK(found.sites[0].replaced.empty());
}

TEST_CASE_METHOD(NotedSite, "A winner for other code is history, and the site is open") {
  note.code = "fedcba9876543210";
  note.image = "build 2";
  for (int i = 0; i < 2; ++i) add_tuning(entry, software, {note}, std::nullopt, later);
  const EntrySite& known = entry.sites.at(0);
  CHECK(is_open(known.site));
  CHECK(known.site.code == note.code);
  CHECK(known.site.trials.empty());
  REQUIRE(known.replaced.size() == 1);
  CHECK(known.replaced[0].winner == block(256));
  // What was tried with other code says nothing of a site that is tuned again.
  StoredSite again = site("saxpy", 128);
  again.code = note.code;
  again.trials.resize(1);
  add_tuning(entry, software, {again}, std::nullopt, later);
  CHECK(entry.sites[0].site.trials.size() == 1);
}

TEST_CASE_METHOD(NotedSite,
                 "A note of another declaration retires the winner, and what was tried") {
  note.declaration = "00112233445566cc 00112233445566bb";
  add_tuning(entry, software, {note}, std::nullopt, later);
  const EntrySite& known = entry.sites.at(0);
  CHECK(is_open(known.site));
  CHECK(known.site.declaration == note.declaration);
  CHECK(known.site.trials.empty());
  CHECK(known.replaced.size() == 1);
  StoredSite again = site("saxpy", 128);
  again.trials.resize(1);
  add_tuning(entry, software, {again}, std::nullopt, later);
  CHECK(entry.sites[0].site.trials.size() == 1);
}

TEST_CASE_METHOD(NotedSite, "A note of the same code in another build changes nothing else") {
  note.code = site().code;
  note.image = "build 2";
  add_tuning(entry, software, {note}, std::nullopt, later);
  const StoredSite& known = entry.sites.at(0).site;
  CHECK(known.image == "build 2");
  CHECK(known.winner == block(256));
  CHECK(known.trials.size() == site().trials.size());
  note.code = note.image = "";
  add_tuning(entry, software, {note}, std::nullopt, later);
  CHECK(entry.sites[0].site.code == site().code);
}
