// Bodies whose launches the host makes more slowly than the GPU does them.
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include <simcuda/simcuda.h>
#include <contextune/contextune.hpp>

#include "catch.hpp"
#include "program.hpp"
#include "short_tuning.hpp"

using contextune::Config;
using contextune::ConfigSpace;
using contextune::Tunable;

namespace {

void require(CUresult result) {
  if (result != CUDA_SUCCESS) std::abort();
}

/// The host is busy for longer than any of the kernels takes.
void be_slow() {
  simcuda_host_work(100e-6);
}

double number_in(const std::string& line, const std::string& name) {
  return std::stod(line.substr(line.find(" " + name) + 1 + name.size()));
}

/// A launch in blocks of the best size, if it is tuned, and another behind it.
struct TwoLaunches {
  explicit TwoLaunches(const char* name)
      : tunable(name, blocks(), [this](const Config& config) {
          block = block_of(config);
          return Program::on().add(y, 64, 1.0F, 1, block, stream);
        }) {}

  CUdeviceptr y = Program::on().floats(64);
  unsigned block = 0;
  CUstream stream = nullptr;
  Tunable<std::function<CUresult(const Config&)>> tunable;
};

}  // namespace

TEST_CASE("A body that the host launches slowly is compared at the GPU's own pace", "[region]") {
  TwoLaunches two("slow.add");
  CONTEXTUAL_AUTOTUNE("slow", {.repeatable = true}) {
    two.tunable();
    be_slow();
    require(Program::on().launch("set", two.y, 64, 1.0F, 1, 256));
  }
  CHECK(two.block == 128);
  CHECK(log_lines({"event=confirm", "region=slow ", "verdict=kept"}).size() == 1);
  CHECK(log_lines({"reason=body_waits", "region=slow "}).empty());
}

TEST_CASE("Configs are not judged by the caches as those before left them", "[region]") {
  // As if the caches held what another config left: the launch behind takes longer.
  TwoLaunches two("cached.add");
  unsigned last = 0;
  CONTEXTUAL_AUTOTUNE("cached", {.repeatable = true}) {
    two.tunable();
    be_slow();
    const unsigned threads = std::exchange(last, two.block) == two.block ? 128 : 256;
    require(Program::on().launch("set", two.y, 64, 1.0F, 1, threads));
  }
  const auto confirmed = log_lines({"event=confirm", "region=cached ", "verdict=kept"});
  REQUIRE(confirmed.size() == 1);
  // 80 thousand cycles become 40. Half of the default's passes follow the winner's, and 40 more
  // would make the gain a third.
  CHECK(number_in(confirmed.front(), "gain=") > 0.4);
}

TEST_CASE("A body between whose runs its work is waited for is held all the same", "[region]") {
  TwoLaunches two("restored.add");
  CONTEXTUAL_AUTOTUNE("restored", {.repeatable = true}) {
    require(cuStreamSynchronize(nullptr));
    two.tunable();
    be_slow();
    require(Program::on().launch("set", two.y, 64, 1.0F, 1, 256));
  }
  CHECK(two.block == 128);
  CHECK(log_lines({"event=confirm", "region=restored ", "verdict=kept"}).size() == 1);
  CHECK(log_lines({"reason=body_waits", "region=restored "}).empty());
}

TEST_CASE("Work that the first run has left on another stream is not timed with the second",
          "[region]") {
  TwoLaunches two("aside.add");
  CUstream aside = nullptr;
  require(cuStreamCreate(&two.stream, CU_STREAM_NON_BLOCKING));
  require(cuStreamCreate(&aside, CU_STREAM_NON_BLOCKING));
  CONTEXTUAL_AUTOTUNE("aside", {.repeatable = true}) {
    two.tunable();
    be_slow();
    for (int i = 0; i < 4; ++i)
      require(Program::on().launch("set", two.y, 64, 1.0F, 1, 256, aside));
  }
  const auto confirmed = log_lines({"event=confirm", "region=aside "});
  REQUIRE(confirmed.size() == 1);
  // Four launches of 39 us, and not eight less one of the tunable.
  CHECK(number_in(confirmed.front(), "before_us=") < 180);
}

TEST_CASE("A run of which all is captured is no first of two", "[region]") {
  TwoLaunches two("captured.add");
  int runs = 0;
  require(cuStreamCreate(&two.stream, CU_STREAM_NON_BLOCKING));
  CONTEXTUAL_AUTOTUNE("captured", {.repeatable = true, .n_warmup = 0, .n_repeat = 2}) {
    CUgraph graph = nullptr;
    const bool is_captured = ++runs > 12;
    if (is_captured) require(cuStreamBeginCapture(two.stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    if (!is_captured) two.tunable();
    be_slow();
    require(Program::on().launch("set", two.y, 64, 1.0F, 1, 256, two.stream));
    if (!is_captured) continue;
    require(cuStreamEndCapture(two.stream, &graph));
    require(cuGraphDestroy(graph));
  }
  const auto summary = log_lines({"event=summary", "region=captured "});
  REQUIRE(summary.size() == 1);
  // Before that, three passes had two runs; the last run is no pass.
  CHECK(runs <= number_in(summary.front(), "passes=") + 4);
}

TEST_CASE("A body that waits for its own work goes on, and is compared as it is", "[region]") {
  TwoLaunches two("waiting.add");
  CONTEXTUAL_AUTOTUNE("waiting", {.repeatable = true}) {
    two.tunable();
    require(cuStreamSynchronize(nullptr));
    be_slow();
    require(Program::on().launch("set", two.y, 64, 1.0F, 1, 256));
  }
  CHECK(two.block == 128);
  CHECK(log_lines({"reason=body_waits", "region=waiting "}).size() == 1);
}

TEST_CASE("A call that makes several launches is compared with what they cost the host",
          "[region]") {
  // In two launches the work takes the GPU a little less time, and the host more.
  const CUdeviceptr y = Program::on().floats(64);
  std::int64_t used = 0;
  Tunable pieces("pieces", ConfigSpace().parameter("pieces", {1, 2}), [&](const Config& config) {
    used = config.get_int("pieces");
    require(Program::on().add(y, 64, 1.0F, 1, used == 1 ? 256 : 128));
    if (used == 2) {
      be_slow();
      require(Program::on().launch("set", y, 64, 1.0F, 1, 128));
    }
  });
  CONTEXTUAL_AUTOTUNE("pieces", {.repeatable = true}) {
    pieces();
  }
  CHECK(used == 1);
}
