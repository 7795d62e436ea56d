// Programmatic launches: what comes out where a kernel waits for the one before it, and where it
// does not.
#include <simcuda/cubin.hpp>

#include <chrono>
#include <iterator>
#include <thread>

#include "gpu/image/entry_wait.hpp"
#include "orders.hpp"

namespace {

using simcuda::CompiledKernel;

/// The kernels of the session as machine code: `fill` and `independent` set memory, `add` adds one
/// piece to another, `read_constant` stores what it finds in constant memory.
class Program {
 public:
  Program(Session& session, const std::string& image) : session_(session) {
    SUCCEEDS(cuModuleLoadData(&module_, image.data()));
    x = session.memory(length * sizeof(float));
    y = session.memory(length * sizeof(float));
    z = session.memory(length * sizeof(float));
    SUCCEEDS(cuStreamSynchronize(nullptr));
  }

  void fill(CUdeviceptr to, float value, bool chained = false) {
    int n = length;
    launch("fill", {&n, &to, &value}, chained);
  }
  void independent(CUdeviceptr to, float value, bool chained) {
    int n = length;
    launch("fill_streaming", {&n, &to, &value}, chained);
  }
  void add(CUdeviceptr from, CUdeviceptr to, bool chained) {
    int n = length;
    launch("add", {&n, &from, &to}, chained);
  }
  void read_constant(CUdeviceptr to, bool chained) { launch("read_constant", {&to}, chained); }
  void launch(const char* name, std::vector<void*> arguments, bool chained) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = chained ? 1 : 0;
    SUCCEEDS(cuLaunchKernelEx(&config, function(name), arguments.data(), nullptr));
  }
  [[nodiscard]] CUfunction function(const char* name) const {
    CUfunction found = nullptr;
    SUCCEEDS(cuModuleGetFunction(&found, module_, name));
    return found;
  }
  [[nodiscard]] CUdeviceptr constant() const {
    CUdeviceptr found = 0;
    SUCCEEDS(cuModuleGetGlobal_v2(&found, nullptr, module_, "factor"));
    return found;
  }
  [[nodiscard]] float result(CUdeviceptr from) const {
    SUCCEEDS(cuStreamSynchronize(stream));
    return session_.floats(from, length).back();
  }

  CUdeviceptr x = 0, y = 0, z = 0;
  CUstream stream = make_stream();

 private:
  Session& session_;
  CUmodule module_ = nullptr;
};

void read_constant(const simcuda_launch* launch) {
  const float* const factor = simcuda::global<float>(*launch, "factor");
  for (int i = 0; i < length; ++i) simcuda::argument<float*>(*launch, 0)[i] = *factor;
}

/// @param first kernels that set memory
/// @param second those that read it
std::string image_of(const CompiledKernel& first, const CompiledKernel& second) {
  static const simcuda_kernel kernel =
      simcuda::whole_launch_kernel<float*>("read_constant", &read_constant, nullptr);
  static const simcuda_kernel* const kernels[] = {&kernel};
  static const simcuda_kernel_table table{SIMCUDA_VERSION, kernels, std::size(kernels)};
  REQUIRE(simcuda_register_kernels(&table) == 0);
  std::vector<CompiledKernel> all{first, first, second, second};
  const char* const names[] = {"fill", "fill_streaming", "add", "read_constant"};
  for (std::size_t i = 0; i < all.size(); ++i) all[i].name = names[i];
  return simcuda::build_cubin(all, "simcuda image 1\nconstant factor 4");
}

const CompiledKernel plain{};
const CompiledKernel waits{{}, true};
const CompiledKernel waits_and_triggers{{}, true, true};
const CompiledKernel triggers{{}, false, true};

using Body = std::function<float(Program&)>;

/// The program with effects at the call and under every seed.
struct Outcome {
  float at_once = 0;
  bool always = false;
  bool sometimes = false;
};
Outcome outcome(float meant, const std::string& image, const Body& body) {
  Outcome found;
  {
    Session session;
    Program program(session, image);
    found.at_once = body(program);
  }
  const unsigned right = orders_with(meant, [&](Session& session) {
    Program program(session, image);
    return body(program);
  });
  found.always = right == seeds;
  found.sometimes = right > 0 && right < seeds;
  return found;
}

/// It computes what it means, at the call and in every order.
void always_computes(float meant, const std::string& image, const Body& body) {
  const Outcome right = outcome(meant, image, body);
  CHECK(right.at_once == meant);
  CHECK(right.always);
}

/// It reads what was there before at the call, and in some orders.
void reads_too_early(const std::string& image, const Body& body) {
  const Outcome wrong = outcome(1, image, body);
  CHECK(wrong.at_once == 0);
  CHECK(wrong.sometimes);
}

float fill_and_add(Program& program) {
  program.fill(program.x, 1);
  program.add(program.x, program.y, true);
  return program.result(program.y);
}

void launch_captured(Program& program, CUgraph graph) {
  CUgraphExec executable = nullptr;
  SUCCEEDS(cuGraphInstantiateWithFlags(&executable, graph, 0));
  SUCCEEDS(cuGraphLaunch(executable, program.stream));
  SUCCEEDS(cuGraphExecDestroy(executable));
  SUCCEEDS(cuGraphDestroy(graph));
}

CUgraph capture(Program& program, const std::function<void()>& launches) {
  CUgraph graph = nullptr;
  SUCCEEDS(cuStreamBeginCapture_v2(program.stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  launches();
  SUCCEEDS(cuStreamEndCapture(program.stream, &graph));
  return graph;
}

}  // namespace

TEST_CASE("A chained launch of a kernel that waits has the results of an ordinary one",
          "[chained][order]") {
  always_computes(1, image_of(plain, waits), &fill_and_add);
}

TEST_CASE("A chained launch of a kernel that does not wait reads what was there before",
          "[chained][order]") {
  reads_too_early(image_of(plain, plain), &fill_and_add);
  // The wait of the one before is none of its own.
  CHECK(outcome(1, image_of(waits, plain), &fill_and_add).at_once == 0);
}

TEST_CASE("A kernel that was given a wait at its entry may be chained", "[chained][order]") {
  for (const bool stack : {false, true}) {
    CompiledKernel kernel = plain;
    kernel.uses_stack = stack;
    const std::string image = image_of(kernel, kernel);
    std::string why;
    const auto found = contextune::gpu::read_code_kernels(image, why);
    REQUIRE(found);
    CHECK(found->kernels.size() == 4);
    for (const auto& one : found->kernels) CHECK_FALSE(one.reason);
    std::string made = image;
    contextune::gpu::put_entry_waits(made, *found);
    always_computes(1, made, &fill_and_add);
  }
}

TEST_CASE("What is done between two launches unchains them", "[chained][order]") {
  std::vector<std::function<void(Program&)>> between;
  between.emplace_back(
      [](Program& program) { SUCCEEDS(cuMemsetD32Async(program.z, 0, length, program.stream)); });
  between.emplace_back([](Program& program) {
    const CUevent event = make_event();
    SUCCEEDS(cuEventRecord(event, program.stream));
    SUCCEEDS(cuEventDestroy(event));
  });
  between.emplace_back([](Program& program) {
    SUCCEEDS(cuLaunchHostFunc(
        program.stream, [](void*) {}, nullptr));
  });
  between.emplace_back([](Program& program) { SUCCEEDS(cuStreamSynchronize(program.stream)); });
  for (const auto& done : between) {
    always_computes(1, image_of(plain, plain), [&](Program& program) {
      program.fill(program.x, 1);
      done(program);
      program.add(program.x, program.y, true);
      return program.result(program.y);
    });
  }
}

TEST_CASE("What follows a chained launch in the ordinary way comes after all of the chain",
          "[chained][order]") {
  always_computes(1, image_of(plain, plain), [](Program& program) {
    program.fill(program.x, 1);
    program.independent(program.z, 2, true);
    program.add(program.x, program.y, false);
    return program.result(program.y);
  });
}

TEST_CASE("A wait reaches as far back as the kernel before it, which may not have waited",
          "[chained][order]") {
  const Body body = [](Program& program) {
    program.fill(program.x, 1);
    program.independent(program.z, 2, true);
    program.add(program.x, program.y, true);
    return program.result(program.y);
  };
  always_computes(1, image_of(waits, waits), body);
  reads_too_early(image_of(plain, waits), body);
}

TEST_CASE("A program whose kernels trigger and then wait computes what it means",
          "[chained][order]") {
  const Body body = [](Program& program) {
    program.fill(program.x, 1);
    program.fill(program.x, 2, true);
    program.add(program.x, program.y, true);
    program.add(program.y, program.z, true);
    return program.result(program.z);
  };
  always_computes(2, image_of(waits_and_triggers, waits_and_triggers), body);
  CHECK(outcome(2, image_of(triggers, triggers), body).at_once != 2);
}

TEST_CASE("Behind a kernel that triggers, a wait does not keep constants from being stale",
          "[chained][order]") {
  const auto with = [](bool chained) {
    return [chained](Program& program) {
      int one = 1;
      float value = 5;
      CUdeviceptr constant = program.constant();
      program.launch("fill", {&one, &constant, &value}, false);
      program.read_constant(program.x, chained);
      program.read_constant(program.y, false);
      CHECK(program.result(program.y) == 5);
      return program.result(program.x);
    };
  };
  always_computes(0, image_of(waits_and_triggers, waits), with(true));
  CHECK(outcome(5, image_of(waits_and_triggers, waits), with(false)).always);
  always_computes(5, image_of(waits, waits), with(true));
}

TEST_CASE("Each stream has a chain of its own", "[chained][order]") {
  const auto body = [](bool other) {
    return [other](Program& program) {
      const CUstream streams[] = {program.stream, make_stream()};
      for (int i = 0; i < 2; ++i) {
        program.stream = streams[i];
        program.fill(i == 0 ? program.x : program.y, 1);
      }
      for (int i = 0; i < 2; ++i) {
        program.stream = streams[i];
        program.add(i == 0 ? program.x : program.y, program.z, true);
        if (other) SUCCEEDS(cuStreamSynchronize(program.stream));
      }
      SUCCEEDS(cuStreamSynchronize(streams[0]));
      return program.result(program.z);
    };
  };
  CHECK(outcome(2, image_of(plain, waits), body(true)).always);
  CHECK(outcome(2, image_of(plain, waits), body(false)).at_once == 2);
  CHECK(outcome(2, image_of(plain, plain), body(false)).at_once == 0);
}

TEST_CASE("Long chains end by themselves", "[chained]") {
  Session session;
  Program program(session, image_of(plain, plain));
  for (int i = 0; i < 3000; ++i) program.add(program.x, program.y, true);
  program.fill(program.x, 1);
  for (int i = 0; i < 3000; ++i) program.add(program.x, program.y, true);
  CHECK(program.result(program.y) > 2000);  // but for those that were too early
}

TEST_CASE("A captured chained launch becomes a node behind a programmatic edge",
          "[chained][order]") {
  const Body body = [](Program& program) {
    launch_captured(program, capture(program, [&] {
                      program.fill(program.x, 1);
                      program.add(program.x, program.y, true);
                    }));
    return program.result(program.y);
  };
  always_computes(1, image_of(plain, waits), body);
  reads_too_early(image_of(plain, plain), body);

  Session session;
  Program program(session, image_of(plain, waits));
  const CUgraph graph = capture(program, [&] {
    program.fill(program.x, 1, true);
    program.add(program.x, program.y, true);
    program.add(program.x, program.y, false);
  });
  std::size_t count = 2;
  CUgraphNode from[2];
  CUgraphNode to[2];
  CHECK(cuGraphGetEdges_v2(graph, from, to, nullptr, &count) == CUDA_ERROR_LOSSY_QUERY);
  CUgraphEdgeData data[2];
  SUCCEEDS(cuGraphGetEdges_v2(graph, from, to, data, &count));
  CHECK(count == 2);
  CHECK(data[0].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
  CHECK(data[0].from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
  CHECK(data[1].type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT);
  SUCCEEDS(cuGraphDestroy(graph));
}

TEST_CASE("Nodes may be chained by hand, in clones and child graphs too", "[chained][order]") {
  struct Form {
    bool programmatic, clone, child;
  };
  const auto run = [](const Form& form) {
    return [form](Program& program) {
      CUgraph graph = nullptr;
      SUCCEEDS(cuGraphCreate(&graph, 0));
      int n = length;
      float one = 1;
      void* fill_arguments[] = {&n, &program.x, &one};
      void* add_arguments[] = {&n, &program.x, &program.y};
      CUDA_KERNEL_NODE_PARAMS parameters{};
      parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
      parameters.blockDimX = 32;
      parameters.blockDimY = parameters.blockDimZ = 1;
      CUgraphNode nodes[2];
      parameters.func = program.function("fill");
      parameters.kernelParams = fill_arguments;
      SUCCEEDS(cuGraphAddKernelNode_v2(&nodes[0], graph, nullptr, 0, &parameters));
      parameters.func = program.function("add");
      parameters.kernelParams = add_arguments;
      SUCCEEDS(cuGraphAddKernelNode_v2(&nodes[1], graph, nullptr, 0, &parameters));
      CUgraphEdgeData edge{};
      if (form.programmatic)
        edge = {
            CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 0, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, {}};
      SUCCEEDS(cuGraphAddDependencies_v2(graph, &nodes[0], &nodes[1], &edge, 1));
      CUgraph other = nullptr;
      if (form.clone) SUCCEEDS(cuGraphClone(&other, graph));
      if (form.child) {
        SUCCEEDS(cuGraphCreate(&other, 0));
        CUgraphNode inner = nullptr;
        SUCCEEDS(cuGraphAddChildGraphNode(&inner, other, nullptr, 0, graph));
      }
      if (other != nullptr) SUCCEEDS(cuGraphDestroy(graph));
      launch_captured(program, other != nullptr ? other : graph);
      return program.result(program.y);
    };
  };
  for (const Form& form : {Form{true, false, false}, {true, true, false}, {true, false, true}}) {
    always_computes(1, image_of(plain, waits), run(form));
    CHECK(outcome(1, image_of(plain, plain), run(form)).at_once == 0);
  }
  CHECK(outcome(1, image_of(plain, plain), run({false, false, false})).always);
}

TEST_CASE("Only kernels can be chained, and only from their ports", "[chained]") {
  Session session;
  const CUdeviceptr x = session.memory(64);
  CUgraph graph = nullptr;
  SUCCEEDS(cuGraphCreate(&graph, 0));
  CUDA_KERNEL_NODE_PARAMS parameters{};
  parameters.func = session.function("empty");
  parameters.gridDimX = parameters.gridDimY = parameters.gridDimZ = 1;
  parameters.blockDimX = parameters.blockDimY = parameters.blockDimZ = 1;
  CUDA_MEMSET_NODE_PARAMS set{};
  set.dst = x;
  set.elementSize = 4;
  set.width = set.height = 1;
  CUgraphNode kernel = nullptr;
  CUgraphNode other = nullptr;
  CUgraphNode memset = nullptr;
  SUCCEEDS(cuGraphAddKernelNode_v2(&kernel, graph, nullptr, 0, &parameters));
  SUCCEEDS(cuGraphAddKernelNode_v2(&other, graph, nullptr, 0, &parameters));
  SUCCEEDS(cuGraphAddMemsetNode(&memset, graph, nullptr, 0, &set, nullptr));
  const auto add = [&](CUgraphNode to, CUgraphEdgeData edge) {
    return cuGraphAddDependencies_v2(graph, &kernel, &to, &edge, 1);
  };
  constexpr unsigned char chained = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  CHECK(add(memset, {1, 0, chained, {}}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(add(other, {0, 0, chained, {}}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(add(other, {1, 0, 0, {}}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(add(other, {1, 1, chained, {}}) == CUDA_ERROR_INVALID_VALUE);
  CHECK(add(other, {1, 0, 2, {}}) == CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(add(other, {1, 0, chained, {}}));
  // It is found, and removed, as what it is.
  std::size_t count = 1;
  CUgraphNode found = nullptr;
  CUgraphEdgeData data{};
  CHECK(cuGraphNodeGetDependencies_v2(other, &found, nullptr, &count) == CUDA_ERROR_LOSSY_QUERY);
  SUCCEEDS(cuGraphNodeGetDependentNodes_v2(kernel, &found, &data, &count));
  CHECK(found == other);
  CHECK(data.type == chained);
  CHECK(cuGraphRemoveDependencies_v2(graph, &kernel, &other, nullptr, 1) ==
        CUDA_ERROR_INVALID_VALUE);
  SUCCEEDS(cuGraphRemoveDependencies_v2(graph, &kernel, &other, &data, 1));
  SUCCEEDS(cuGraphDestroy(graph));
}

// The host looks where the device writes, as programs do; a thread sanitizer cannot know it is
// meant.
#ifndef __SANITIZE_THREAD__
TEST_CASE("A launch that nobody waits for has its effect all the same", "[chained]") {
  Session session;
  Program program(session, image_of(plain, plain));
  const Pinned memory(length * sizeof(float));
  volatile float* const last = memory.floats() + length - 1;
  *last = 0;
  program.fill(reinterpret_cast<CUdeviceptr>(memory.floats()), 3);
  const auto begin = std::chrono::steady_clock::now();
  while (*last == 0.0F && std::chrono::steady_clock::now() - begin < std::chrono::seconds(30))
    std::this_thread::yield();
  CHECK(*last == 3.0F);
}
#endif
