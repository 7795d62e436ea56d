#include "log/logfmt.hpp"

#include <random>

#include "catch.hpp"
#include "core/value/utf8.hpp"

using contextune::first_character;
using contextune::log::append_field;
using contextune::log::max_value_bytes;
using contextune::log::parameter_field_name;
using contextune::log::parameter_of_field;
using contextune::log::ParsedField;
using contextune::log::printable;
using contextune::log::take_field;

namespace {

std::string field(std::string_view name, std::string_view value) {
  std::string line;
  append_field(line, name, value);
  return line;
}

std::string read_back(const std::string& line) {
  std::string_view rest = line;
  ParsedField parsed;
  std::string why;
  REQUIRE(take_field(rest, parsed, why));
  REQUIRE(rest.empty());
  return parsed.value;
}

std::string refusal(std::string_view rest) {
  ParsedField parsed;
  std::string why;
  REQUIRE_FALSE(take_field(rest, parsed, why));
  return why;
}

}  // namespace

TEST_CASE("A plain word stands bare and anything else in quotes", "[logfmt]") {
  CHECK(field("site", "saxpy") == "site=saxpy");
  CHECK(field("time_us", "2.53") == "time_us=2.53");
  CHECK(field("key", "n=1048576") == "key=\"n=1048576\"");
  CHECK(field("site", "gemm<64, 64>") == "site=\"gemm<64, 64>\"");
  CHECK(field("key", "") == "key=\"\"");
  CHECK(field("path", "C:\\x") == "path=\"C:\\\\x\"");
  CHECK(field("text", "say \"hi\"") == R"(text="say \"hi\"")");
}

TEST_CASE("Nothing in a value can end the line or command a terminal", "[logfmt]") {
  CHECK(field("text", "a\nb\rc\td") == R"(text="a\nb\rc\td")");
  CHECK(field("text", std::string("\x1b[31m\x00 x", 8)) == R"(text="\u001b[31m\u0000 x")");
  CHECK(field("text", "\x7f") == R"(text="\u007f")");
  CHECK(field("text", "\xc2\x9b") == R"(text="\u009b")");           // a C1 control
  CHECK(field("text", "\xe2\x80\xae") == R"(text="\u202e")");       // turns the reading direction
  CHECK(field("text", "h\xc3\xa9llo") == "text=\"h\xc3\xa9llo\"");  // plain UTF-8 stays
}

TEST_CASE("Bytes that are not UTF-8 are shown one by one", "[logfmt]") {
  CHECK(field("text", "\xff\xfe") == R"(text="\xff\xfe")");
  CHECK(field("text", "\xc0\xaf") == R"(text="\xc0\xaf")");                  // overlong
  CHECK(field("text", "\xed\xa0\x80") == R"(text="\xed\xa0\x80")");          // a surrogate
  CHECK(field("text", "\xf4\x90\x80\x80") == R"(text="\xf4\x90\x80\x80")");  // past U+10FFFF
  CHECK(field("text", "\xe2\x82") == R"(text="\xe2\x82")");                  // cut off
}

TEST_CASE("A field name keeps to its letters", "[logfmt]") {
  CHECK(field("a b=c\n\"", "x") == "a_b_c__=x");
  CHECK(field("", "x") == "_=x");
}

TEST_CASE("Any value comes back as it was", "[logfmt]") {
  std::mt19937 random(7);
  const std::string where_escapes_are = "\"\\=\n xu0\xc2\x9b";
  for (int round = 0; round < 2000; ++round) {
    std::string value;
    for (std::size_t i = random() % 40; i > 0; --i) {
      value += random() % 2 == 0 ? static_cast<char>(random() % 256)
                                 : where_escapes_are[random() % where_escapes_are.size()];
    }
    const std::string line = field("v", value);
    INFO(line);
    CHECK(line.find('\n') == std::string::npos);
    CHECK(read_back(line) == value);
  }
}

TEST_CASE("A very long value is cut at a character and marked", "[logfmt]") {
  std::string value(max_value_bytes - 1, 'a');
  value += "\xe2\x82\xac and more";
  CHECK(read_back(field("v", value)) == std::string(max_value_bytes - 1, 'a') + "...");
}

TEST_CASE("A field that is not well-formed is refused with the reason", "[logfmt]") {
  CHECK(refusal("") == "a field is not of the form name=value");
  CHECK(refusal("word") == "a field is not of the form name=value");
  CHECK(refusal("=x") == "a field is not of the form name=value");
  CHECK(refusal("a=") == "the value of a is empty or should be in quotes");
  CHECK(refusal("a=\"b") == "the line ends inside quotes (cut off?)");
  CHECK(refusal("a=\"b\\") == "unknown escape in a quoted value");
  CHECK(refusal("a=\"\\xg0\"") == "unknown escape in a quoted value");
  CHECK(refusal("a=\"b\"c") == "no space behind a closing quote");
}

TEST_CASE("A parameter with the name of a field of the line is told apart", "[logfmt]") {
  CHECK(parameter_field_name("block") == "block");
  CHECK(parameter_field_name("iter") == "param.iter");
  CHECK(parameter_field_name("param.iter") == "param.param.iter");
  for (const char* name : {"block", "iter", "param.iter", "time_us"}) {
    CHECK(parameter_of_field(parameter_field_name(name)) == name);
  }
}

TEST_CASE("Text for the terminal is escaped without quotes", "[logfmt]") {
  CHECK(printable("gemm<\"a\">\x1b]0;x\x07") == R"(gemm<"a">\u001b]0;x\u0007)");
}

TEST_CASE("UTF-8 is read character by character", "[utf8]") {
  CHECK(first_character("\xf0\x9f\x98\x80").code == 0x1f600);
  CHECK(first_character("\xf0\x9f\x98\x80").size_bytes == 4);
  CHECK(first_character("\xef\xbf\xbf").valid);
  CHECK_FALSE(first_character("\x80").valid);
}
