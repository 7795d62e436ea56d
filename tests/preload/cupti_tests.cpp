// The program's own use of CUPTI.
#include "catch.hpp"
#include "process.hpp"

using namespace contextune::test;

namespace {

const std::string first_copy = client("cupti_a/libcupti.so.13");
const std::string second_copy = client("cupti_b/libcupti.so.13");

/// What the core is told of CUPTI, after the program was seen to print the same as without us.
std::vector<std::string> told(const std::vector<std::string>& command) {
  const Outcome bare = run(command);
  const Recorded recorded = run_recorded(command);
  INFO(bare.out << recorded.outcome.out << recorded.outcome.err);
  CHECK(bare.exited_with(0));
  CHECK(recorded.outcome.exited_with(0));
  CHECK(recorded.outcome.out == bare.out);
  std::vector<std::string> lines;
  for (const std::string& line : lines_of(recorded.record)) {
    if (line.starts_with("cupti ")) lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("The core is told once of the first use of CUPTI", "[cupti]") {
  CHECK(told({client("cupti_direct"), "late"}) == Lines{"cupti cuptiActivityEnable"});
}

TEST_CASE("CUPTI that was used before there was a core is told when it is there", "[cupti]") {
  CHECK(told({client("cupti_direct"), "early"}) == Lines{"cupti cuptiSubscribe"});
}

TEST_CASE("Looking CUPTI up is not using it", "[cupti]") {
  CHECK(told({client("cupti_use"), "look", first_copy}).empty());
  CHECK(told({client("cupti_use"), "harmless", first_copy}).empty());
}

TEST_CASE("Of two copies of CUPTI each is called where it was looked up", "[cupti]") {
  CHECK(told({client("cupti_use"), "copies", first_copy, second_copy}) ==
        Lines{"cupti cuptiSubscribe"});
}

TEST_CASE("A plugin calls the copy of CUPTI that it was linked to", "[cupti]") {
  CHECK(told({client("cupti_use"), "plugin", client("libcupti_plugin.so")}) ==
        Lines{"cupti cuptiSubscribe"});
}
