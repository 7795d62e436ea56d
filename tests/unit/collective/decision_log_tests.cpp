// Reports of decisions on their way to the owner.
#include <memory>
#include <vector>

#include "catch.hpp"
#include "collective/decision_log.hpp"

using namespace contextune::collective;

namespace {

DecisionReport report_of(std::uint64_t number) {
  DecisionReport report;
  report.key = {100, 65536, 1, 0, Function::AllReduce, 0};
  report.number = number;
  report.epoch = 3;
  report.call = number + 1000;
  report.decision = {true, {Algorithm::Ring, Protocol::LL}, 8};
  report.config = 5;
  return report;
}

}  // namespace

TEST_CASE("Reports come out whole and in their order", "[decision_log]") {
  const auto log = std::make_unique<DecisionLog>();
  DecisionReport report;
  CHECK_FALSE(log->pop(report));
  for (std::uint64_t n = 0; n < 3; ++n) log->push(report_of(n));
  for (std::uint64_t n = 0; n < 3; ++n) {
    REQUIRE(log->pop(report));
    CHECK(report.number == n);
    CHECK(report.call == n + 1000);
    CHECK(report.key == report_of(n).key);
    CHECK(report.decision == report_of(n).decision);
    CHECK(report.config == 5);
    CHECK(report.epoch == 3);
  }
  CHECK_FALSE(log->pop(report));
}

TEST_CASE("Reports that nobody comes for are dropped and counted", "[decision_log]") {
  const auto log = std::make_unique<DecisionLog>();
  for (std::uint64_t n = 0; n < DecisionLog::capacity + 10; ++n) log->push(report_of(n));
  CHECK(log->dropped() == 10);
  DecisionReport report;
  for (std::uint64_t n = 0; n < DecisionLog::capacity; ++n) {
    REQUIRE(log->pop(report));
    REQUIRE(report.number == n);  // the oldest are kept
  }
  CHECK_FALSE(log->pop(report));
}

TEST_CASE("The log goes round for as long as it is read", "[decision_log]") {
  const auto log = std::make_unique<DecisionLog>();
  DecisionReport report;
  for (std::uint64_t n = 0; n < 5 * DecisionLog::capacity; ++n) {
    log->push(report_of(n));
    REQUIRE(log->pop(report));
    REQUIRE(report.number == n);
  }
  CHECK(log->dropped() == 0);
}

TEST_CASE("Reports show whether ranks decided alike", "[decision_log]") {
  const std::vector<DecisionReport> here = {report_of(0), report_of(1)};
  std::vector<DecisionReport> there = here;
  for (DecisionReport& report : there) {  // what is another in every process
    report.key.communicator = 7;
    report.call += 5;
  }
  CHECK(lockstep_hash(here) == lockstep_hash(there));
  SECTION("a cell that was refused") {
    there[1].decision = {};
    there[1].was_refused = true;
  }
  SECTION("another number of channels") {
    there[1].decision.channels = 4;
  }
  SECTION("another lease") {
    there[1].epoch = 2;
  }
  SECTION("a decision more") {
    there.push_back(report_of(2));
  }
  SECTION("another decision's number") {
    there[0].number = 9;
  }
  CHECK(lockstep_hash(here) != lockstep_hash(there));
}
