// Handles of kernels that mean others after an unload.
#include <set>
#include <string>

#include "fixture.hpp"

using namespace contextune;

namespace {

void unload(CUmodule module) {
  const Simulation& simulation = Simulation::get();
  const auto call = reinterpret_cast<decltype(&cuModuleUnload)>(
      simulation.driver.find_symbol(simulation.library, "cuModuleUnload"));
  REQUIRE(call(module) == CUDA_SUCCESS);
}

}  // namespace

TEST_CASE("A handle that comes back after an unload is looked at anew", "[site]") {
  Program program(Program::quick(&Options::force, "add=1,add_twin=2"));
  program.runtime().declare(blocks({64, 256}));
  program.runtime().declare(blocks({64, 256}, "add_twin"));
  const Simulation& simulation = Simulation::get();
  Adder adder(100);
  for (int round = 0; round < 6; ++round) {
    CUmodule module = simulation.load();
    const bool twin = round % 2 == 1;
    adder.function = simulation.function(module, twin ? "_Z8add_twinifPf" : "_Z3addifPf");
    program.steps(2, [&] { adder.run(program); });
    program.process().submission().forget_kernels();
    unload(module);
    for (const SeenLaunch& one : take_seen()) {
      CHECK(one.kernel == (twin ? "add_twin" : "add"));
      CHECK(one.block == (twin ? 256 : 64));
    }
  }
  CHECK(program.lines("site").size() == 2);  // the kernels are the same after a reload
}

TEST_CASE("Kernels that take turns at one handle stay what they are", "[site]") {
  Program program(Program::quick(&Options::force, "add=1,add_twin=2"));
  program.runtime().declare(blocks({64, 256}));
  program.runtime().declare(blocks({64, 256}, "add_twin"));
  const Simulation& simulation = Simulation::get();
  Adder adder(100);
  for (int round = 0; round < 200; ++round) {
    const std::string kernel = round % 2 == 1 ? "_Z8add_twinifPf" : "_Z3addifPf";
    CUmodule module = simulation.load(("simcuda image 1\nkernel " + kernel + "\n").c_str());
    adder.function = simulation.function(module, kernel.c_str());
    program.steps(1, [&] { adder.run(program); });
    program.process().submission().forget_kernels();
    unload(module);
    for (const SeenLaunch& one : take_seen()) REQUIRE(one.block == (round % 2 == 1 ? 256 : 64));
  }
  CHECK(program.lines("fallback").empty());
  adder.holds(200);
}

TEST_CASE("What is known of a kernel is found again when its handle comes back to it", "[site]") {
  static const char* symbol = "_Z3addifPf";
  gpu::Driver driver = Simulation::get().driver;
  driver.cuFuncGetName = [](const char** name, CUfunction) {
    *name = symbol;
    return CUDA_SUCCESS;
  };
  intercept::EventLog log({"", 0, "", LogLevel::Info});
  intercept::KernelTable table(driver, intercept::NameFilter("", "", log), log);
  const CUfunction handle = Simulation::get().function(Simulation::get().module, "_Z3addifPf");
  std::set<const intercept::KnownKernel*> known;
  for (int round = 0; round < 20; ++round) {
    symbol = round % 2 == 1 ? "_Z8add_twinifPf" : "_Z3addifPf";
    known.insert(table.find(handle, Simulation::get().context));
    CHECK((*known.begin())->identity.kind == gpu::HandleKind::Function);
    CHECK(table.find(handle, Simulation::get().context)->identity.symbol == symbol);
    table.invalidate();
  }
  CHECK(known.size() == 2);
}

TEST_CASE("A config's function is looked for anew after an unload", "[site]") {
  Program program(Program::quick(&Options::force, "add=1"));
  auto rule = std::make_shared<TestRule>("add");
  rule->list = values_of("x", {1});
  rule->make = [](const Config&, const LaunchView&, LaunchReads&) {
    LaunchChange change;
    change.function = "add_twin";
    return change;
  };
  program.runtime().declare(rule);
  const Simulation& simulation = Simulation::get();
  // The same handles mean other kernels in a module whose kernels have another order.
  const std::string add = "kernel _Z3addifPf\n";
  const std::string twin = "kernel _Z8add_twinifPf\n";
  const std::string other = "kernel _Z5otherv\n";
  const std::string first = "simcuda image 1\n";
  const std::string images[] = {first + add + twin + other, first + add + other + twin,
                                first + other + add + twin};
  Adder adder(100);
  for (int round = 0; round < 100; ++round) {
    CUmodule module = simulation.load(images[round * round % 7 % 3].c_str());
    adder.function = simulation.function(module, "_Z3addifPf");
    program.steps(2, [&] { adder.run(program); });
    program.process().submission().forget_kernels();
    unload(module);
    for (const SeenLaunch& one : take_seen()) REQUIRE(one.kernel == "add_twin");
  }
  adder.holds(200);
}
