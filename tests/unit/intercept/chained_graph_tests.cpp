// Which edges of a program's graph become programmatic, and what keeps the second instantiation in
// step with the program's.
#include <contextune/error.hpp>

#include <simcuda/cubin.hpp>

#include "intercept/graphs/chained_graph.hpp"
#include "submit_fixture.hpp"

using namespace contextune;
using namespace contextune::intercept;

namespace {

/// A graph of the program's, of kernels that compute x = x * factor + 1.
class ProgramGraph {
 public:
  explicit ProgramGraph(Submitting& program) : program_(program) {
    REQUIRE(driver().cuGraphCreate(&graph, 0) == CUDA_SUCCESS);
  }
  ~ProgramGraph() { (void)driver().cuGraphDestroy(graph); }
  ProgramGraph(const ProgramGraph&) = delete;
  ProgramGraph& operator=(const ProgramGraph&) = delete;

  CUgraphNode add(const char* kernel, std::initializer_list<CUgraphNode> after = {},
                  CUgraphEdgeData how = {}) {
    return add(program_.function(kernel), after, how);
  }
  CUgraphNode add(CUfunction kernel, std::initializer_list<CUgraphNode> after,
                  CUgraphEdgeData how = {}) {
    CUgraphNode node = nullptr;
    const Params params(program_, kernel, 1);
    REQUIRE(driver().cuGraphAddKernelNode(&node, graph, nullptr, 0, &params.node) == CUDA_SUCCESS);
    for (CUgraphNode one : after)
      REQUIRE(driver().cuGraphAddDependencies_v2(graph, &one, &node, &how, 1) == CUDA_SUCCESS);
    return node;
  }
  void set_priority(CUgraphNode node) {
    CUkernelNodeAttrValue value{};
    value.priority = -1;
    REQUIRE(driver().cuGraphKernelNodeSetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value) ==
            CUDA_SUCCESS);
  }

  struct Params {
    Params(Submitting& program, CUfunction kernel, float by) : x(program.x), factor(by) {
      node.func = kernel;
      node.gridDimX = node.gridDimY = node.gridDimZ = node.blockDimY = node.blockDimZ = 1;
      node.blockDimX = 32;
      node.kernelParams = arguments;
    }
    char tag = 'a';
    CUdeviceptr x;
    float factor;
    void* arguments[3] = {&tag, &x, &factor};
    CUDA_KERNEL_NODE_PARAMS node{};
  };

  CUgraph graph = nullptr;

 private:
  [[nodiscard]] const gpu::Driver& driver() const { return program_.driver; }
  Submitting& program_;
};

/// The program has instantiated it, as the frontend says.
CUgraphExec instantiated(Submitting& program, ProgramGraph& graph) {
  CUgraphExec exec = nullptr;
  unsigned long long flags = 0;
  REQUIRE(program.driver.cuGraphInstantiate(&exec, graph.graph, flags) == CUDA_SUCCESS);
  CUgraphExec* made = &exec;
  void* const arguments[] = {&made, &graph.graph, &flags};
  program.graphs->instantiated(contextune_fn_cuGraphInstantiateWithFlags, arguments);
  return exec;
}

/// What it makes of 0 while those kernels stay ordinary.
float launched_without(Submitting& program, CUgraphExec exec, std::uint32_t ordinary) {
  program.chained_graphs->use(ChainedGraphs::Use::Now, ordinary);
  REQUIRE(program.driver.cuMemsetD8Async(program.x, 0, 32, nullptr) == CUDA_SUCCESS);
  REQUIRE(program.chained_graphs->launch({contextune_fn_cuGraphLaunch, exec, nullptr}) ==
          CUDA_SUCCESS);
  program.synchronise();
  return program.result();
}

std::size_t edges_of(Submitting& program, const ProgramGraph& of) {
  GraphMemory memory(program.driver);
  ChainedGraph chained(program.driver, *program.submitted, memory, 0, Simulation::get().context);
  try {
    chained.build(of.graph, false);
  } catch (const Error&) {
    return 0;
  }
  return chained.edges();
}

CUfunction kernel_without_wait(Submitting& program) {
  static const std::string bytes =
      simcuda::build_cubin({{.name = "step", .uses_stack = true, .padding = 0}});
  return Simulation::get().function(program.load_module(bytes), "step");
}

}  // namespace

TEST_CASE("An edge of a graph is programmatic only where a launch would be chained", "[graphs]") {
  Submitting program;
  ProgramGraph graph(program);
  std::size_t edges = 0;
  SECTION("between two kernels of which the second waits") {
    graph.add("scale", {graph.add("step")});
    edges = 1;
  }
  SECTION("to each of two kernels after one") {
    CUgraphNode first = graph.add("step");
    graph.add("scale", {first});
    graph.add("step", {first});
    edges = 2;
  }
  SECTION("not to a kernel after two") {
    graph.add("scale", {graph.add("step"), graph.add("step")});
  }
  SECTION("not after a kernel that triggers") {
    graph.add("scale", {graph.add("triggering")});
  }
  SECTION("not to a kernel that waits of its author's") {
    graph.add("waiting", {graph.add("step")});
  }
  SECTION("not to a kernel without a wait") {
    graph.add(kernel_without_wait(program), {graph.add("step")});
  }
  SECTION("not after a kernel with an attribute of its author's") {
    CUgraphNode first = graph.add("step");
    graph.set_priority(first);
    graph.add("scale", {first});
  }
  SECTION("not to one") {
    CUgraphNode last = graph.add("scale", {graph.add("step")});
    graph.set_priority(last);
  }
  SECTION("not beside an edge that its author made programmatic") {
    CUgraphEdgeData how{};
    how.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    how.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
    graph.add("scale", {graph.add("step", {graph.add("step")}, how)});
  }
  CHECK(edges_of(program, graph) == edges);
}

TEST_CASE("A chained graph follows what keeps it right, and says so where nothing does",
          "[graphs]") {
  Submitting program;
  ProgramGraph graph(program);
  CUgraphNode first = graph.add("step");
  CUgraphNode second = graph.add("scale", {first});
  GraphMemory memory(program.driver);
  ChainedGraph chained(program.driver, *program.submitted, memory, 0, Simulation::get().context);
  chained.build(graph.graph, false);
  CUgraphExec own = nullptr;  // nobody looks at it
  const auto follows = [&](contextune_fn fn, auto second_argument, auto third) {
    void* const arguments[] = {&own, &second_argument, &third};
    return chained.follow(fn, arguments);
  };
  const auto sets = [&](CUgraphNode node, CUfunction kernel, float factor) {
    const ProgramGraph::Params params(program, kernel, factor);
    return follows(contextune_fn_cuGraphExecKernelNodeSetParams_v2, node, &params.node);
  };
  SECTION("other arguments") {
    CHECK(sets(second, program.function("scale"), 5));
    REQUIRE(program.driver.cuMemsetD8Async(program.x, 0, 32, nullptr) == CUDA_SUCCESS);
    REQUIRE(program.driver.cuGraphLaunch(chained.exec(), nullptr) == CUDA_SUCCESS);
    program.synchronise();
    CHECK(program.result() == 6);  // (0 * 1 + 1) * 5 + 1
  }
  SECTION("another kernel that waits") {
    CHECK(sets(second, program.function("step"), 1));
  }
  SECTION("a kernel that does not wait") {
    CHECK_FALSE(sets(second, kernel_without_wait(program), 1));
  }
  SECTION("a kernel that triggers, before another") {
    CHECK_FALSE(sets(first, program.function("triggering"), 1));
  }
  SECTION("a kernel that is switched off") {
    CHECK_FALSE(follows(contextune_fn_cuGraphNodeSetEnabled, first, 0U));
  }
  SECTION("a kernel that is switched off where no edge is programmatic") {
    CUgraphNode apart = graph.add("step");
    chained.build(graph.graph, false);
    CHECK_FALSE(follows(contextune_fn_cuGraphNodeSetEnabled, apart, 0U));
  }
  SECTION("a node that is none of its own") {
    ProgramGraph other(program);
    CHECK_FALSE(sets(other.add("step"), program.function("step"), 1));
  }
  SECTION("an update by a graph of the same shape") {
    ProgramGraph other(program);
    other.add("step", {other.add("step")});
    CHECK(follows(contextune_fn_cuGraphExecUpdate_v2, other.graph, nullptr));
    CHECK(chained.edges() == 1);
  }
  SECTION("an update by a graph where fewer edges may be programmatic") {
    ProgramGraph other(program);
    CUgraphNode third = other.add("scale", {other.add("step", {other.add("triggering")})});
    CHECK(third != nullptr);
    CHECK(follows(contextune_fn_cuGraphExecUpdate_v2, other.graph, nullptr));
    CHECK(chained.edges() == 1);
  }
  SECTION("an update by a graph where none may be") {
    ProgramGraph other(program);
    other.add("step", {other.add("triggering")});
    CHECK_FALSE(follows(contextune_fn_cuGraphExecUpdate_v2, other.graph, nullptr));
  }
}

TEST_CASE("A graph that is not chained any more runs as written, and the log says why",
          "[graphs]") {
  Submitting program;
  ProgramGraph graph(program);
  CUgraphNode first = graph.add("step");
  CUgraphNode second = graph.add("scale", {first});
  CUgraphExec exec = instantiated(program, graph);
  program.chained_graphs->use(ChainedGraphs::Use::Now);
  const auto launch = [&] {
    REQUIRE(program.chained_graphs->launch({contextune_fn_cuGraphLaunch, exec, nullptr}) ==
            CUDA_SUCCESS);
  };
  launch();
  CHECK(program.chained_graphs->totals().launches == 1);
  CHECK(program.not_chained.empty());

  unsigned off = 0;
  void* const switched[] = {&exec, &second, &off};
  program.chained_graphs->changed(contextune_fn_cuGraphNodeSetEnabled, switched);
  launch();
  CHECK(program.chained_graphs->totals().launches == 1);
  REQUIRE(program.not_chained.size() == 1);
  CHECK(program.not_chained.front() ==
        "A graph of the program's is not chained: the program has changed it in a way that cannot "
        "be followed.");
}

TEST_CASE("Kernels that stay ordinary have no programmatic edge, and two sets of them take turns",
          "[graphs]") {
  Submitting program;
  ProgramGraph graph(program);
  graph.add("step", {graph.add("scale", {graph.add("step", {graph.add("step")})})});
  program.submitter->number_kernels({hash_of_kernel("step"), hash_of_kernel("scale")});
  CUgraphExec exec = instantiated(program, graph);
  ChainedGraphs& graphs = *program.chained_graphs;
  const auto launch = [&](std::uint32_t ordinary) {
    CHECK(launched_without(program, exec, ordinary) == 4);
    return graphs.totals();
  };
  CHECK(launch(0).edges == 3);
  CHECK(launch(0b10).edges == 3 + 2);
  CHECK(launch(0b01).edges == 3 + 2 + 1);
  CHECK(launch(0b10).attempts == 3);
  CHECK(launch(0b01).attempts == 3);
  // Where none is left, the program's own serves, and is nothing that failed.
  const auto launches = graphs.totals().launches;
  CHECK(launch(0b11).launches == launches);
  CHECK(launch(0b11).disturbed == 0);
  CHECK(program.not_chained.empty());
  CHECK(launch(0).launches == launches + 1);
  CHECK(graphs.totals().attempts == 5);
}

TEST_CASE("What the program changes is changed in every set of ordinary kernels", "[graphs]") {
  Submitting program;
  ProgramGraph graph(program);
  CUgraphNode first = graph.add("step");
  CUgraphNode second = graph.add("scale", {first});
  graph.add("step", {second});
  program.submitter->number_kernels({hash_of_kernel("step"), hash_of_kernel("scale")});
  CUgraphExec exec = instantiated(program, graph);
  ChainedGraphs& graphs = *program.chained_graphs;
  const auto launch = [&](std::uint32_t ordinary) {
    return launched_without(program, exec, ordinary);
  };
  const auto changes = [&](contextune_fn fn, auto second_argument, auto third) {
    void* const arguments[] = {&exec, &second_argument, &third};
    graphs.changed(fn, arguments);
  };
  const auto sets = [&](CUgraphNode node, const char* kernel, float factor) {
    const ProgramGraph::Params params(program, program.function(kernel), factor);
    REQUIRE(program.driver.cuGraphExecKernelNodeSetParams(exec, node, &params.node) ==
            CUDA_SUCCESS);
    changes(contextune_fn_cuGraphExecKernelNodeSetParams_v2, node, &params.node);
  };
  CHECK(launch(0) == 3);
  CHECK(launch(0b01) == 3);
  sets(second, "scale", 5);
  CHECK(launch(0) == 7);  // (0 + 1) * 5 + 1, + 1
  CHECK(launch(0b01) == 7);
  CHECK(graphs.totals().launches == 4);
  // Another set is there with the program's next update.
  CHECK(launch(0b10) == 7);
  CHECK(graphs.totals().launches == 4);
  CHECK(graphs.totals().disturbed == 1);
  ProgramGraph other(program);
  other.add("step", {other.add("scale", {other.add("step")})});
  CUgraphExecUpdateResultInfo info{};
  REQUIRE(program.driver.cuGraphExecUpdate(exec, other.graph, &info) == CUDA_SUCCESS);
  changes(contextune_fn_cuGraphExecUpdate_v2, other.graph, nullptr);
  CHECK(launch(0b10) == 3);
  CHECK(graphs.totals().launches == 5);
  // Those that are not compared any more are gone.
  graphs.use_no_other();
  CHECK(launch(0b10) == 3);
  CHECK(launch(0b01) == 3);
  CHECK(graphs.totals().launches == 6);
}

namespace {

std::size_t free_device_bytes = 0;
std::size_t bytes_of_graph = 0;

CUresult tell_free_bytes(std::size_t* free, std::size_t* all) {
  *free = free_device_bytes;
  *all = std::size_t{80} << 30;
  return CUDA_SUCCESS;
}

CUresult take_bytes(CUgraphExec*, CUgraph, unsigned long long) {
  free_device_bytes -= bytes_of_graph;
  return CUDA_SUCCESS;
}

}  // namespace

TEST_CASE("Graphs take device memory up to a limit, and none where little is left",
          "[chained_graph]") {
  contextune::gpu::Driver driver;
  driver.cuMemGetInfo = &tell_free_bytes;
  driver.cuGraphInstantiate = &take_bytes;
  GraphMemory memory(driver);
  CUgraphExec exec = nullptr;
  free_device_bytes = std::size_t{1} << 30;
  bytes_of_graph = std::size_t{1} << 20;
  for (std::uint64_t i = 1; i <= 62; ++i) {
    CHECK(memory.instantiate(&exec, nullptr, 0, 1) == CUDA_SUCCESS);
    CHECK(memory.bytes() == i * bytes_of_graph);
  }
  // Another process takes much at that moment.
  bytes_of_graph = std::size_t{500} << 20;
  CHECK(memory.instantiate(&exec, nullptr, 0, 0) == CUDA_SUCCESS);
  CHECK(memory.bytes() == GraphMemory::most_bytes);
  CHECK(memory.instantiate(&exec, nullptr, 0, 1) == CUDA_ERROR_OUT_OF_MEMORY);
  GraphMemory other(driver);
  free_device_bytes = GraphMemory::least_free_bytes - 1;
  CHECK(other.instantiate(&exec, nullptr, 0, 1) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(other.bytes() == 0);
}
