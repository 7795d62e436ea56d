// Kernels that come from elsewhere, compared in a visit whose memory holds the right result
// already.

#include <fstream>
#include <simcuda/kernel.hpp>

#include "fixture.hpp"

using namespace contextune;

namespace {

/// y[i] = x[i] + 1, of so many parts of the elements.
void copy_part(const simcuda_launch& launch, int parts) {
  const int n = simcuda::argument<int>(launch, 0);
  const auto* const x = simcuda::argument<const float*>(launch, 1);
  auto* const y = simcuda::argument<float*>(launch, 2);
  for (int i = 0; i < n / parts; ++i) y[i] = x[i] + 1;
}
void copy(const simcuda_launch* launch) {
  copy_part(*launch, 1);
}
void copy_half(const simcuda_launch* launch) {
  copy_part(*launch, 2);
}
/// y[i] = x[i] * scale
void scale(const simcuda_launch* launch) {
  const int n = simcuda::argument<int>(*launch, 0);
  const float by = *simcuda::global<float>(*launch, "by");
  for (int i = 0; i < n; ++i)
    simcuda::argument<float*>(*launch, 2)[i] = simcuda::argument<const float*>(*launch, 1)[i] * by;
}
template <int Cycles>
void takes(const simcuda_launch*, simcuda_work* work) {
  work->block_cycles = Cycles;
}
void takes_by_block(const simcuda_launch* launch, simcuda_work* work) {
  work->block_cycles = launch->block[0] == 128 ? 30'000 : 10'000;
}

constexpr const char* default_image =
    "simcuda image 1\nglobal by 4\n"
    "kernel _Z4copyiPKfPf\naccess _Z4copyiPKfPf 1=r 2=w\n"
    "kernel _Z5scaleiPKfPf\naccess _Z5scaleiPKfPf 1=r 2=w by=r\n";
constexpr const char* variant_kernels =
    "simcuda image 1\nkernel _Z9copy_fastiPKfPf\nkernel _Z9copy_halfiPKfPf\n"
    "kernel _Z8add_twinifPf\n";
constexpr const char* variant_accesses =
    "access _Z9copy_fastiPKfPf 1=r 2=w\naccess _Z9copy_halfiPKfPf 1=r 2=w\n"
    "access _Z8add_twinifPf 2=rw\n";

CUmodule load_default_image() {
  using simcuda::whole_launch_kernel;
  static constexpr auto copies =
      whole_launch_kernel<int, const float*, float*>("_Z4copyiPKfPf", &copy, &takes<30'000>);
  static constexpr auto faster =
      whole_launch_kernel<int, const float*, float*>("_Z9copy_fastiPKfPf", &copy, &takes<20'000>);
  static constexpr auto half = whole_launch_kernel<int, const float*, float*>(
      "_Z9copy_halfiPKfPf", &copy_half, &takes<10'000>);
  static constexpr auto scales =
      whole_launch_kernel<int, const float*, float*>("_Z5scaleiPKfPf", &scale, &takes_by_block);
  static constexpr const simcuda_kernel* list[] = {&copies, &faster, &half, &scales};
  static constexpr simcuda_kernel_table table{SIMCUDA_VERSION, list, std::size(list)};
  const Simulation& simulation = Simulation::get();
  static const CUmodule module = [&] {
    simulation.add(table);
    return simulation.load(default_image);
  }();
  return module;
}

/// The program of a region that was run once before it is marked.
struct WarmProgram {
  /// @param shown the image of the variants tells what their kernels read and write
  explicit WarmProgram(bool shown) : program(options()) {
    std::ofstream(file) << variant_kernels << (shown ? variant_accesses : "");
    const CUmodule module = load_default_image();
    copies = Simulation::get().function(module, "_Z4copyiPKfPf");
    scales = Simulation::get().function(module, "_Z5scaleiPKfPf");
    program.process().services().variables.loaded(module, default_image);
    program.process().services().variables.used(module, copies);
    x = program.allocate(elements * sizeof(float));
    y = program.allocate(elements * sizeof(float));
  }
  static Options options() {
    Options options = Program::quick();
    options.mode = Mode::Auto;
    return options;
  }

  /// Functions of the file in place of a kernel, and blocks.
  void declare(const char* kernel, std::initializer_list<const char*> functions,
               std::initializer_list<int> blocks = {}) {
    auto rule = std::make_shared<TestRule>(kernel);
    for (const char* function : functions)
      rule->list.push_back(Config{{"function", std::string(function)}});
    for (const Config& one : values_of("block", blocks)) rule->list.push_back(one);
    rule->make = [path = file](const Config& config, const TestRule::View&, TestRule::Reads&) {
      LaunchChange change = TestRule::by_name(config);
      if (!change.function.empty()) change.module = path;
      return change;
    };
    program.runtime().declare(std::move(rule));
  }
  void launch(CUfunction function) {
    int n = elements;
    CHECK(program.launch(function, 8, 128, {&n, &x, &y}) == CUDA_SUCCESS);
  }
  void visit(CUfunction function) {
    launch(function);
    program.synchronise();
    program.steps(1, [&] { launch(function); });
  }

  static constexpr int elements = 1000;
  ScratchFolder folder;
  std::string file = folder.path("variants.image");
  Program program;
  CUfunction copies = nullptr, scales = nullptr;
  CUdeviceptr x = 0, y = 0;
};

}  // namespace

TEST_CASE("A kernel of a file is compared in a region's only visit by what its image shows",
          "[replay]") {
  WarmProgram warm(true);
  warm.declare("copy", {"copy_fast", "copy_half"});
  warm.visit(warm.copies);
  CHECK(warm.program.said("fallback", {"reason=wrong_result", "copy_half"}));
  CHECK(warm.program.lines("fallback").size() == 1);
  CHECK(warm.program.said("winner", {"site=copy", "function=copy_fast"}));
  CHECK(Simulation::get().floats(warm.y, WarmProgram::elements) ==
        std::vector<float>(WarmProgram::elements, 1));
}

TEST_CASE("A kernel whose code shows nothing is compared on what its default only writes",
          "[replay]") {
  WarmProgram warm(false);
  warm.declare("copy", {"copy_fast", "copy_half"});
  warm.visit(warm.copies);
  CHECK(warm.program.said("fallback", {"reason=wrong_result", "copy_half"}));
  CHECK(warm.program.lines("fallback").size() == 1);
  CHECK(warm.program.said("winner", {"site=copy", "function=copy_fast"}));
}

TEST_CASE("One that may read what its default works on in place does not keep the others waiting",
          "[replay]") {
  WarmProgram warm(false);
  warm.declare("add", {"add_twin"}, {64, 256});
  float value = 1;
  int n = WarmProgram::elements;
  const CUfunction add = Simulation::get().function(Simulation::get().module, "_Z3addifPf");
  warm.program.steps(1, [&] {
    CHECK(warm.program.launch(add, 8, 128, {&n, &value, &warm.x}) == CUDA_SUCCESS);
  });
  CHECK(warm.program.said("fallback", {"reason=not_compared", "add_twin", "the next run"}));
  CHECK(warm.program.lines("fallback").size() == 1);
  CHECK(warm.program.said("trial", {"block=256"}));
  CHECK(warm.program.said("winner", {"site=add"}));
  CHECK_FALSE(warm.program.said("winner", {"function=add_twin"}));
}

TEST_CASE("Where one visit shows nothing the region waits for another, and says so", "[replay]") {
  WarmProgram warm(false);
  warm.declare("add", {"add_twin"});
  float value = 1;
  int n = WarmProgram::elements;
  const CUfunction add = Simulation::get().function(Simulation::get().module, "_Z3addifPf");
  const auto visit = [&] {
    warm.program.steps(1, [&] {
      CHECK(warm.program.launch(add, 8, 128, {&n, &value, &warm.x}) == CUDA_SUCCESS);
    });
  };
  visit();
  CHECK(warm.program.said("fallback", {"reason=not_compared", "before its next visit"}));
  CHECK(warm.program.lines("trial").empty());
  visit();
  CHECK(warm.program.lines("fallback").size() == 1);
  CHECK(warm.program.said("winner", {"site=add"}));
}

TEST_CASE("A kernel that reads a variable of its module is compared in a region's only visit",
          "[replay]") {
  WarmProgram warm(true);
  warm.declare("scale", {}, {256});
  warm.visit(warm.scales);
  CHECK(warm.program.lines("fallback").empty());
  CHECK(warm.program.said("winner", {"site=scale", "block=256"}));
}
