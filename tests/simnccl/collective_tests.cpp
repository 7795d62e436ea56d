#include <cuda.h>
#include <nccl.h>

#include <cstring>

#include "catch.hpp"
#include "ranks.hpp"

namespace {

void all_well(const std::vector<RankEnd>& ends) {
  for (const RankEnd& end : ends) {
    INFO(end.output);
    CHECK(end.status == 0);
  }
}

double figure(const RankEnd& end, const std::string& name) {
  const auto lines = lines_with(end.output, name + " ");
  REQUIRE(lines.size() == 1);
  return std::stod(lines[0].substr(name.size()));
}

}  // namespace

TEST_CASE("Every operation has its result on two and on four ranks", "[simnccl]") {
  all_well(run_ranks("results", 2));
  all_well(run_ranks("results", 4));
}

TEST_CASE("Averages, rounding and factors of one's own are as on a GPU", "[simnccl]") {
  all_well(run_ranks("reductions", 4));
  all_well(run_ranks("alone", 1));
}

TEST_CASE("A rank may be many collectives ahead of another", "[simnccl]") {
  all_well(run_ranks("many", 4));
}

TEST_CASE("Results do not depend on the order in which a device does its work", "[simnccl]") {
  for (const char* const seed : {"1", "2", "3"})
    all_well(run_ranks("results", 2, {{"SIMCUDA_ORDER", seed}}));
}

TEST_CASE("Any course of operations ends, with the right results", "[simnccl]") {
  for (int seed = 1; seed <= 6; ++seed) {
    INFO("seed " << seed);
    Variables variables{{"TEST_SEED", std::to_string(seed)}, {"SIMNCCL_DEADLINE_S", "15"}};
    if (seed % 2 == 0) variables.emplace_back("SIMCUDA_ORDER", std::to_string(seed));
    all_well(run_ranks("random_course", 4, variables));
  }
}

TEST_CASE("Results are right with every algorithm", "[simnccl]") {
  all_well(run_ranks("one_all_reduce", 4, {{"NCCL_ALGO", "TREE"}}));
  all_well(run_ranks("one_all_reduce", 4, {{"NCCL_ALGO", "nvls"}}));
  for (const RankEnd& end : run_ranks("one_all_reduce", 4, {{"NCCL_ALGO", "^NVLS,TREE"}}))
    CHECK(figure(end, "sum") == 4);
}

TEST_CASE("Each function has a second name at the same address", "[simnccl]") {
  all_well(run_ranks("names", 2));
}

TEST_CASE("A communicator splits by colour and key", "[simnccl]") {
  all_well(run_ranks("split", 5));
}

TEST_CASE("A non-blocking communicator is polled", "[simnccl]") {
  all_well(run_ranks("non_blocking", 3));
}

TEST_CASE("A collective begins when its last rank is there", "[simnccl]") {
  const auto ends = run_ranks("times", 2, {{"SIMNCCL_NOISE", "0"}, {"SIMCUDA_NOISE", "0"}});
  all_well(ends);
  CHECK(figure(ends[1], "apart") - figure(ends[1], "together") > 80);
  CHECK(std::abs(figure(ends[0], "apart") - figure(ends[0], "together")) < 20);
}

TEST_CASE("The same seed gives the same times", "[simnccl]") {
  const auto first = run_ranks("times", 2);
  const auto second = run_ranks("times", 2);
  CHECK(figure(first[0], "together") == figure(second[0], "together"));
  const auto other = run_ranks("times", 2, {{"SIMNCCL_SEED", "7"}});
  CHECK(figure(first[0], "together") != figure(other[0], "together"));
}

TEST_CASE("The first use of an algorithm takes memory until the communicator ends", "[simnccl]") {
  const auto ends = run_ranks("memory", 2, {{"NCCL_ALGO", "RING"}});
  all_well(ends);
  CHECK(figure(ends[0], "connection") == 8 << 20);
}

TEST_CASE("One process can be all ranks", "[simnccl]") {
  REQUIRE(cuInit(0) == CUDA_SUCCESS);
  constexpr int ranks = 4;
  ncclComm_t comms[ranks];
  REQUIRE(ncclCommInitAll(comms, ranks, nullptr) == ncclSuccess);
  CUcontext contexts[ranks];
  CUdeviceptr data[ranks];
  for (int i = 0; i < ranks; ++i) {
    REQUIRE(cuDevicePrimaryCtxRetain(&contexts[i], i) == CUDA_SUCCESS);
    cuCtxSetCurrent(contexts[i]);
    REQUIRE(cuMemAlloc(&data[i], 16) == CUDA_SUCCESS);
    REQUIRE(cuMemsetD32(data[i], static_cast<unsigned>(10 + i), 4) == CUDA_SUCCESS);
  }
  REQUIRE(ncclGroupStart() == ncclSuccess);
  for (int i = 0; i < ranks; ++i) {
    auto* const buffer = reinterpret_cast<void*>(data[i]);
    CHECK(ncclAllReduce(buffer, buffer, 4, ncclInt32, ncclSum, comms[i], nullptr) == ncclSuccess);
  }
  REQUIRE(ncclGroupEnd() == ncclSuccess);
  for (int i = 0; i < ranks; ++i) {
    cuCtxSetCurrent(contexts[i]);
    int result[4] = {};
    CHECK(cuMemcpyDtoH(result, data[i], sizeof result) == CUDA_SUCCESS);
    CHECK(result[3] == 10 + 11 + 12 + 13);
    CHECK(ncclCommDestroy(comms[i]) == ncclSuccess);
  }
}
