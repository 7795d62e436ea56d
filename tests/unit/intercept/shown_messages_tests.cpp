// Calls of NCCL between two ranks, and about groups: to whom they are of use.
#include "catch.hpp"
#include "fixture.hpp"
#include "intercept/collectives/found_collectives.hpp"
#include "intercept/program/replay_gate.hpp"
#include "intercept/runtime/process_runtime.hpp"

using namespace contextune;

namespace {

contextune_nccl_call all_reduce(std::uint32_t group_depth) {
  contextune_nccl_call call{};
  call.fn = contextune_fn_ncclAllReduce;
  call.kind = contextune_nccl_collective;
  call.group_depth = group_depth;
  return call;
}

}  // namespace

TEST_CASE("Messages are shown where a stretch is marked, and from the first region on", "[nccl]") {
  Program marked;
  CHECK(marked.messages == 1);

  Program found(Program::quick(&Options::region, "auto"));
  CHECK(found.messages == 0);
  (void)found.runtime().region("step", {});
  CHECK(found.messages == 1);
  (void)found.runtime().region("step", {});
  CHECK(found.messages == 1);
}

TEST_CASE("Groups are shown from the first one on in which a collective came", "[nccl]") {
  Program program(Program::quick(&Options::region, "auto"));
  const intercept::RegionServices& services = program.process().services();
  intercept::FoundCollectives found;
  found.start([](const intercept::UnansweredRuns&) { return nullptr; }, [] {}, services.store,
              services.gate);
  found.see(all_reduce(0));
  CHECK(program.messages == 0);
  found.see(all_reduce(1));
  CHECK(program.messages == 1);

  // There is no region to be had, so nobody looks any more.
  for (std::uint64_t i = 0; i <= 2 * intercept::FoundCollectives::least_repeated; ++i)
    found.see(all_reduce(0));
  CHECK_FALSE(found.looks());
  CHECK(program.messages == 0);
}
