#include <random>

#include "catch.hpp"
#include "core/agreement/batch_message.hpp"
#include "tests/case_step.hpp"

namespace contextune::tests {
namespace {

TEST_CASE(
    "messages between ranks survive the wire, and nothing that is cut or changed is misread") {
  BatchReport report;
  report.batch = 3;
  report.options.max_time = 2.5;
  report.new_sites.push_back(
      {{"kernel", "n=1", 5, 3, Objective::Region, 2, {}, 1U}, false, {2}, {1}});
  report.readied.push_back({4, {1, 2}});
  report.rejections.push_back({1, 2});
  PassReport pass;
  pass.region_seconds = 1.5;
  pass.sites.push_back({2, 1, 7, 0.25, SiteResult::Status::TooMuchMemory, false, 1U << 25U});
  report.passes.push_back(pass);
  const std::vector<std::byte> bytes = encode(report);
  BatchReport read;
  REQUIRE(decode(bytes, read));
  CHECK(encode(read) == bytes);
  CHECK(read.new_sites[0].site == report.new_sites[0].site);

  Batch batch;
  batch.number = 9;
  batch.passes.push_back({5, Stage::Confirm, Measure::Span, {1, 2}});
  batch.events = {StageEvent{Stage::Refine, 1}, TrialEvent{}, WinnerEvent{},
                  ConfirmEvent{ConfirmVerdict::Kept, 2, 1, 0.5, 0.25, 2, 1, {0.25, 0.75}},
                  FallbackEvent{FallbackReason::Budget, 2, "a sentence"}};
  const std::vector<std::byte> batch_bytes = encode(batch);
  Batch batch_read;
  REQUIRE(decode(batch_bytes, batch_read));
  CHECK(encode(batch_read) == batch_bytes);
  CHECK_FALSE(hash_of(batch_bytes) == hash_of(bytes));

  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(decode(std::span(bytes).first(size), read));
  }
  std::mt19937 draw(1);
  for (int i = 0; i < 20000; i += case_step) {
    std::vector<std::byte> changed = i % 2 == 0 ? bytes : batch_bytes;
    changed[draw() % changed.size()] ^= static_cast<std::byte>(1 + draw() % 255);
    Batch other;
    // Whatever comes out of it is a value of its type: it can be written again as it was.
    if (decode(changed, read)) CHECK(encode(read) == changed);
    if (decode(changed, other)) CHECK(encode(other) == changed);
  }
}

}  // namespace
}  // namespace contextune::tests
