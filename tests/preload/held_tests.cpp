// Which calls of the driver let the core hand over the launches that it holds back.
#include <sstream>

#include "catch.hpp"
#include "process.hpp"

using namespace contextune::test;

namespace {

struct Call {
  std::string kind;
  std::string name;
  std::string way;
  std::string outcome;
};

/// The calls of a program whose core holds launches back, each once without and once with some.
std::vector<Call> calls() {
  const Outcome outcome = run_preloaded({client("held")});
  INFO(outcome.err);
  REQUIRE(outcome.exited_with(0));
  std::vector<Call> result;
  for (const std::string& line : lines_of(outcome.out)) {
    std::istringstream fields(line);
    Call call;
    fields >> call.kind >> call.name >> call.way >> std::ws;
    std::getline(fields, call.outcome);
    result.push_back(call);
  }
  return result;
}

std::string handed_over(int times) {
  return "free 0 same errno 5 held " + std::to_string(times) + " same errno 5";
}

}  // namespace

TEST_CASE(
    "Every registered call but a launch hands over once what is held, and nothing else changes",
    "[held]") {
  int seen = 0;
  for (const Call& call : calls()) {
    INFO(call.kind << " " << call.name << " " << call.way);
    CHECK(call.outcome == handed_over(call.kind == "launch" ? 0 : 1));
    ++seen;
  }
  CHECK(seen > 2 * 290);
}
