#include <string>
#include <vector>

#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"
#include "short_tuning.hpp"

using contextune::Config;
using contextune::ConfigSpace;
using contextune::Kernel;
using contextune::Key;
using contextune::LaunchEdit;
using contextune::LaunchInfo;

namespace {

constexpr int n = 4096;

void set_block(const Config& config, LaunchEdit& launch) {
  launch.set_block({static_cast<std::uint32_t>(config.get_int("block"))});
}

struct OwnFloats {
  const Program& program = Program::on();
  CUdeviceptr y = program.floats(n);
};

}  // namespace

TEST_CASE_METHOD(OwnFloats, "Launches of a declared kernel are tuned where the program makes them",
                 "[kernel]") {
  int sms = 0;
  Kernel("add")
      .space(ConfigSpace().parameter("block", {64, 128, 512}))
      .key([](const LaunchInfo& launch) {
        return Key{{"n", launch.argument<int>(0)}};
      })
      .prune([](const Config& config, const LaunchInfo&) { return config.get_int("block") < 512; })
      .apply([&sms](const Config& config, LaunchEdit& launch) {
        sms = launch.device().num_sms;
        set_block(config, launch);
      })
      .declare();
  int runs = 0;
  CONTEXTUAL_AUTOTUNE("declared", short_table()) {
    ++runs;
    REQUIRE(program.add(y, n, 1.0F, 4, 256) == CUDA_SUCCESS);
  }
  CHECK(runs == 7);
  CHECK(sms > 0);
  CHECK(Program::read(y, n) == std::vector<float>(n, 7.0F));
  CHECK(log_lines({"event=site", "site=add", "n=4096", "configs=3"}).size() == 1);
  CHECK(log_lines({"event=winner", "region=declared", "site=add", "block=128"}).size() == 1);
}

// Long before CUDA is initialised, as a static object of a program would.
const bool declared_early = [] {
  Kernel("declared_early")
      .space(ConfigSpace().parameter("block", {64, 128}))
      .apply(&set_block)
      .declare();
  return true;
}();

TEST_CASE_METHOD(OwnFloats, "A kernel that is declared before CUDA is initialised is tuned",
                 "[kernel]") {
  REQUIRE(declared_early);
  CONTEXTUAL_AUTOTUNE("early", short_table()) {
    REQUIRE(program.launch("declared_early", y, n, 1.0F, 4, 256) == CUDA_SUCCESS);
  }
  CHECK(log_lines({"event=winner", "region=early", "site=declared_early", "block=128"}).size() ==
        1);
}

TEST_CASE_METHOD(OwnFloats, "A declaration that fails leaves the kernel as the program launches it",
                 "[kernel]") {
  Kernel("add_more")
      .space(ConfigSpace().parameter("block", {64, 128}))
      .key([](const LaunchInfo& launch) {
        return Key{{"n", launch.argument<int>(17)}};
      })
      .apply(&set_block)
      .declare();
  int runs = 0;
  CONTEXTUAL_AUTOTUNE("failing_key", short_table()) {
    ++runs;
    REQUIRE(program.launch("add_more", y, n, 1.0F, 4, 256) == CUDA_SUCCESS);
  }
  CHECK(Program::read(y, n) == std::vector<float>(n, static_cast<float>(runs)));
  CHECK(log_lines({"event=fallback", "reason=rule_error", "there is no argument 17"}).size() == 1);
}

TEST_CASE_METHOD(OwnFloats,
                 "A kernel's size that comes when its region is tuned runs what was asked for",
                 "[kernel]") {
  const auto unseen = GENERATE(contextune::UnseenSize::Nearest, contextune::UnseenSize::Default,
                               contextune::UnseenSize::Tune);
  const std::string region = "unseen_" + std::to_string(static_cast<int>(unseen));
  Kernel("add_more")
      .space(ConfigSpace().parameter("block", {64, 128, 512}))
      .size([](const LaunchInfo& launch) { return launch.argument<int>(0); })
      .unseen(unseen)
      .apply(&set_block)
      .declare();
  const auto pass_of = [&](int size) {
    CONTEXTUAL_AUTOTUNE(region.c_str(), short_table()) {
      REQUIRE(program.launch("add_more", y, size, 1.0F, 1, 256) == CUDA_SUCCESS);
    }
  };
  const auto winners = [&](const char* size, const char* config) {
    return log_lines({"event=winner", "region=" + region, size, config}).size();
  };
  pass_of(1000);
  CHECK(winners("size=513-1024", "block=128") == 1);
  // It starts to be tuned when it is there in several entries.
  for (int entry = 0; entry < 4; ++entry) pass_of(2000);
  const auto tried = log_lines({"event=trial", "region=" + region, "size=1025-2048"}).size();
  switch (unseen) {
    case contextune::UnseenSize::Nearest:
      CHECK(tried == 0);
      CHECK(winners("size=1025-2048", "block=128 reason=nearest") == 1);
      // Too far from all that were measured.
      for (int entry = 0; entry < 4; ++entry) pass_of(16);
      CHECK(log_lines({"event=trial", "region=" + region, "size=9-16"}).size() > 4);
      break;
    case contextune::UnseenSize::Default:
      CHECK(tried == 0);
      CHECK(winners("size=1025-2048", "config=0") == 1);
      break;
    case contextune::UnseenSize::Tune:
      CHECK(tried > 4);
      break;
  }
}

TEST_CASE_METHOD(OwnFloats,
                 "A kernel's size that was not measured itself is not the nearest to any",
                 "[kernel]") {
  Kernel("add_more")
      .space(ConfigSpace().parameter("block", {64, 128, 512}))
      .size([](const LaunchInfo& launch) { return launch.argument<int>(0); })
      .unseen(contextune::UnseenSize::Nearest)
      .apply(&set_block)
      .declare();
  const auto pass_of = [&](int size) {
    CONTEXTUAL_AUTOTUNE("near_to_nothing", short_table()) {
      REQUIRE(program.launch("add_more", y, size, 1.0F, 1, 256) == CUDA_SUCCESS);
    }
  };
  pass_of(1000);
  pass_of(16);  // far from it, and here once
  for (int entry = 0; entry < 4; ++entry) pass_of(32);
  const std::string in = "region=near_to_nothing";
  CHECK(log_lines({"event=winner", in, "size=17-32", "reason=nearest"}).empty());
  CHECK(log_lines({"event=trial", in, "size=17-32"}).size() > 4);
}

TEST_CASE_METHOD(OwnFloats, "Launches of one bucket of sizes are one site, whatever their grids",
                 "[kernel]") {
  Kernel("add_more")
      .space(ConfigSpace().parameter("block", {64, 128}))
      .size([](const LaunchInfo& launch) {
        return static_cast<std::uint64_t>(launch.argument<int>(0));
      })
      .buckets(contextune::Buckets::edges({1000, 5000}))
      .apply(&set_block)
      .declare();
  CONTEXTUAL_AUTOTUNE("sized", short_table()) {
    REQUIRE(program.launch("add_more", y, 2000, 1.0F, 2, 256) == CUDA_SUCCESS);
    REQUIRE(program.launch("add_more", y, 4000, 1.0F, 4, 256) == CUDA_SUCCESS);
    REQUIRE(program.launch("add_more", y, 500, 1.0F, 1, 256) == CUDA_SUCCESS);
  }
  CHECK(log_lines({"event=site", "region=sized"}).size() == 2);
  CHECK(log_lines({"event=winner", "region=sized", "size=1001-5000", "block=128"}).size() == 1);
  CHECK(log_lines({"event=winner", "region=sized", "size=0-1000", "block=128"}).size() == 1);
  CHECK(log_lines({"event=trial", "region=sized", "size=1001-5000", "launches=2"}).size() == 6);
}

TEST_CASE("A kernel is refused without configs or without apply", "[kernel]") {
  CHECK_THROWS_WITH(Kernel("nothing").apply(&set_block).declare(),
                    Catch::Contains("kernel 'nothing'"));
  CHECK_THROWS_WITH(Kernel("no_apply").space(ConfigSpace().parameter("block", {64})).declare(),
                    Catch::Contains("without apply"));
}
