// NVTX ranges: regions of programs that were marked for a profiler.
#include "catch.hpp"
#include "process.hpp"

using namespace contextune::test;

namespace {

const std::vector<std::string> expected_record = {
    "attach in 1 real cuInit 1 real cuptiSubscribe 0 passed 0 missed 0",
    "range start domain '' name 'early, process-wide'",
    "range push domain '' name 'early'",
    "range push domain 'dom' name 'early in a domain'",
    "range push domain '' name 'other thread, early'",
    "range pop domain '' name '(none)'",
    "range push domain '' name 'wide \u00e9\u20ac\U0001F600'",
    "range push domain 'dom' name 'registered'",
    "range pop domain 'dom' name '(none)'",
    "range start domain 'dom' name 'registered wide \u00e9'",
    "range end domain 'dom' name '(none)'",
    "range push domain '' name 'by attributes'",
    "range push domain '' name ''",
    "range pop domain '' name '(none)'",
    "range pop domain '' name '(none)'",
    "range pop domain '' name '(none)'",
    "range pop domain '' name '(none)'",
    "range end domain '' name '(none)'",
    "range pop domain 'dom' name '(none)'",
    "exit",
};

Environment injected(const std::string& chain = {}) {
  Environment environment = {{"NVTX_INJECTION64_PATH", CONTEXTUNE_PRELOAD_WITH_CORE}};
  if (!chain.empty()) environment["CONTEXTUNE_NVTX_CHAIN"] = chain;
  return environment;
}

}  // namespace

TEST_CASE("The core is told of ranges of every kind, those opened before it too", "[nvtx]") {
  const Outcome bare = run({client("ranges")});
  const Recorded recorded = run_recorded({client("ranges")}, injected());
  INFO(recorded.outcome.err);
  CHECK(recorded.outcome.exited_with(0));
  CHECK(recorded.outcome.out == bare.out);
  CHECK(lines_of(recorded.record) == expected_record);
}

TEST_CASE("Without a core ranges cost the program nothing that it could see", "[nvtx]") {
  const Outcome bare = run({client("ranges")});
  const Outcome alone =
      run_preloaded({client("ranges")}, {{"NVTX_INJECTION64_PATH", CONTEXTUNE_PRELOAD_ALONE}});
  CHECK(alone == bare);
  Environment disabled = injected();
  disabled["CONTEXTUNE_DISABLE"] = "1";
  CHECK(run_recorded({client("ranges")}, disabled).outcome == bare);
}

TEST_CASE("A user's own NVTX tool sees what it would see without us", "[nvtx]") {
  const std::string tool = client("libnvtx_tool.so");
  const Outcome bare = run({client("ranges")}, {{"NVTX_INJECTION64_PATH", tool}});
  REQUIRE(bare.out.find("tool push early") != std::string::npos);
  const Recorded recorded = run_recorded({client("ranges")}, injected(tool));
  CHECK(recorded.outcome.out == bare.out);
  CHECK(lines_of(recorded.record) == expected_record);
}

TEST_CASE("A user's tool that declines is left out, as NVTX leaves it out", "[nvtx]") {
  const std::string tool = client("libnvtx_tool.so");
  const Outcome bare =
      run({client("ranges")}, {{"NVTX_INJECTION64_PATH", tool}, {"NVTX_TOOL", "decline"}});
  Environment environment = injected(tool);
  environment["NVTX_TOOL"] = "decline";
  const Recorded recorded = run_recorded({client("ranges")}, environment);
  CHECK(recorded.outcome.out == bare.out);
  CHECK(recorded.outcome.out.find("tool") == std::string::npos);
  CHECK(lines_of(recorded.record) == expected_record);
}

TEST_CASE("A user's tool that cannot be loaded does not keep ranges from us", "[nvtx]") {
  const Recorded recorded = run_recorded({client("ranges")}, injected("/no/such/tool.so"));
  CHECK(recorded.outcome.out == run({client("ranges")}).out);
  CHECK(lines_of(recorded.record) == expected_record);
}

TEST_CASE("NCCL's own ranges cost it nothing unless a region is marked by them", "[nvtx]") {
  const std::vector<std::string> command = {client("nccl_direct"), "direct"};
  const auto tells_range = [&](Environment environment) {
    const Outcome bare = run(command, environment);
    environment.merge(injected());
    const Recorded recorded = run_recorded(command, environment);
    CHECK(recorded.outcome.out == bare.out);
    return recorded.record.find("range push domain 'NCCL' name 'ncclAllReduce'") !=
           std::string::npos;
  };
  CHECK_FALSE(tells_range({}));
  CHECK_FALSE(tells_range({{"CONTEXTUNE_REGION", "nvtx:step"}}));
  CHECK(tells_range({{"CONTEXTUNE_REGION", "nvtx:step;nvtx:NCCL@ncclAllReduce"}}));
}

TEST_CASE("A user's tool sees NCCL's own ranges", "[nvtx]") {
  const std::vector<std::string> command = {client("nccl_direct"), "direct"};
  const std::string tool = client("libnvtx_tool.so");
  const Outcome bare = run(command, {{"NVTX_INJECTION64_PATH", tool}});
  REQUIRE(bare.out.find("tool push in NCCL") != std::string::npos);
  CHECK(run_recorded(command, injected(tool)).outcome.out == bare.out);
}
