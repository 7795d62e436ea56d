#include "fixture.hpp"

using namespace contextune;
using intercept::Region;
using intercept::Site;
using intercept::TunableCall;

namespace {

intercept::TunableSpec spec_of(const char* name, std::initializer_list<int> blocks) {
  intercept::TunableSpec spec;
  spec.name = name;
  spec.configs = values_of("block", blocks);
  return spec;
}

Options body() {
  Options options = Program::quick();
  options.mode = Mode::Body;
  return options;
}

}  // namespace

TEST_CASE("A body is repeated until its tunables are tuned, then run with the winners",
          "[tunable]") {
  Program program;
  Region& region = program.runtime().region("decode", body());
  Site* site = region.tunable(spec_of("scale", {128, 32, 1024}));
  REQUIRE(site != nullptr);
  CHECK(region.tunable(spec_of("scale", {128, 32, 1024})) == site);
  Adder adder(1 << 16);
  const unsigned blocks[] = {128, 32, 1024};
  const auto work = [&] {
    for (int i = 0; i < 2; ++i) {
      TunableCall call(site);
      CHECK(adder.run(program, 1, blocks[call.config()]) == CUDA_SUCCESS);
      CHECK_FALSE(call.end(true));
    }
  };
  int passes = 0;
  while (region.begin_pass()) {
    work();
    region.end_pass();
    REQUIRE(++passes < 100);
  }
  CHECK(passes == 3);
  CHECK(region.finished());
  (void)take_seen();
  region.begin_entry();
  work();
  region.end_entry();
  for (const SeenLaunch& one : take_seen()) CHECK(one.block == 1024);
  CHECK(program.said("trial", {"region=decode", "site=scale", "launches=2", "block=32"}));
  CHECK(program.said("site", {"provider=tunable"}));
  CHECK(program.said("winner", {"config=2"}));
  CHECK(program.armed == 0);
}

TEST_CASE("Of a tunable's call the sample is the sum of what it launched", "[tunable]") {
  Program program;
  Region& region = program.runtime().region("decode", body());
  Site* site = region.tunable(spec_of("pair", {1, 2}));
  Adder adder(1 << 16);
  // Config 1 does the same work in two launches: more expensive.
  while (region.begin_pass()) {
    TunableCall call(site);
    for (std::uint32_t i = 0; i <= call.config(); ++i) adder.run(program, 1, 256);
    call.end(true);
    region.end_pass();
  }
  CHECK(program.said("winner", {"config=0"}));
}

TEST_CASE("A call that could not be launched is to be made again with the default", "[tunable]") {
  Program program;
  Region& region = program.runtime().region("decode", body());
  Site* site = region.tunable(spec_of("scale", {128, 4096}));
  Adder adder(1 << 10);
  const unsigned blocks[] = {128, 4096};
  int bodies = 0;
  while (region.begin_pass()) {
    TunableCall call(site);
    const CUresult result = adder.run(program, 1, blocks[call.config()]);
    if (call.end(result == CUDA_SUCCESS)) {
      CHECK(adder.run(program, 1, blocks[0]) == CUDA_SUCCESS);
    }
    region.end_pass();
    ++bodies;
  }
  adder.holds(static_cast<float>(bodies));
  CHECK(program.said("trial", {"config=1", "status=failed"}));
  CHECK(program.said("winner", {"config=0", "reason=failed"}));
}

TEST_CASE("A body that is left early ends the search without winners", "[tunable]") {
  Program program;
  Region& region = program.runtime().region("decode", body());
  Site* site = region.tunable(spec_of("scale", {128, 1024}));
  Adder adder(1 << 16);
  REQUIRE(region.begin_pass());
  {
    TunableCall call(site);
    adder.run(program, 1, 128);
  }
  region.abandon_pass();
  CHECK(region.finished());
  CHECK_FALSE(region.begin_pass());
  CHECK(TunableCall(site).config() == 0);
  CHECK(program.said("fallback", {"reason=body_left"}));
  CHECK(program.lines("winner").empty());
  CHECK(program.armed == 0);
}

TEST_CASE("A tunable outside of its region runs what is settled and is not measured", "[tunable]") {
  Program program;
  Region& region = program.runtime().region("decode", body());
  Site* site = region.tunable(spec_of("scale", {128, 1024}));
  CHECK(TunableCall(site).config() == 0);
  CHECK(TunableCall(nullptr).config() == 0);
  CHECK(region.tunable(spec_of("single", {128})) == nullptr);
  CHECK(program.lines("trial").empty());
}

TEST_CASE("Declared kernels and tunables share a region's passes", "[tunable]") {
  Program program;
  program.runtime().declare(blocks({64, 1024}, "add_twin"));
  Region& region = program.runtime().region("decode", body());
  Site* site = region.tunable(spec_of("scale", {128, 1024}));
  Adder first(1 << 16);
  Adder second(1 << 16, "_Z8add_twinifPf");
  const unsigned blocks[] = {128, 1024};
  int passes = 0;
  while (region.begin_pass()) {
    TunableCall call(site);
    first.run(program, 1, blocks[call.config()]);
    call.end(true);
    second.run(program, 1, 128);
    region.end_pass();
    ++passes;
  }
  CHECK(passes == 3);
  CHECK(program.said("winner", {"site=scale", "config=1"}));
  CHECK(program.said("winner", {"site=add_twin", "config=2"}));
}

TEST_CASE("The search in a region may wait: refine and confirm end inside one call", "[tunable]") {
  Program program;
  Options options;
  options.mode = Mode::Body;
  Region& region = program.runtime().region("decode", options);
  Site* site = region.tunable(spec_of("scale", {64, 128, 1024}));
  Adder adder(1 << 18);
  const unsigned blocks[] = {64, 128, 1024};
  int passes = 0;
  while (region.begin_pass()) {
    TunableCall call(site);
    adder.run(program, 4, blocks[call.config()]);
    call.end(true);
    region.end_pass();
    REQUIRE(++passes < 500);
  }
  CHECK(passes >= 24 + 8);
  CHECK(program.said("confirm", {"verdict=kept"}));
  CHECK(program.said("summary", {"region=decode", "stage=finished"}));
}
