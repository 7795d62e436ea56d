#include "catch.hpp"
#include "space_fixture.hpp"

using namespace contextune;
using namespace contextune::space::test;

namespace {

std::string reads_of(const std::string& body, TestLaunch launch = saxpy_launch()) {
  const auto rule = one_rule(with_apply(body));
  LaunchReads reads;
  static_cast<void>(rule->apply(Config{{"block", std::int64_t{64}}}, launch.view(), reads));
  return to_string(reads);
}

}  // namespace

TEST_CASE("What apply reads of a launch is recorded, and nothing else") {
  CHECK(reads_of("local x = 1").empty());
  CHECK(reads_of("local x = launch.args[1]") == "arg0");
  CHECK(reads_of("local x = launch.args[2] + launch.args[4]") == "arg1 arg3");
  CHECK(reads_of("local x = #launch.args").empty());
  CHECK(reads_of("local x = launch.grid").empty());  // the object alone tells nothing
  CHECK(reads_of("local x = launch.grid.y") == "grid");
  CHECK(reads_of("local x = launch.block.z") == "block");
  CHECK(reads_of("local x = launch.cluster.x") == "shape");
  CHECK(reads_of("local x = launch.shared_bytes") == "shape");
  CHECK(reads_of("local x = launch.kernel, launch.module, launch.source").empty());
}

TEST_CASE("A field that apply has written gives the written value and is no read") {
  CHECK(reads_of("launch.block = 64 assert(launch.block.x == 64 and launch.block.y == 1)").empty());
  CHECK(reads_of("launch.shared_bytes = 8 assert(launch.shared_bytes == 8)").empty());
  CHECK(reads_of("launch.kernel = 'other' assert(launch.kernel == 'other')").empty());
}

TEST_CASE("Dimensions that are not written come from the launch, which is a read") {
  CHECK(reads_of("launch.block.x = 64") == "block");
  CHECK(reads_of("launch.block.x = 64 launch.block.y = 1 launch.block.z = 1").empty());
  CHECK(reads_of("launch.grid.x = 64") == "grid");
  CHECK(reads_of("launch.grid = 64").empty());
}

TEST_CASE("A cluster depends on the grid that it must divide") {
  CHECK(reads_of("launch.cluster = 2") == "grid");
  CHECK(reads_of("launch.cluster = 2 launch.grid = 64").empty());
  CHECK(reads_of("launch.cluster.x = 2 launch.grid = 64") == "shape");
}

TEST_CASE("A grid computed from an argument is never taken for another value of it") {
  const auto rule = one_rule(with_apply(
      "launch.block = config.block launch.grid = ceil_div(launch.args[1], config.block)"));
  const Config config{{"block", std::int64_t{64}}};
  // What a caller does that keeps answers: by the values of what was read.
  LaunchReads reads;
  TestLaunch small = saxpy_launch(1000);
  TestLaunch large = saxpy_launch(1001 * 64);
  const LaunchChange first = rule->apply(config, small.view(), reads);
  CHECK(to_string(reads) == "arg0");
  const LaunchChange second = rule->apply(config, large.view(), reads);
  CHECK(first.grid == std::array<std::uint32_t, 3>{16, 1, 1});
  CHECK(second.grid == std::array<std::uint32_t, 3>{1001, 1, 1});
}

TEST_CASE("What an earlier call read is not blamed on the next") {
  const auto rule = one_rule(R"(
    kernel "k" {
      params = { "i32", "f32", "ptr", "ptr" },
      space = { block = {64, 128} },
      apply = function(config, launch)
        if config.block == 64 then local x = launch.args[1] end
      end,
    })");
  TestLaunch launch = saxpy_launch();
  LaunchReads first;
  LaunchReads second;
  static_cast<void>(rule->apply(Config{{"block", std::int64_t{64}}}, launch.view(), first));
  static_cast<void>(rule->apply(Config{{"block", std::int64_t{128}}}, launch.view(), second));
  CHECK(to_string(first) == "arg0");
  CHECK(to_string(second).empty());
}

TEST_CASE("Reads are added to those that the caller has") {
  const auto rule = one_rule(with_apply("local x = launch.args[2]"));
  TestLaunch launch = saxpy_launch();
  LaunchReads reads;
  reads.grid = true;
  static_cast<void>(rule->apply(Config{{"block", std::int64_t{64}}}, launch.view(), reads));
  CHECK(to_string(reads) == "grid arg1");
}

TEST_CASE("An argument past the sixty-fourth counts as everything") {
  TestLaunch launch;
  std::string params;
  for (int i = 0; i < 65; ++i) {
    launch.argument(i);
    params += "'i32',";
  }
  const auto rule =
      one_rule("kernel 'k' { params = {" + params + "}, key = function(l) return l.args[65] end }");
  LaunchReads reads;
  CHECK(rule->key(launch.view(), reads).to_string() == "key=64");
  CHECK(to_string(reads) == "everything");
}

TEST_CASE("Launches for which prune keeps other configs are other problems") {
  const auto rule = one_rule(R"(
    kernel "k" {
      params = { "i32", "f32", "ptr", "ptr" },
      space = { block = {64, 128, 256} },
      prune = function(config, launch) return launch.args[1] % config.block == 0 end,
      apply = function(config, launch) launch.block = config.block end,
    })");
  const auto key = [&](int n, LaunchReads& reads) {
    TestLaunch launch = saxpy_launch(n);
    return rule->key(launch.view(), reads).to_string();
  };
  LaunchReads reads;
  CHECK(key(256, reads) == key(512, reads));
  CHECK(to_string(reads) == "arg0");
  CHECK(key(256, reads) != key(128, reads));
  CHECK(contains(key(128, reads), "kept=2of3-"));
  TestLaunch launch = saxpy_launch(128);
  CHECK(rule->configs(launch.view()).size() == 2);
}

TEST_CASE("A prune that looks at configs alone adds nothing to the key") {
  const auto rule = one_rule(R"(
    kernel "k" {
      space = { block = {64, 128, 256} },
      prune = function(config) return config.block < 256 end,
      apply = function(config, launch) launch.block = config.block end,
    })");
  TestLaunch launch = saxpy_launch();
  LaunchReads reads;
  CHECK(rule->key(launch.view(), reads).empty());
  CHECK(to_string(reads).empty());
  CHECK(rule->configs(launch.view()).size() == 2);
}
