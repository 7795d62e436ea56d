#include "catch.hpp"
#include "intercept/measuring/pass_record.hpp"

using namespace contextune;
using intercept::GraphWork;
using intercept::PassRecord;

namespace {

TimedWork work(double start, double end) {
  return {0, start, end, true, 0};
}

}  // namespace

TEST_CASE("A sample is the sum of a site's launches divided by their number", "[pass_record]") {
  const std::uint32_t configs[] = {3, 0};
  PassRecord record(PassId{7}, Measure::Activity, configs);
  for (int i = 0; i < 40; ++i) record.launched(0, 1, 1);
  record.launched(1, 1, 1);
  CHECK_FALSE(record.complete());
  for (int i = 0; i < 40; ++i) record.arrived(1, work(i, i + 0.25 + (i % 2) * 0.5));
  record.arrived(2, work(50, 52));
  REQUIRE(record.complete());
  const PassResult result = record.result(false);
  CHECK(result.pass == PassId{7});
  REQUIRE(result.sites.size() == 2);
  CHECK(result.sites[0].config == 3);
  CHECK(result.sites[0].launches == 40);
  CHECK(result.sites[0].seconds == Approx(0.5));
  CHECK(result.region_seconds == Approx(52));
}

TEST_CASE("Work that is no site's counts for the region's time", "[pass_record]") {
  PassRecord record(PassId{0}, Measure::Activity, {});
  record.launched(0, 1, 1);
  record.launched(no_site, 0, 1);
  record.arrived(1, work(1, 2));
  CHECK_FALSE(record.complete());
  record.arrived(0, work(5, 6));
  CHECK(record.result(false).region_seconds == Approx(5));
}

TEST_CASE("A site that misses records is missing, and so is the region's time", "[pass_record]") {
  PassRecord record(PassId{0}, Measure::Activity, {});
  record.launched(0, 1, 1);
  record.launched(1, 1, 1);
  record.arrived(1, work(1, 2));
  const PassResult result = record.result(false);
  CHECK(result.sites[0].status == SiteResult::Status::Measured);
  CHECK(result.sites[1].status == SiteResult::Status::Missing);
  CHECK(result.region_seconds == 0);
}

TEST_CASE("A site of which more has come than was launched is missing", "[pass_record]") {
  // Another thread launched it as the entry ended.
  PassRecord record(PassId{0}, Measure::Activity, {});
  record.launched(0, 1, 1);
  record.arrived(1, work(1, 2));
  record.arrived(1, work(3, 4));
  CHECK(record.result(false).sites[0].status == SiteResult::Status::Missing);
}

TEST_CASE("A copy that is done in several pieces takes as long as all of them", "[pass_record]") {
  PassRecord record(PassId{0}, Measure::Activity, {});
  record.launched(0, 1, 2);  // a kernel, and a copy
  record.arrived(1, work(1, 2));
  for (const double start : {3.0, 5.0}) record.arrived(1, {0, start, start + 1, false, 0});
  CHECK(record.result(false).sites[0].status == SiteResult::Status::Measured);
  CHECK(record.result(false).sites[0].seconds == Approx(3));
}

TEST_CASE("A pass that was held up has no time of the region, whatever its sites took",
          "[pass_record]") {
  for (const Measure measure : {Measure::Activity, Measure::Span}) {
    PassRecord record(PassId{0}, measure, {});
    record.launched(0, 1, 1);
    record.launched(1, 1, 1);
    record.arrived(1, work(1, 2));
    // A collective connected, which the next pass with that config does not.
    record.hold_up(1);
    record.arrived(2, work(90, 91));
    REQUIRE(record.complete());
    CHECK(record.is_held_up());
    const PassResult result = record.result(false);
    CHECK(result.region_seconds == 0);
    if (measure == Measure::Span) continue;
    CHECK(result.sites[0].status == SiteResult::Status::Measured);
    CHECK(result.sites[1].status == SiteResult::Status::Missing);
  }
}

TEST_CASE("A config that could not be launched is reported as such", "[pass_record]") {
  const std::uint32_t configs[] = {2};
  PassRecord record(PassId{0}, Measure::Activity, configs);
  record.failed(0);
  record.launched(0, 1, 0);
  record.launched(no_site, 0, 1);
  record.arrived(0, work(1, 2));
  CHECK(record.sites_failed() == std::vector<SiteIndex>{0});
  CHECK(record.sites_launched() == std::vector<SiteIndex>{0});
  const PassResult result = record.result(false);
  CHECK(result.sites[0].status == SiteResult::Status::LaunchFailed);
  CHECK(result.sites[0].config == 2);
}

TEST_CASE("Of a window of launches the region's time is their mean", "[pass_record]") {
  PassRecord record(PassId{0}, Measure::Activity, {});
  record.launched(0, 2, 2);
  record.arrived(1, work(1, 2));
  record.arrived(1, work(100, 103));
  CHECK(record.result(true).region_seconds == Approx(2));
}

namespace {

TimedWork kernel_of(std::uint64_t shape, double start, double seconds) {
  TimedWork work;
  work.start = start;
  work.end = start + seconds;
  work.shape = shape;
  return work;
}

}  // namespace

TEST_CASE("Kernels of a graph find their sites by shape, and by order where shapes agree",
          "[pass_record]") {
  const auto graph = std::make_shared<GraphWork>();
  graph->kernels = {{7, 0}, {9, no_site}, {7, 1}};
  graph->sites = {{0, 1}, {1, 1}};
  const bool tied = GENERATE(false, true);
  if (tied) graph->tied = {7};
  const std::vector<std::uint32_t> configs{1, 0};
  PassRecord record(PassId{4}, Measure::Activity, configs);
  const std::uint16_t slot = record.begin_graph(graph);
  record.graph_launched(slot, *graph, true, 0);
  record.arrived(slot, kernel_of(7, 30, 5));
  TimedWork copy = kernel_of(0, 50, 1);
  copy.kernel = false;
  record.arrived(slot, copy);
  record.arrived(slot, kernel_of(9, 20, 2));
  CHECK_FALSE(record.complete());
  CHECK(record.result(false).sites[0].status == SiteResult::Status::Missing);
  record.arrived(slot, kernel_of(7, 10, 1));
  CHECK(record.complete());
  const PassResult result = record.result(false);
  REQUIRE(result.sites.size() == 2);
  CHECK(result.sites[0].config == 1);
  CHECK(result.sites[0].seconds == (tied ? 3 : 1));
  CHECK(result.sites[1].seconds == (tied ? 3 : 5));
  CHECK(result.region_seconds == 41);
}

TEST_CASE("A graph whose kernels are not told apart gives its sites no time", "[pass_record]") {
  const auto graph = std::make_shared<GraphWork>();
  graph->kernels = {{7, 0}};
  graph->sites = {{0, 1}};
  PassRecord record(PassId{4}, Measure::Activity, {});
  const std::uint16_t slot = record.begin_graph(graph);
  const bool other = GENERATE(false, true);
  record.graph_launched(slot, *graph, other, 1);
  // Records of another graph, or one of the whole.
  record.arrived(other ? slot : std::uint16_t{0}, kernel_of(8, 10, 2));
  const PassResult result = record.result(false);
  CHECK(record.complete());
  CHECK(result.sites[0].status == SiteResult::Status::Missing);
  CHECK(result.region_seconds == 2);
}

TEST_CASE("What a call of a row takes is its share of the row, whatever else was launched",
          "[pass_record]") {
  const std::vector<std::uint32_t> configs{2, 0};
  PassRecord record(PassId{1}, Measure::Span, configs);
  for (int call = 0; call < 4; ++call) record.launched(0, 1, 0);
  record.launched(1, 3, 0);
  const auto share = record.share_of_calls(0, 8e-6);
  REQUIRE(share);
  CHECK(share->status == SiteResult::Status::Measured);
  CHECK(share->config == 2);
  CHECK(share->launches == 4);
  CHECK(share->seconds == Approx(2e-6));
  CHECK(record.share_of_calls(0, 0)->status == SiteResult::Status::Missing);
  CHECK_FALSE(record.share_of_calls(2, 8e-6));

  SECTION("one that was no sample has none") {
    record.run_another(0);
    CHECK(record.share_of_calls(0, 8e-6)->status == SiteResult::Status::Missing);
  }
  SECTION("one that failed has failed") {
    record.failed(0);
    CHECK(record.share_of_calls(0, 8e-6)->status == SiteResult::Status::LaunchFailed);
  }
  SECTION("one that takes too much memory is told once") {
    record.took_too_much(0, 1 << 20);
    CHECK_FALSE(record.share_of_calls(0, 8e-6));
    CHECK(record.sites_too_large().size() == 1);
  }
}
