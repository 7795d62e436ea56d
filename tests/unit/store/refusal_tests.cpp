// What is not as it was written is refused, whatever it is, with the place.
#include <algorithm>
#include <nlohmann/json.hpp>

#include <contextune/error.hpp>

#include "catch.hpp"
#include "store_fixture.hpp"
#include "tests/case_step.hpp"

using namespace contextune;
using namespace contextune::store;
using namespace contextune::store::test;
using Json = nlohmann::ordered_json;

namespace {

// Empty: it was read.
std::string error_for(const std::string& text) {
  try {
    static_cast<void>(parse_entry(text));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

// Whether what is below may have any members, as configs and facts do.
bool is_open(const std::string& pointer) {
  return pointer.ends_with("/config") || pointer.ends_with("/winner") ||
         pointer.ends_with("/hardware");
}

// All places of a document, the innermost last.
void collect(const Json& json, const std::string& pointer, std::vector<std::string>& pointers) {
  pointers.push_back(pointer);
  if (!json.is_structured()) return;
  for (const auto& member : json.items())
    collect(member.value(), pointer + '/' + member.key(), pointers);
}

std::vector<std::string> all_places(const Json& json) {
  std::vector<std::string> pointers;
  collect(json, "", pointers);
  return pointers;
}

// The value of a config's parameter or of a fact: any scalar that is its type is fine there.
bool is_free_value(const std::string& pointer) {
  const std::size_t slash = pointer.rfind('/');
  const std::string above = pointer.substr(0, slash == pointer.npos ? 0 : slash);
  return is_open(above);
}

Json at(const Json& document, const std::string& pointer) {
  return document.at(Json::json_pointer(pointer));
}

std::string mutated(const Json& document, const std::string& pointer, const Json& value) {
  Json copy = document;
  copy[Json::json_pointer(pointer)] = value;
  return copy.dump();
}

}  // namespace

TEST_CASE("A file that was cut off at any byte is refused") {
  std::string text = to_text(full_entry());
  while (text.back() == '\n') text.pop_back();
  REQUIRE(error_for(text).empty());
  for (std::size_t size = 0; size < text.size(); size += case_step) {
    INFO("at byte " << size);
    CHECK(error_for(text.substr(0, size)).starts_with("line "));
  }
}

TEST_CASE("A field of another type is refused where it is, in every place of the document") {
  const Json document = Json::parse(to_text(full_entry()));
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -7,
                                    1.5,
                                    "no such word",
                                    Json::array({Json::array()}),
                                    Json::object({{"no such member", 1}})};
  std::size_t refused = 0;
  for (const std::string& pointer : all_places(document)) {
    for (const Json& value : values) {
      const Json known = at(document, pointer);
      const bool same_type =
          known.type() == value.type() || (known.is_number() && value.is_number());
      const bool fits =
          pointer.empty()               ? false
          : is_open(pointer)            ? value.is_object()
          : is_free_value(pointer)      ? value.is_primitive() && !value.is_null()
          : pointer == "/confirm"       ? value.is_null()
          : pointer.ends_with("/terms") ? value.is_null()
          : pointer.ends_with("/confirmed") || pointer.ends_with("/compared") ? value.is_boolean()
          : pointer.ends_with("/cutoff")                                      ? value.is_number()
          : pointer.ends_with("/trial_timeout")                               ? value == 1.5
          : pointer.ends_with("/gain") || pointer.ends_with("/bound")         ? value.is_number()
          // names and keys may be anything of their type, and a time any number from 0 up
          : pointer.ends_with("/default_choice") || pointer.ends_with("/code") ||
                  pointer.ends_with("/image") || pointer.ends_with("/declaration") ||
                  pointer.ends_with("/tolerance") || pointer.ends_with("/progress")
              ? value.is_string()
          : contains(pointer, "/name") || contains(pointer, "/key/")
              ? same_type || (contains(pointer, "/key/") && pointer.ends_with("/1") &&
                              (value.is_string() || value.is_number_integer()))
          : pointer.ends_with("seconds") ? value == 1.5
                                         : false;
      if (fits) continue;
      INFO(pointer << " = " << value);
      const std::string error = error_for(mutated(document, pointer, value));
      CHECK_FALSE(error.empty());
      // The place itself, what it is in, or what was to be in it.
      const std::string above =
          pointer.substr(0, pointer.rfind('/') == pointer.npos ? 0 : pointer.rfind('/'));
      CHECK((error.starts_with(pointer) || error.starts_with(above) ||
             error.starts_with("the document")));
      ++refused;
    }
  }
  CHECK(refused > 500);
}

TEST_CASE("A field that is missing or not known is refused, in every object of the document") {
  const Json document = Json::parse(to_text(full_entry()));
  std::size_t refused = 0;
  for (const std::string& pointer : all_places(document)) {
    const Json known = at(document, pointer);
    if (!known.is_object() || is_open(pointer)) continue;
    Json more = known;
    more["later"] = 1;
    INFO(pointer);
    const std::string place = pointer.empty() ? "the document" : pointer;
    CHECK(error_for(mutated(document, pointer, more)).starts_with(place));
    ++refused;
    for (const auto& member : known.items()) {
      Json less = known;
      less.erase(member.key());
      INFO("without " << member.key());
      CHECK_FALSE(error_for(mutated(document, pointer, less)).empty());
      ++refused;
    }
  }
  CHECK(refused > 100);
}

TEST_CASE("Numbers out of their range are refused with the range") {
  const Json document = Json::parse(to_text(full_entry()));
  const auto error = [&](const std::string& pointer, const Json& value) {
    return error_for(mutated(document, pointer, value));
  };
  CHECK(error("/sites/0/trials/0/samples", 4294967296) ==
        "/sites/0/trials/0/samples: is 4294967296, and must be from 0 to 4294967295");
  CHECK(error("/sites/0/seconds", -1e-9) == "/sites/0/seconds: is a time, and must not be below 0");
  CHECK(error("/sites/0/seconds", "-inf") ==
        "/sites/0/seconds: is a time, and must not be below 0");
  CHECK(contains(error("/sites/0/seconds", nullptr), "must be a number, \"nan\""));
  CHECK(contains(error("/confirm/pairs", 2147483648), "from 0 to 2147483647"));
  CHECK(contains(error("/sites/0/winner/block", 9223372036854775808U), "is larger than"));
  CHECK(contains(error("/sites/0/key/0/1", 1.5), "a number with a fraction"));
  CHECK(contains(error("/sites/0/tuned_at", "2026-13-20T20:33:53Z"), "not a time"));
  CHECK(contains(error("/sites/0/tuned_at", "yesterday"), "not a time"));
  CHECK(contains(error("/sites/0/reason", "luck"), "must be one of: fastest, margin"));
  CHECK(contains(error("/sites/0/software", "0"), "which /software does not have"));
  CHECK(contains(error("/schema", 0), "not a version"));
  Json six = at(document, "/sites/0/replaced");
  while (six.size() < 6) six.push_back(six[0]);
  CHECK(contains(error("/sites/0/replaced", six), "has 6 elements, more than 5"));
}

TEST_CASE("What only looks like a document is refused") {
  const std::string text = to_text(full_entry());
  CHECK(error_for("").starts_with("line 1"));
  CHECK_FALSE(error_for(text + "x").empty());
  CHECK_FALSE(error_for(text + text).empty());
  CHECK_FALSE(error_for(std::string(1000, '\0')).empty());
  CHECK_FALSE(error_for("\xff\xfe{}").empty());
  const std::string lines = text.substr(0, text.rfind('\n') + 1);
  const auto last = std::to_string(1 + std::ranges::count(lines, '\n'));
  CHECK(error_for(lines + '\0' + " and whatever else") ==
        "line " + last + ", column 1: a NUL byte, and the document is text");
  CHECK(contains(error_for(std::string(100000, '[')), "nested deeper than 16"));
  CHECK(contains(error_for(std::string(max_file_bytes + 1, ' ')), "more than the 16777216"));
  CHECK(contains(error_for("{\"schema\": 1, \"schema\": 1}"), "two members 'schema'"));
  CHECK(error_for("{\"schema\": 1e999}") == "the document: number overflow parsing '1e999'");
  const Json document = Json::parse(text);
  Json twice = document;
  twice["sites"].push_back(twice["sites"][0]);
  CHECK(contains(error_for(twice.dump()), "/sites: has 'gemm' twice with the same key"));
}

TEST_CASE("A later format is told apart from damage, whatever else it has") {
  CHECK_THROWS_AS(parse_entry("{\"schema\": 99, \"all\": \"new\"}"), NewerFormat);
  CHECK_THROWS_AS(parse_entry("{\"schema\": 4000000000}"), NewerFormat);
}
