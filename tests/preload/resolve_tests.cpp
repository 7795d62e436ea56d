// cuGetProcAddress, asked as the CUDA runtime asks it.
#include "catch.hpp"
#include "process.hpp"

using namespace contextune::test;

TEST_CASE("What cuGetProcAddress returns ends where the driver said, version by version",
          "[resolve]") {
  const Outcome bare = run({client("resolve")});
  const Outcome preloaded = run_preloaded({client("resolve")});
  INFO(preloaded.out << preloaded.err);
  CHECK(bare.exited_with(0));
  CHECK(preloaded.status == bare.status);
  CHECK(preloaded.out == bare.out);

  SECTION("one name at several versions is several functions") {
    CHECK(count_lines(preloaded.out, "cuCtxCreate@2000/0 result 0 calls cuCtxCreate") == 1);
    CHECK(count_lines(preloaded.out, "cuCtxCreate@3020/0 result 0 calls cuCtxCreate_v2") == 1);
    CHECK(count_lines(preloaded.out, "cuCtxCreate@11040/0 result 0 calls cuCtxCreate_v3") == 1);
    CHECK(count_lines(preloaded.out, "cuCtxCreate@12050/0 result 0 calls cuCtxCreate_v4") == 1);
    CHECK(count_lines(preloaded.out,
                      "cuCtxSynchronize@13000/0 result 0 calls cuCtxSynchronize_v2") == 1);
  }
  SECTION("the per-thread form is asked for by a flag") {
    CHECK(count_lines(preloaded.out, "cuLaunchKernel@7000/0 result 0 calls cuLaunchKernel") == 1);
    CHECK(count_lines(preloaded.out, "cuLaunchKernel@7000/2 result 0 calls cuLaunchKernel_ptsz") ==
          1);
  }
  SECTION("copies and waits are told apart as launches are") {
    for (const char* line : {"cuMemAlloc@3020/0 result 0 calls cuMemAlloc_v2",
                             "cuMemcpyHtoDAsync@7000/2 result 0 calls cuMemcpyHtoDAsync_v2_ptsz",
                             "cuMemcpyHtoD@7000/2 result 0 calls cuMemcpyHtoD_v2_ptds",
                             "cuMemcpyBatchAsync@12080/0 result 0 calls cuMemcpyBatchAsync",
                             "cuMemcpyBatchAsync@13000/0 result 0 calls cuMemcpyBatchAsync_v2",
                             "cuMemPrefetchAsync@8000/2 result 0 calls cuMemPrefetchAsync_ptsz",
                             "cuStreamWaitValue32@11070/0 result 0 calls cuStreamWaitValue32_v2"}) {
      INFO(line);
      CHECK(count_lines(preloaded.out, line) == 1);
    }
  }
  SECTION("the resolver that is resolved resolves") {
    CHECK(count_lines(preloaded.err, "cuGetProcAddress@12000/0 routed") == 1);
    CHECK(count_lines(preloaded.err, "cuGetProcAddress@11030/0 routed") == 1);
    CHECK(count_lines(preloaded.err, "again routed") == 1);
  }
  SECTION("a function before which nothing is handed over stays the driver's") {
    CHECK(count_lines(preloaded.err, "cuDriverGetVersion@2020/0 bare") == 1);
  }
  SECTION("everything else is routed") {
    for (const std::string& line : lines_of(preloaded.err)) {
      INFO(line);
      CHECK((line.ends_with(" routed") || line.starts_with("cuDriverGetVersion")));
    }
    for (const std::string& line : lines_of(bare.err)) {
      INFO(line);
      CHECK(line.ends_with(" bare"));
    }
  }
}

TEST_CASE("Where entries share an address, name and flags tell which one was meant", "[resolve]") {
  // The driver has one function for cuStreamQuery and its per-thread form, and one for both
  // versions of cuStreamDestroy.
  const Recorded recorded = run_recorded({client("resolve")});
  INFO(recorded.record);
  CHECK(count_lines(recorded.record, "after cuStreamQuery 0") == 1);
  CHECK(count_lines(recorded.record, "after cuStreamQuery_ptsz 0") == 1);
  CHECK(count_lines(recorded.record, "before cuStreamDestroy") == 4);
  CHECK(count_lines(recorded.record, "before cuStreamDestroy_v2") == 0);
}
