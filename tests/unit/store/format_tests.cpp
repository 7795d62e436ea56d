#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "catch.hpp"
#include "store/cache_folder.hpp"
#include "store/json_text.hpp"
#include "store_fixture.hpp"
#include "tests/case_step.hpp"

using namespace contextune;
using namespace contextune::store;
using namespace contextune::store::test;

namespace {

Entry with_config(const Config& config) {
  StoredSite stored = site();
  stored.winner = config;
  Entry entry;
  add_tuning(entry, {}, {stored}, std::nullopt, "2026-11-20T20:33:53Z");
  return entry;
}

Value through_a_file(const Value& value) {
  const Entry read = parse_entry(to_text(with_config({{"value", value}})));
  return *read.sites.at(0).site.winner.find("value");
}

std::string random_bytes(std::mt19937_64& random) {
  std::string text;
  for (std::uint64_t i = random() % 24; i > 0; --i) {
    const std::uint64_t kind = random() % 4;
    if (kind == 0) {
      text += "\xef\xbf\xbd";
    } else if (kind == 1) {
      text += static_cast<char>(random());
    } else {
      text += static_cast<char>('!' + random() % 90);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("An entry comes out of its text as it went in, and the same entry gives the same text") {
  const std::string text = to_text(full_entry());
  const Entry read = parse_entry(text);
  CHECK(to_text(read) == text);
  CHECK(read.kind == StoredKind::Region);
  CHECK(read.name == "decode");
  CHECK(read.hardware == full_entry().hardware);
  REQUIRE(read.sites.size() == 2);
  CHECK(read.sites[0].site.name == "gemm");
  CHECK(read.sites[0].site.key == site().key);
  CHECK(read.sites[0].site.winner == block(256));
  REQUIRE(read.sites[0].site.trials.size() == 4);
  CHECK(read.sites[0].site.trials[3].config == site().trials[3].config);
  CHECK(read.sites[0].site.trials[2].status == TrialStatus::LaunchFailed);
  CHECK(std::isnan(read.sites[0].site.trials[2].seconds));
  CHECK(read.sites[0].replaced.size() == 2);
  CHECK(read.sites[0].replaced[0].winner == block(128));
  CHECK(read.sites[0].site.progress == site().progress);
  REQUIRE(read.confirm);
  CHECK(read.confirm->figures.pairs == 8);
}

TEST_CASE("Every type and value of a config comes back exactly") {
  for (const std::int64_t whole :
       {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0},
        (std::int64_t{1} << 53) + 1, std::numeric_limits<std::int64_t>::max()}) {
    CHECK(through_a_file(whole) == Value(whole));
  }
  for (const double number : {0.1, 2.0, -0.0, 1e300, 5e-324, 1.0 / 3, infinite, -infinite}) {
    const Value read = through_a_file(number);
    REQUIRE(std::holds_alternative<double>(read));
    CHECK(std::get<double>(read) == number);
    CHECK(std::signbit(std::get<double>(read)) == std::signbit(number));
  }
  CHECK(std::isnan(std::get<double>(through_a_file(not_measured))));
  CHECK(through_a_file(true) == Value(true));
  for (const char* text :
       {"", "nan", "true", "256", "a \"quoted\" one\n", "\xff\xfe", "\xef\xbf\xbd"})
    CHECK(through_a_file(std::string(text)) == Value(std::string(text)));
  CHECK(through_a_file(std::string("a\0b", 3)) == Value(std::string("a\0b", 3)));
}

TEST_CASE("Random doubles come back in every bit") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; i += case_step) {
    const std::uint64_t bits = random();
    double number = 0;
    std::memcpy(&number, &bits, sizeof(number));
    if (std::isnan(number)) continue;
    CHECK(std::get<double>(through_a_file(number)) == number);
  }
}

TEST_CASE("Names of any bytes are one text in JSON each, and come back") {
  std::mt19937_64 random(11);
  std::map<std::string, std::string> texts;
  for (int i = 0; i < 20000; i += case_step) {
    const std::string bytes = random_bytes(random);
    const std::string text = to_json_text(bytes);
    CHECK(from_json_text(text) == bytes);
    const auto [known, is_new] = texts.emplace(text, bytes);
    CHECK((is_new || known->second == bytes));
  }
  CHECK(to_json_text("gemm<64>(\xc3\xa9)") == "gemm<64>(\xc3\xa9)");
  CHECK_FALSE(from_json_text("\xef\xbf\xbd"));
  CHECK_FALSE(
      from_json_text("\xef\xbf\xbd"
                     "4"));
  CHECK_FALSE(
      from_json_text("\xef\xbf\xbd"
                     "ff"));
  CHECK_FALSE(
      from_json_text("\xef\xbf\xbd"
                     "41"));  // "A" needs no such spelling
}

TEST_CASE("Whatever became of a config, and why ever a site has its winner, comes back") {
  Entry entry = full_entry();
  StoredSite& stored = entry.sites[0].site;
  for (const TrialStatus status :
       {TrialStatus::Measured, TrialStatus::LaunchFailed, TrialStatus::NoSample,
        TrialStatus::CutOff, TrialStatus::WrongResult, TrialStatus::TimedOut, TrialStatus::Crashed,
        TrialStatus::TooMuchMemory}) {
    stored.trials[0].status = status;
    CHECK(parse_entry(to_text(entry)).sites[0].site.trials[0].status == status);
  }
  for (const WinnerReason reason :
       {WinnerReason::Fastest, WinnerReason::Dropped, WinnerReason::Stored}) {
    stored.reason = reason;
    CHECK(parse_entry(to_text(entry)).sites[0].site.reason == reason);
  }
}

TEST_CASE("Of earlier versions of the format is not known what they lack, and all else is read") {
  using Json = nlohmann::ordered_json;
  Entry entry = full_entry();
  Json old = Json::parse(to_text(entry));
  CHECK(old["schema"] == 6);
  old["schema"] = 5;
  CHECK_THROWS(parse_entry(old.dump()));
  for (Json& site : old["sites"]) CHECK(site.erase("progress") == 1);
  for (EntrySite& site : entry.sites) site.site.progress = "";
  CHECK(to_text(parse_entry(old.dump())) == to_text(entry));
  old["schema"] = 4;
  CHECK_THROWS(parse_entry(old.dump()));
  for (Json& site : old["sites"]) CHECK(site["terms"].erase("compared") == 1);
  for (EntrySite& site : entry.sites) site.site.terms->compared = false;
  CHECK(to_text(parse_entry(old.dump())) == to_text(entry));
  old["schema"] = 3;
  CHECK_THROWS(parse_entry(old.dump()));
  for (Json& site : old["sites"]) CHECK(site["terms"].erase("comm_memory") == 1);
  for (EntrySite& site : entry.sites) site.site.terms->comm_memory = 0;
  CHECK(to_text(parse_entry(old.dump())) == to_text(entry));
  old["schema"] = 2;
  CHECK_THROWS(parse_entry(old.dump()));
  for (Json& site : old["sites"]) CHECK(site.erase("declaration") + site.erase("terms") == 2);
  for (EntrySite& site : entry.sites) {
    site.site.declaration = "";
    site.site.terms.reset();
  }
  CHECK(to_text(parse_entry(old.dump())) == to_text(entry));
  old["schema"] = 1;
  CHECK_THROWS(parse_entry(old.dump()));
  for (Json& site : old["sites"]) {
    CHECK(site.erase("code") == 1);
    CHECK(site.erase("image") == 1);
  }
  for (EntrySite& site : entry.sites) site.site.code = site.site.image = "";
  CHECK(to_text(parse_entry(old.dump())) == to_text(entry));
}

TEST_CASE("A trial more is a line more") {
  Entry entry = full_entry();
  const std::string before = to_text(entry);
  entry.sites[1].site.trials.push_back({block(512), TrialStatus::Measured, 5, 2e-6, 2e-6, 2e-6});
  const std::string after = to_text(entry);
  CHECK(std::count(after.begin(), after.end(), '\n') ==
        std::count(before.begin(), before.end(), '\n') + 1);
}

TEST_CASE("The file of an identity depends on kind, name and hardware, in any order, and no more") {
  const Facts hardware = {{"gpu", "H200"}, {"num_sms", "132"}};
  const EntryPlace place = place_of(StoredKind::Region, "decode", hardware);
  CHECK(place.folder == "decode");
  CHECK(is_entry_file(place.file));
  CHECK(place_of(StoredKind::Region, "decode", {{"num_sms", "132"}, {"gpu", "H200"}}) == place);
  CHECK_FALSE(place_of(StoredKind::Choice, "decode", hardware) == place);
  CHECK_FALSE(place_of(StoredKind::Region, "decode", {{"gpu", "H200"}}) == place);
  // Names that are made safe alike have files of their own.
  CHECK(place_of(StoredKind::Region, "a/b", {}).folder == "a_b");
  CHECK(place_of(StoredKind::Region, "a:b", {}).folder == "a_b");
  CHECK(place_of(StoredKind::Region, "a/b", {}).file !=
        place_of(StoredKind::Region, "a:b", {}).file);
  CHECK(place_of(StoredKind::Region, "..", {}).folder == "_..");
  CHECK(place_of(StoredKind::Region, "", {}).folder == "_");
  CHECK(place_of(StoredKind::Region, "--json", {}).folder == "_--json");
  CHECK(place_of(StoredKind::Region, std::string(5000, 'x'), {}).folder.size() == 64);
}

TEST_CASE(
    "The folder is the option's, else XDG's, else the home's; relative ones of XDG are none") {
  CHECK(cache_folder("here", "/xdg", "/home/u") == "here");
  CHECK(cache_folder("", "/xdg", "/home/u") == "/xdg/contextune");
  CHECK(cache_folder("", "xdg", "/home/u") == "/home/u/.cache/contextune");
  CHECK(cache_folder("", "", "/home/u") == "/home/u/.cache/contextune");
  CHECK(cache_folder("", "xdg", "home").empty());
}
