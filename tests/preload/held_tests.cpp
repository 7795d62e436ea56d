// Which calls of the driver let the core hand over the launches that it holds back.
#include <map>
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
    "Every call but a launch and a free one hands over once what is held, and nothing else changes",
    "[held]") {
  std::map<std::string, int> seen;
  for (const Call& call : calls()) {
    INFO(call.kind << " " << call.name << " " << call.way);
    ++seen[call.kind];
    if (call.kind == "missing") {
      CHECK(call.outcome == "3, dlsym null, resolved null");
    } else if (call.way == "address:") {
      CHECK(call.outcome == (call.kind == "free" ? "the driver's" : "ours"));
    } else {
      const bool submits = call.kind != "launch" && call.kind != "free";
      CHECK(call.outcome == handed_over(call.kind == "question" ? 10 : submits ? 1 : 0));
    }
  }
  CHECK(seen["missing"] == 1);
  CHECK(seen["newer"] == 3);
  CHECK(seen["launch"] == 12);
  CHECK(seen["guarded"] > 4 * 270);
  CHECK(seen["question"] > 4 * 40);
  CHECK(seen["free"] > 4 * 25);
}

TEST_CASE("A function has one guard, whoever asks, and the core learns when none is left",
          "[held]") {
  const Outcome outcome = run_preloaded({client("held"), "many"});
  INFO(outcome.err);
  CHECK(outcome.out == "guarded 1024, same 1, unguarded 0, then 1\n");
}
