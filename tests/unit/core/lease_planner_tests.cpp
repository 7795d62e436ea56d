#include "core/agreement/lease_planner.hpp"

#include "catch.hpp"

namespace contextune::tests {
namespace {

TEST_CASE("nothing is leased after a lease that a rank has not come to yet") {
  LeasePlanner planner;
  const std::vector<std::uint32_t> ranks{0, 1};
  const std::vector<SharedIndex> sites{0};
  std::vector<BatchReport> reports(2);
  for (BatchReport& report : reports) report.standings = {{0, 77, 2, 1, 10, 0, 1}};
  Batch batch;
  batch.winners = {0};
  batch.passes.resize(1);
  batch.passes[0].configs = {1};
  planner.hear(ranks, reports, 0);
  REQUIRE(planner.lease(sites, batch).empty());
  REQUIRE(batch.leases.size() == 1);
  REQUIRE(batch.leases[0].first_decision == 10);
  planner.committed(batch);
  planner.hear(ranks, reports, 0);
  CHECK(planner.out_of_step(0) == "rank 0 has not come to those that were agreed on last");
  const auto failed = planner.lease(sites, batch);
  REQUIRE(failed.size() == 1);
  CHECK(batch.leases.empty());
  CHECK(batch.passes[0].configs[0] == 0);
  for (BatchReport& report : reports) report.standings[0].decisions = 11;
  planner.hear(ranks, reports, 0);
  CHECK(planner.out_of_step(0).empty());
}

}  // namespace
}  // namespace contextune::tests
