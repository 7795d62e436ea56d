#include <algorithm>

#include "fixture.hpp"

using namespace contextune;

namespace {

// `add` with 128 threads a block on the simulated device: 16 blocks on each of 132 SMs.
constexpr int most = 132 * 16;

std::shared_ptr<TestRule> grids(std::initializer_list<int> values) {
  auto rule = std::make_shared<TestRule>("add");
  rule->list = values_of("grid", values);
  rule->waits_for_others = true;
  return rule;
}

bool ran(const std::vector<SeenLaunch>& seen, unsigned grid) {
  return std::any_of(seen.begin(), seen.end(), [&](const auto& one) { return one.grid == grid; });
}

}  // namespace

TEST_CASE("Blocks that wait for others are launched only if all fit on the device at once",
          "[co_residency]") {
  Program program;
  Adder adder(1000);
  auto rule = grids({most, most + 1});
  SECTION("where the space says so") {
    program.runtime().declare(rule);
    program.steps(8, [&] { CHECK(adder.run(program) == CUDA_SUCCESS); });
    const std::vector<SeenLaunch> seen = take_seen();
    CHECK(ran(seen, most));
    CHECK_FALSE(ran(seen, most + 1));
    CHECK(program.said("fallback", {"reason=not_co_resident", "add{", "Config 2 (grid=2113)",
                                    "2113 blocks, of which the device holds 2112 at once"}));
    CHECK_FALSE(program.said("fallback", {"Config 1"}));
    CHECK(program.said("winner", {"site=add "}));
  }
  SECTION("and not otherwise") {
    rule->waits_for_others = false;
    program.runtime().declare(rule);
    program.steps(8, [&] { CHECK(adder.run(program) == CUDA_SUCCESS); });
    CHECK(ran(take_seen(), most + 1));
    CHECK_FALSE(program.said("fallback", {"reason=not_co_resident"}));
  }
  adder.holds(8);
}

TEST_CASE("Larger blocks and more shared memory leave room for fewer blocks", "[co_residency]") {
  Program program;
  auto rule = std::make_shared<TestRule>("add");
  rule->list = {Config{{"block", std::int64_t{256}}},
                Config{{"shared_bytes", std::int64_t{20 << 10}}},
                Config{{"shared_bytes", std::int64_t{1 << 10}}}};
  rule->waits_for_others = true;
  program.runtime().declare(rule);
  Adder adder(1000);
  program.steps(10, [&] { CHECK(adder.run(program, most, 128) == CUDA_SUCCESS); });
  for (const SeenLaunch& one : take_seen()) {
    CHECK(one.block == 128);
    CHECK(one.shared_bytes <= 1 << 10);
  }
  CHECK(program.said("fallback", {"reason=not_co_resident", "block=256"}));
  CHECK(program.said("fallback", {"reason=not_co_resident", "shared_bytes=20480"}));
  CHECK(program.said("trial", {"shared_bytes=1024"}));
  adder.holds(10);
}

TEST_CASE("Clusters have room only where a whole one has", "[co_residency]") {
  // Five blocks on five SMs: two of the 132 SMs stay empty.
  const unsigned room = 132 / 5 * 5 * 16;
  Program program;
  auto rule = grids({static_cast<int>(room), static_cast<int>(room + 5)});
  rule->make = [](const Config& config, const LaunchView&, LaunchReads&) {
    LaunchChange change = TestRule::by_name(config);
    change.cluster = {{5, 1, 1}};
    return change;
  };
  program.runtime().declare(rule);
  Adder adder(1000);
  program.steps(8, [&] { CHECK(adder.run(program) == CUDA_SUCCESS); });
  const std::vector<SeenLaunch> seen = take_seen();
  CHECK(ran(seen, room));
  CHECK_FALSE(ran(seen, room + 5));
  CHECK(program.said("fallback", {"reason=not_co_resident", "2085 blocks", "holds 2080 at once"}));
  adder.holds(8);
}

TEST_CASE("The launch as written stays, whether or not its blocks fit", "[co_residency]") {
  Program program;
  program.runtime().declare(grids({most}));
  Adder adder(1000);
  program.steps(6, [&] { CHECK(adder.run(program, most + 1, 128) == CUDA_SUCCESS); });
  CHECK(ran(take_seen(), most + 1));
  CHECK_FALSE(program.said("fallback", {"reason=not_co_resident"}));
  adder.holds(6);
}

TEST_CASE("What fits for one launch may not fit for another of the same kernel", "[co_residency]") {
  Program program;
  auto rule = std::make_shared<TestRule>("add");
  rule->list = values_of("times", {2});
  rule->waits_for_others = true;
  rule->make = [](const Config&, const LaunchView& view, LaunchReads& reads) {
    reads.grid = true;
    LaunchChange change;
    change.grid = {{view.grid[0] * 2, 1, 1}};
    return change;
  };
  program.runtime().declare(rule);
  Adder adder(1000);
  program.steps(8, [&] {
    CHECK(adder.run(program, 8) == CUDA_SUCCESS);
    CHECK(adder.run(program, most) == CUDA_SUCCESS);
  });
  const std::vector<SeenLaunch> seen = take_seen();
  CHECK(ran(seen, 16));
  CHECK_FALSE(ran(seen, 2 * most));
  adder.holds(16);
}

TEST_CASE("In a context with some of the SMs only their blocks count", "[co_residency]") {
  const auto resource = [](CUcontext, CUdevResource* given, CUdevResourceType) {
    given->sm.smCount = 16;
    return CUDA_SUCCESS;
  };
  Program::replaced["cuCtxGetDevResource"] = reinterpret_cast<void*>(
      static_cast<CUresult (*)(CUcontext, CUdevResource*, CUdevResourceType)>(resource));
  Program program;
  Program::replaced.clear();
  program.runtime().declare(grids({16 * 16, 16 * 16 + 1}));
  Adder adder(1000);
  program.steps(8, [&] { CHECK(adder.run(program) == CUDA_SUCCESS); });
  const std::vector<SeenLaunch> seen = take_seen();
  CHECK(ran(seen, 16 * 16));
  CHECK_FALSE(ran(seen, 16 * 16 + 1));
  CHECK(program.said("fallback", {"reason=not_co_resident", "257 blocks", "holds 256 at once"}));
  adder.holds(8);
}
