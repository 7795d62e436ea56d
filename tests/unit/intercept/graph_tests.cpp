// Graphs that are launched in a region, on the simulated driver.
#include "graph_fixture.hpp"
#include "intercept/graphs/graph_instances.hpp"

using namespace contextune;

namespace {

/// Two kernels of their own memory, as slow as can be: one block of 32 threads each.
struct TwoKernels {
  TwoKernels() : first(1 << 16), second(1 << 16, "_Z8add_twinifPf") {}
  void declare(Program& program) {
    program.runtime().declare(blocks({64, 256, 1024}));
    program.runtime().declare(blocks({128, 512}, "add_twin"));
  }
  [[nodiscard]] CUgraph captured(Program& program, Graphs& graphs) {
    return graphs.capture([&](CUstream stream) {
      REQUIRE(first.run(program, 1, 32, 0, stream) == CUDA_SUCCESS);
      REQUIRE(second.run(program, 1, 32, 0, stream) == CUDA_SUCCESS);
    });
  }
  void hold(float expected) const {
    first.holds(expected);
    second.holds(expected);
  }
  Adder first;
  Adder second;
};

/// Blocks of the kernels that ran in the last launch of such a graph.
std::vector<unsigned> last_blocks() {
  const auto launches = take_seen();
  REQUIRE(launches.size() >= 2);
  return {launches[launches.size() - 2].block, launches.back().block};
}

struct MeasuredKernels {
  MeasuredKernels() { two.declare(measured.program); }
  MeasuredProgram measured;
  Graphs graphs{measured.program};
  TwoKernels two;
};

}  // namespace

TEST_CASE_METHOD(MeasuredKernels,
                 "A captured graph is tuned where it is launched, its source long destroyed",
                 "[graph]") {
  CUgraph graph = two.captured(measured.program, graphs);
  CUgraphExec exec = graphs.instantiate(graph);
  graphs.destroy(graph);
  measured.steps(200, [&] { REQUIRE(graphs.launch(exec) == CUDA_SUCCESS); });
  CHECK(measured.said("winner", {"site=add ", "block=1024"}));
  CHECK(measured.said("winner", {"site=add_twin ", "block=512"}));
  CHECK(measured.said("trial", {"site=add ", "timer=cupti"}));
  two.hold(200);
  CHECK(last_blocks() == std::vector<unsigned>{1024, 512});
  graphs.destroy(exec);
}

TEST_CASE("Kernels of one site are told from others by the order in which they ran", "[graph]") {
  MeasuredProgram measured;
  Graphs graphs(measured.program);
  // Two sites of one kernel and one shape: the rule tells them apart by an argument.
  auto rule = blocks({64, 1024});
  rule->make_key = [](const LaunchView& view, LaunchReads& reads) {
    reads.arguments |= 1;
    int n = 0;
    std::memcpy(&n, view.arguments[0], sizeof n);
    Key key;
    key.add("n", std::int64_t{n});
    return key;
  };
  measured.program.runtime().declare(rule);
  Adder small(1 << 10);
  Adder large(1 << 18);
  CUgraph graph = graphs.explicit_graph({&small, &large, &small}, 1, 32);
  CUgraphExec exec = graphs.instantiate(graph);
  measured.steps(60, [&] { REQUIRE(graphs.launch(exec) == CUDA_SUCCESS); });
  double small_us = 0;
  double large_us = 0;
  for (const std::string& line : measured.program.lines("trial")) {
    if (line.find("region=" + measured.region + " ") == std::string::npos ||
        line.find(" config=0 ") == std::string::npos) {
      continue;
    }
    const double time = std::stod(line.substr(line.find("time_us=") + 8));
    (line.find("n=1024") != std::string::npos ? small_us : large_us) = time;
  }
  CHECK(small_us > 0);
  CHECK(large_us > 20 * small_us);
  small.holds(120);
  large.holds(60);
}

TEST_CASE_METHOD(MeasuredKernels,
                 "Where launches go between streams, they stay one after the other", "[graph]") {
  CUgraphExec exec = graphs.instantiate(graphs.explicit_graph({&two.first, &two.second}, 1, 32));
  const std::array<CUstream, 2> streams{graphs.stream(), graphs.stream()};
  int launches = 0;
  measured.steps(60, [&] {
    for (int i = 0; i < 3; ++i) {
      REQUIRE(graphs.launch(exec, streams[static_cast<std::size_t>(launches++ % 2)]) ==
              CUDA_SUCCESS);
    }
  });
  CHECK(measured.said("winner", {"site=add ", "block=1024"}));
  CHECK_FALSE(measured.said("fallback", {"reason=graph_order"}));
  two.hold(180);
  // A stream that is gone is not asked for anything.
  measured.program.process().handles().stream_goes_away(streams[0]);
  REQUIRE(Graphs::driver<decltype(&cuStreamDestroy)>("cuStreamDestroy_v2")(streams[0]) ==
          CUDA_SUCCESS);
  measured.steps(2, [&] { REQUIRE(graphs.launch(exec, streams[1]) == CUDA_SUCCESS); });
  two.hold(182);
}

TEST_CASE("Instantiations are bounded, and the winners' is what stays", "[graph]") {
  MeasuredProgram measured;
  Graphs graphs(measured.program);
  auto many = std::make_shared<TestRule>("add");
  for (int block = 32; block <= 1024; block += 32)
    many->list.push_back(Config{{"block", std::int64_t{block}}});
  measured.program.runtime().declare(many);
  measured.program.runtime().declare(blocks({128, 512}, "add_twin"));
  TwoKernels two;
  CUgraphExec exec = graphs.instantiate(graphs.explicit_graph({&two.first, &two.second}, 1, 32));
  const auto known = measured.program.process().services().graphs.find(exec);
  std::size_t most = 0;
  measured.steps(150, [&] {
    REQUIRE(graphs.launch(exec) == CUDA_SUCCESS);
    most = std::max(most, known->instances.size());
  });
  CHECK(most == intercept::GraphInstances::most);
  CHECK(measured.said("winner", {"site=add "}));
  CHECK(known->instances.size() == 1);
  two.hold(150);
}

TEST_CASE_METHOD(MeasuredKernels, "A graph that the program changes runs as it says from then on",
                 "[graph]") {
  CUgraph graph = two.captured(measured.program, graphs);
  CUgraphExec exec = graphs.instantiate(graph);
  const auto step = [&] { REQUIRE(graphs.launch(exec) == CUDA_SUCCESS); };
  measured.steps(40, step);
  REQUIRE(last_blocks() == std::vector<unsigned>{1024, 512});
  two.first.value = 5;
  CUgraph other = two.captured(measured.program, graphs);
  graphs.update(exec, other);
  measured.steps(10, step);
  CHECK(last_blocks() == std::vector<unsigned>{32, 32});
  two.first.holds(40 + 50);
  two.second.holds(50);
  CHECK(measured.said("fallback", {"reason=graph_changed"}));
}

TEST_CASE("A config that no graph can hold fails, and the results stay right", "[graph]") {
  MeasuredProgram measured;
  Graphs graphs(measured.program);
  auto rule = std::make_shared<TestRule>("add");
  rule->list = {Config{{"block", std::int64_t{2048}}}, Config{{"block", std::int64_t{512}}}};
  measured.program.runtime().declare(rule);
  measured.program.runtime().declare(blocks({128}, "add_twin"));
  TwoKernels two;
  CUgraphExec exec = graphs.instantiate(two.captured(measured.program, graphs));
  measured.steps(40, [&] { REQUIRE(graphs.launch(exec) == CUDA_SUCCESS); });
  CHECK(measured.said("winner", {"site=add ", "block=512"}));
  two.hold(40);
}

TEST_CASE_METHOD(MeasuredKernels, "What was captured with winners is not tuned again", "[graph]") {
  measured.steps(30, [&] {
    two.first.run(measured.program, 1, 32);
    two.second.run(measured.program, 1, 32);
  });
  REQUIRE(measured.said("winner", {"site=add ", "block=1024"}));
  (void)take_seen();
  measured.program.push(measured.region.c_str());
  CUgraphExec exec = graphs.instantiate(two.captured(measured.program, graphs));
  measured.program.pop();
  const std::size_t sites = measured.program.lines("site").size();
  measured.steps(10, [&] { REQUIRE(graphs.launch(exec) == CUDA_SUCCESS); });
  CHECK(last_blocks() == std::vector<unsigned>{1024, 512});
  CHECK(measured.program.lines("site").size() == sites);
  two.hold(40);
}

TEST_CASE_METHOD(MeasuredKernels,
                 "A graph captured while the search goes on is tuned where it is launched",
                 "[graph]") {
  measured.steps(2, [&] { two.first.run(measured.program, 1, 32); });
  measured.program.push(measured.region.c_str());
  CUgraphExec exec = graphs.instantiate(two.captured(measured.program, graphs));
  measured.program.pop();
  measured.steps(60, [&] { REQUIRE(graphs.launch(exec) == CUDA_SUCCESS); });
  CHECK(last_blocks() == std::vector<unsigned>{1024, 512});
  two.first.holds(62);
  two.second.holds(60);
}

TEST_CASE("With events the kernels of a graph are chosen by the region's time", "[graph]") {
  Program program(Program::quick(&Options::refine, true));
  Graphs graphs(program);
  TwoKernels two;
  two.declare(program);
  CUgraphExec exec = graphs.instantiate(two.captured(program, graphs));
  program.steps(400, [&] { REQUIRE(graphs.launch(exec) == CUDA_SUCCESS); });
  CHECK(program.said("fallback", {"reason=graph_times"}));
  CHECK(program.said("winner", {"site=add ", "block=1024"}));
  CHECK(program.said("winner", {"site=add_twin ", "block=512"}));
  two.hold(400);
}

TEST_CASE("Each graph is a region where launches of graphs are the mark", "[graph]") {
  const std::string mark = GENERATE(std::string("graph"), std::string("process"));
  Program program(Program::quick(&Options::region, mark, &Options::refine, true));
  Graphs graphs(program);
  TwoKernels two;
  two.declare(program);
  CUgraphExec one = graphs.instantiate(two.captured(program, graphs));
  CUgraphExec other = graphs.instantiate(graphs.explicit_graph({&two.first}, 1, 32));
  for (int i = 0; i < 300; ++i) {
    REQUIRE(graphs.launch(one) == CUDA_SUCCESS);
    REQUIRE(graphs.launch(other) == CUDA_SUCCESS);
    if (i % 4 == 3) program.synchronise();
  }
  program.synchronise();
  CHECK(program.lines("region").size() >= 2);
  CHECK(program.said("winner", {"region=graph:", "site=add ", "block=1024"}));
  CHECK(program.said("winner", {"region=graph:", "site=add_twin ", "block=512"}));
  two.first.holds(600);
  two.second.holds(300);
  program.end();
  CHECK_FALSE(program.said("fallback", {"reason=region_never_entered"}));
}

TEST_CASE("A graph that cannot be made again runs as written, and is named", "[graph]") {
  Program program;
  Graphs graphs(program);
  TwoKernels two;
  two.declare(program);
  CUgraph graph = two.captured(program, graphs);
  CUgraphExec unseen = nullptr;
  REQUIRE(Graphs::driver<CUresult (*)(CUgraphExec*, CUgraph, unsigned long long)>(
              "cuGraphInstantiateWithFlags")(&unseen, graph, 0) == CUDA_SUCCESS);
  program.steps(5, [&] { REQUIRE(graphs.launch(unseen) == CUDA_SUCCESS); });
  CHECK(program.said("fallback", {"reason=graph_untunable", "did not see"}));
  CUgraphExec from_device = graphs.instantiate(graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
  program.steps(5, [&] { REQUIRE(graphs.launch(from_device) == CUDA_SUCCESS); });
  CHECK(program.said("fallback", {"reason=graph_untunable", "from the device"}));
  CHECK(program.lines("site").empty());
  two.hold(10);
  CHECK(program.process().services().graphs.unreplayable(unseen).find("did not see") !=
        std::string::npos);
  CHECK(program.process().services().graphs.unreplayable(graphs.instantiate(graph)).empty());
}

TEST_CASE("A plan of one's own can be launched outside of any search", "[graph]") {
  Program program;
  Graphs graphs(program);
  TwoKernels two;
  two.declare(program);
  CUgraphExec exec = graphs.instantiate(two.captured(program, graphs));
  auto& region = dynamic_cast<intercept::LaunchRegion&>(program.runtime().region("mine", {}));
  for (const std::uint32_t config : {0U, 1U, 2U}) {
    std::vector<const intercept::Site*> failed;
    CHECK(region.launch_graph_with(
              {contextune_fn_cuGraphLaunch, exec, nullptr},
              [&](const intercept::Site&) { return config; }, failed) == CUDA_SUCCESS);
    CHECK(failed.empty());
    const std::vector<std::vector<unsigned>> wanted{{32, 32}, {64, 128}, {256, 512}};
    CHECK(last_blocks() == wanted[config]);
  }
  two.hold(3);
}

TEST_CASE("What a graph launches is compared in a region's only visit by what its code shows",
          "[graph][replay]") {
  Program program(Program::quick(&Options::mode, Mode::Auto));
  Graphs graphs(program);
  program.runtime().declare(blocks({64, 256}));
  int n = 1000;
  float value = 1;
  CUdeviceptr x = program.allocate(static_cast<std::size_t>(n) * sizeof(float));
  const Simulation& simulation = Simulation::get();
  const CUfunction add = simulation.function(simulation.module, "_Z3addifPf");
  CUgraphExec exec = graphs.instantiate(graphs.capture([&](CUstream stream) {
    REQUIRE(program.launch(add, 8, 128, {&n, &value, &x}, 0, stream) == CUDA_SUCCESS);
  }));
  program.steps(1, [&] { REQUIRE(graphs.launch(exec) == CUDA_SUCCESS); });
  CHECK(program.said("replay", {"visit=1"}));
  CHECK_FALSE(program.said("fallback", {"reason=not_compared"}));
  CHECK(program.said("winner", {"site=add"}));
  CHECK(simulation.floats(x, static_cast<std::size_t>(n)) ==
        std::vector<float>(static_cast<std::size_t>(n), 1));
  graphs.destroy(exec);
}
