#include "graph_fixture.hpp"

using namespace contextune;

namespace {

constexpr int most_regions = 16;

Program& only_program() {
  static auto& program = *new Program([] {
    Options options = Program::quick();
    options.timer = TimerKind::Auto;
    options.region.clear();
    for (int i = 0; i < most_regions; ++i) options.region += "nvtx:r" + std::to_string(i) + ";";
    return options;
  }());
  return program;
}

std::string next_region() {
  static int used = 0;
  REQUIRE(used < most_regions);
  return "r" + std::to_string(used++);
}

}  // namespace

Graphs::Graphs(Program& program) : program_(program) {}

CUstream Graphs::stream() {
  CUstream made = nullptr;
  REQUIRE(driver<decltype(&cuStreamCreate)>("cuStreamCreate")(&made, CU_STREAM_NON_BLOCKING) ==
          CUDA_SUCCESS);
  return made;
}

CUgraph Graphs::capture(const std::function<void(CUstream)>& body) {
  CUstream on = stream();
  const auto begin = driver<CUresult (*)(CUstream, CUstreamCaptureMode)>("cuStreamBeginCapture_v2");
  program_.process().services().captures.begin(on);
  REQUIRE(begin(on, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  program_.process().services().captures.begun(on);
  body(on);
  CUgraph graph = nullptr;
  REQUIRE(driver<decltype(&cuStreamEndCapture)>("cuStreamEndCapture")(on, &graph) == CUDA_SUCCESS);
  program_.process().services().captures.end(on);
  return graph;
}

CUgraph Graphs::explicit_graph(const std::vector<Adder*>& kernels, unsigned grid, unsigned block) {
  CUgraph graph = nullptr;
  REQUIRE(driver<decltype(&cuGraphCreate)>("cuGraphCreate")(&graph, 0) == CUDA_SUCCESS);
  const auto add = driver<CUresult (*)(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,
                                       const CUDA_KERNEL_NODE_PARAMS*)>("cuGraphAddKernelNode_v2");
  CUgraphNode node = nullptr;
  for (Adder* kernel : kernels) {
    std::array<void*, 3> arguments{&kernel->n, &kernel->value, &kernel->x};
    CUDA_KERNEL_NODE_PARAMS params{};
    params.func = kernel->function;
    params.gridDimX = grid;
    params.blockDimX = block;
    params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
    params.kernelParams = arguments.data();
    const CUgraphNode before = node;
    REQUIRE(add(&node, graph, &before, before == nullptr ? 0 : 1, &params) == CUDA_SUCCESS);
  }
  return graph;
}

CUgraphExec Graphs::instantiate(CUgraph graph, unsigned long long flags) {
  CUgraphExec exec = nullptr;
  const auto make = driver<CUresult (*)(CUgraphExec*, CUgraph, unsigned long long)>(
      "cuGraphInstantiateWithFlags");
  REQUIRE(make(&exec, graph, flags) == CUDA_SUCCESS);
  CUgraphExec* to = &exec;
  void* const arguments[] = {&to, &graph, &flags};
  program_.process().services().graphs.instantiated(contextune_fn_cuGraphInstantiateWithFlags,
                                                    arguments);
  return exec;
}

void Graphs::destroy(CUgraph graph) {
  REQUIRE(driver<decltype(&cuGraphDestroy)>("cuGraphDestroy")(graph) == CUDA_SUCCESS);
}

void Graphs::destroy(CUgraphExec exec) {
  program_.process().services().graphs.destroyed(exec);
  REQUIRE(driver<decltype(&cuGraphExecDestroy)>("cuGraphExecDestroy")(exec) == CUDA_SUCCESS);
}

void Graphs::update(CUgraphExec exec, CUgraph graph) {
  CUgraphExecUpdateResultInfo info{};
  const auto change = driver<CUresult (*)(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo*)>(
      "cuGraphExecUpdate_v2");
  REQUIRE(change(exec, graph, &info) == CUDA_SUCCESS);
  void* const arguments[] = {&exec, &graph};
  program_.process().submission().graphs().changed(contextune_fn_cuGraphExecUpdate_v2, arguments);
}

CUresult Graphs::launch(CUgraphExec exec, CUstream on) {
  return program_.process().launches().launch_graph({contextune_fn_cuGraphLaunch, exec, on});
}

MeasuredProgram::MeasuredProgram() : program(only_program()), region(next_region()) {
  Simulation::get().fault("");
  (void)take_seen();
}

void MeasuredProgram::steps(int times, const std::function<void()>& body) {
  for (int i = 0; i < times; ++i) {
    program.push(region.c_str());
    body();
    program.pop();
    program.synchronise();
  }
}

bool MeasuredProgram::said(const std::string& event, std::vector<std::string> texts) const {
  texts.push_back("region=" + region + " ");
  return program.said(event, std::move(texts));
}
