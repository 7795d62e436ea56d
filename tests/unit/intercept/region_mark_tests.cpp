#include "catch.hpp"
#include "intercept/marks/region_mark.hpp"

using namespace contextune::intercept;

TEST_CASE("A list of marks is read in order, blanks aside", "[region_mark]") {
  std::vector<std::string> faults;
  const auto marks =
      parse_region_marks(" nvtx:decode step ; profiler;;kernel:gemm.*64 ; process", faults);
  CHECK(faults.empty());
  REQUIRE(marks.size() == 4);
  CHECK(marks[0].kind == RegionMark::Kind::Nvtx);
  CHECK(marks[0].name == "decode step");
  CHECK(marks[1].kind == RegionMark::Kind::Profiler);
  CHECK(marks[2].kind == RegionMark::Kind::Kernel);
  CHECK(marks[2].kernel->finds(std::string("gemm<64, 64>")));
  CHECK(marks[3].kind == RegionMark::Kind::Process);
}

TEST_CASE("An NVTX mark names any domain, one domain, or the default one", "[region_mark]") {
  std::vector<std::string> faults;
  const auto marks = parse_region_marks("nvtx:a;nvtx:torch@a;nvtx:@a;nvtx:@me@home", faults);
  REQUIRE(marks.size() == 4);
  CHECK(marks[0].opens_on("", "a"));
  CHECK(marks[0].opens_on("torch", "a"));
  CHECK_FALSE(marks[0].opens_on("", "b"));
  CHECK(marks[1].opens_on("torch", "a"));
  CHECK_FALSE(marks[1].opens_on("", "a"));
  CHECK(marks[2].opens_on("", "a"));
  CHECK_FALSE(marks[2].opens_on("torch", "a"));
  CHECK(marks[3].opens_on("", "me@home"));
}

TEST_CASE("A mark that cannot be used is left out and named", "[region_mark]") {
  for (const std::string bad : {"graph:x", "nvtx:", "nvtx", "nvtx:d@", "kernel:(", "foo"}) {
    std::vector<std::string> faults;
    const auto marks = parse_region_marks(bad + ";profiler", faults);
    INFO(bad);
    REQUIRE(marks.size() == 1);
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].find("\"" + bad + "\"") != std::string::npos);
  }
  std::vector<std::string> faults;
  (void)parse_region_marks("graphs", faults);
  CHECK(faults[0].find("nvtx:NAME") != std::string::npos);
}

TEST_CASE("Launches of graphs are a mark", "[region_mark]") {
  std::vector<std::string> faults;
  const auto marks = parse_region_marks("graph", faults);
  REQUIRE(marks.size() == 1);
  CHECK(marks[0].kind == RegionMark::Kind::Graph);
  CHECK(faults.empty());
}

TEST_CASE("Every word that is suggested for a mark begins one", "[region_mark]") {
  for (const std::string_view word : region_mark_words()) {
    INFO(word);
    std::vector<std::string> faults;
    const std::string text = std::string(word) + (word.ends_with(':') ? "a" : "");
    CHECK(parse_region_marks(text, faults).size() == 1);
    CHECK(faults.empty());
  }
}
