#include "log/line_time.hpp"

#include "catch.hpp"

using contextune::log::microseconds_text;
using contextune::log::milliseconds_text;
using contextune::log::parse_time;
using contextune::log::SystemTime;

TEST_CASE("Times are read as they are written", "[line_time]") {
  using namespace std::chrono;
  const SystemTime time =
      sys_days(year(2026) / 11 / 20) + hours(20) + minutes(3) + seconds(5) + microseconds(120'007);
  CHECK(milliseconds_text(time) == "2026-11-20T20:03:05.120Z");
  CHECK(microseconds_text(time) == "2026-11-20T20:03:05.120007Z");
  CHECK(parse_time("2026-11-20T20:03:05.120007Z") == time);
  CHECK(parse_time("2026-11-20T20:03:05.120Z") == time - microseconds(7));
  CHECK(parse_time("2024-02-29T00:00:00.000Z").has_value());
}

TEST_CASE("What is no time is not read as one", "[line_time]") {
  for (const char* text :
       {"", "Z", "2026-11-20", "2026-11-20T20:03:05Z", "2026-11-20T20:03:05.Z",
        "2026-11-20T20:03:05.1200000Z", "2026-11-20T20:03:05.12", "2026-13-20T20:03:05.120Z",
        "2026-02-29T20:03:05.120Z", "2026-11-20T24:03:05.120Z", "2026-11-20T20:60:05.120Z",
        "2026-11-20T20:03:61.120Z", "2026-11-20T20:03:05.-12Z", "2026-11-20T20:03:05.1 2Z",
        "2026/11/20T20:03:05.120Z"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_time(text).has_value());
  }
}
