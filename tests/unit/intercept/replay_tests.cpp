// A marked region of a program, recorded and repeated by itself.
#include <chrono>
#include <cstring>
#include <fstream>
#include <latch>
#include <string_view>
#include <thread>

#include "fixture.hpp"
#include "intercept/memory/memory_hooks.hpp"

using namespace contextune;

namespace {

Options replayed(auto... members) {
  return Program::quick(&Options::mode, Mode::Auto, members...);
}

/// x[i] += value in place, on memory that the program is known to have.
struct Accumulator {
  Accumulator(Program& in, int elements, const char* kernel = "_Z3addifPf")
      : program(in),
        n(elements),
        x(in.allocate(static_cast<std::size_t>(elements) * sizeof(float))),
        function(Simulation::get().function(Simulation::get().module, kernel)) {}

  void run(unsigned block = 128, CUstream stream = nullptr) {
    CHECK(program.launch(function, 8, block, {&n, &value, &x}, 0, stream) == CUDA_SUCCESS);
  }
  void holds(float expected) const {
    for (const float one : Simulation::get().floats(x, static_cast<std::size_t>(n))) {
      REQUIRE(one == expected);
    }
  }

  Program& program;
  int n;
  float value = 1;
  CUdeviceptr x;
  CUfunction function;
};

/// A module that is not loaded before the other thread of the program was let through.
constexpr std::string_view slow_image = "simcuda image 1\nkernel _Z3addifPf\n";
std::latch let_through(1);
CUresult load_late(CUlibrary* library, const void* code, CUjit_option* options, void** values,
                   unsigned num_options, CUlibraryOption* library_options, void** library_values,
                   unsigned num_library_options) {
  if (static_cast<const char*>(code) == slow_image) let_through.wait();
  return Simulation::get().driver.cuLibraryLoadData(library, code, options, values, num_options,
                                                    library_options, library_values,
                                                    num_library_options);
}

struct ReplayedAdder {
  ReplayedAdder() { program.runtime().declare(blocks({64, 256})); }
  Program program{replayed()};
  Accumulator adder{program, 1000};
};

}  // namespace

TEST_CASE("A region is tuned in one visit, and its memory is as after one visit", "[replay]") {
  Program program(replayed());
  program.runtime().declare(blocks({64, 128, 256, 512}));
  Accumulator first(program, 40'000);
  Accumulator second(program, 17);
  program.steps(1, [&] {
    first.run();
    second.run();
    first.run();
  });
  first.holds(2);
  second.holds(1);
  CHECK(program.said("winner", {"site=add"}));
  CHECK(program.said("replay", {"region=step", "visit=1", "operations=3"}));
  CHECK(program.lines("fallback").empty());
  CHECK(program.recording == 0);
  // Later visits run the winners, once.
  (void)take_seen();
  program.steps(1, [&] { first.run(); });
  CHECK(take_seen().size() == 1);
  first.holds(3);
}

TEST_CASE("A region inside one that is recorded waits for its next entry, and says so",
          "[replay]") {
  Program program(replayed(&Options::region, "nvtx:step;nvtx:inner"));
  program.runtime().declare(blocks({64, 256}));
  Accumulator adder(program, 1000);
  const auto visit_inner = [&] {
    program.push("inner");
    adder.run();
    program.pop();
  };
  program.steps(1, [&] {
    adder.run();
    visit_inner();
  });
  CHECK(program.said("replay", {"region=step", "visit=1", "operations=2"}));
  CHECK(program.said("fallback", {"region=inner", "reason=other_region"}));
  visit_inner();
  CHECK(program.said("replay", {"region=inner", "visit=1", "operations=1"}));
  CHECK(program.lines("fallback").size() == 1);
  adder.holds(3);
}

TEST_CASE("A config that writes elsewhere is found and never wins", "[replay]") {
  Program program(replayed());
  program.runtime().declare(blocks({64, 32, 256}, "add_by_block"));
  Accumulator adder(program, 1000, "_Z12add_by_blockifPf");
  // The wrong config writes one element more, which the region itself never touches.
  adder.n = 999;
  program.steps(1, [&] { adder.run(); });
  CHECK(Simulation::get().floats(adder.x, 1000).at(999) == 0);
  adder.holds(1);
  CHECK(program.said("fallback", {"reason=wrong_result", "site=add_by_block", "block=64"}));
  CHECK(program.lines("fallback").size() == 1);
  CHECK(program.said("trial", {"config=1", "status=wrong_result"}));
  CHECK_FALSE(program.said("winner", {"block=64"}));
}

TEST_CASE("Results that differ from run to run are declined, and kept as the visit made them",
          "[replay]") {
  Program program(replayed());
  program.runtime().declare(blocks({64, 256}, "add_roughly"));
  Accumulator adder(program, 1000, "_Z11add_roughlyifPf");
  std::vector<float> seen;
  program.steps(1, [&] {
    adder.run();
    seen = Simulation::get().floats(adder.x, 1000);
  });
  CHECK(Simulation::get().floats(adder.x, 1000) == seen);
  CHECK(program.said("fallback", {"reason=not_deterministic", "region=step"}));
  CHECK(program.lines("replay").empty());
  // From then on the program's own visits are passes.
  program.steps(6, [&] { adder.run(); });
  CHECK_FALSE(program.lines("winner").empty());
}

TEST_CASE("With a tolerance results may differ by so much, and are kept in every bit", "[replay]") {
  Program program(replayed(&Options::tolerance, "f32:1e-4"));
  program.runtime().declare(blocks({64, 256}, "add_roughly"));
  Accumulator adder(program, 1000, "_Z11add_roughlyifPf");
  std::vector<float> seen;
  program.steps(1, [&] {
    adder.run();
    seen = Simulation::get().floats(adder.x, 1000);
  });
  CHECK(Simulation::get().floats(adder.x, 1000) == seen);
  CHECK(program.lines("fallback").empty());
  CHECK(program.said("replay", {"visit=1"}));
}

TEST_CASE("What does not fit is learned by one visit and copied by the next", "[replay]") {
  Program program(replayed(&Options::replay_memory, 256 * 1024));
  program.runtime().declare(blocks({64, 256}));
  Accumulator adder(program, 1000);
  (void)program.allocate(4 << 20);
  program.steps(1, [&] { adder.run(); });
  CHECK(program.said("fallback", {"reason=replay_memory", "the next visit is tried"}));
  CHECK(program.lines("winner").empty());
  program.steps(1, [&] { adder.run(); });
  CHECK(program.said("replay", {"visit=2"}));
  adder.holds(2);
}

TEST_CASE("What copies bring to the host counts as memory that a replay takes", "[replay]") {
  const auto is_repeated = [](contextune_fn fn, int num_copies) {
    Program program(replayed(&Options::replay_memory, 1 << 20));
    program.runtime().declare(blocks({64, 256}));
    Accumulator adder(program, 1000);
    std::vector<std::byte> memory(256 * 1024);
    std::size_t bytes = memory.size();
    CUdeviceptr device = program.allocate(bytes);
    void* host = memory.data();
    CUstream stream = nullptr;
    intercept::Allocation pinned;
    pinned.begin = reinterpret_cast<CUdeviceptr>(host);
    pinned.bytes = bytes;
    pinned.kind = intercept::AllocationKind::Host;
    program.process().services().memory.allocations().add(pinned);
    void* to = &host;
    void* from = &device;
    if (fn == contextune_fn_cuMemcpyHtoDAsync_v2) std::swap(to, from);
    program.steps(1, [&] {
      adder.run();
      for (int i = 0; i < num_copies; ++i) program.note(fn, {to, from, &bytes, &stream});
    });
    adder.holds(1);
    CHECK(program.said("fallback", {"reason=recording_too_long"}) == (num_copies > 4));
    return !program.lines("replay").empty();
  };
  const auto fn = GENERATE(contextune_fn_cuMemcpyHtoDAsync_v2, contextune_fn_cuMemcpyDtoHAsync_v2);
  CHECK(is_repeated(fn, 2));
  CHECK_FALSE(is_repeated(fn, 8));
}

TEST_CASE_METHOD(ReplayedAdder, "A program with managed memory is tuned live", "[replay]") {
  intercept::Allocation managed;
  managed.begin = Simulation::get().memory(1024);
  managed.bytes = 4096;
  managed.kind = intercept::AllocationKind::Managed;
  program.process().services().memory.allocations().add(managed);
  program.steps(6, [&] { adder.run(); });
  adder.holds(6);
  CHECK(program.said("fallback", {"reason=managed_memory", "region=step"}));
  CHECK(program.lines("replay").empty());
  CHECK_FALSE(program.lines("winner").empty());
}

TEST_CASE_METHOD(ReplayedAdder,
                 "Memory in another context, whose work nobody waits for, is not replayed over",
                 "[replay]") {
  int elsewhere = 0;
  intercept::Allocation other;
  other.begin = Simulation::get().memory(1024);
  other.bytes = 4096;
  other.device = 0;
  other.context = reinterpret_cast<CUcontext>(&elsewhere);
  program.process().services().memory.allocations().add(other);
  program.steps(1, [&] { adder.run(); });
  adder.holds(1);
  CHECK(program.said("fallback", {"reason=several_devices", "several contexts"}));
  CHECK(program.lines("replay").empty());
}

TEST_CASE_METHOD(ReplayedAdder,
                 "A second context of the device is a reason not to replay, until it is gone",
                 "[replay]") {
  int elsewhere = 0;
  const auto other = reinterpret_cast<CUcontext>(&elsewhere);
  program.process().services().contexts.made(Simulation::get().context, 0);
  program.process().services().contexts.made(other, 1);
  program.steps(1, [&] { adder.run(); });
  CHECK(program.said("replay", {"visit=1"}));

  Program second(replayed());
  second.runtime().declare(blocks({64, 256}));
  Accumulator again(second, 1000);
  second.process().services().contexts.made(other, 0);
  second.steps(1, [&] { again.run(); });
  again.holds(1);
  CHECK(second.said("fallback", {"reason=several_devices", "several contexts"}));
  CHECK(second.lines("replay").empty());
}

TEST_CASE_METHOD(
    ReplayedAdder,
    "Host memory that a kernel finds through device memory is left as the visit left it",
    "[replay]") {
  const Simulation& simulation = Simulation::get();
  void* pinned = nullptr;
  REQUIRE(simulation.driver.cuMemHostAlloc(&pinned, 4096, 0) == CUDA_SUCCESS);
  auto& count = *static_cast<int*>(pinned);
  count = 0;
  intercept::Allocation host;
  host.begin = reinterpret_cast<CUdeviceptr>(pinned);
  host.bytes = 4096;
  host.kind = intercept::AllocationKind::Host;
  program.process().services().memory.allocations().add(host);
  CUdeviceptr table = program.allocate(sizeof pinned);
  std::memcpy(reinterpret_cast<void*>(table), &pinned, sizeof pinned);
  CUfunction hidden = simulation.function(simulation.module, "_Z10add_hiddenPPi");
  program.steps(1, [&] {
    adder.run();
    CHECK(program.launch(hidden, 1, 32, {&table}) == CUDA_SUCCESS);
  });
  CHECK(count == 1);
  adder.holds(1);
  CHECK(program.said("fallback", {"reason=host_memory"}));
  CHECK(program.lines("replay").empty());
}

TEST_CASE_METHOD(ReplayedAdder,
                 "While another thread is inside a call of the driver nothing is repeated",
                 "[replay]") {
  std::latch over(1);
  std::thread other([&] { over.wait(); });
  Program::others_left = false;
  program.steps(1, [&] { adder.run(); });
  CHECK(program.said("fallback", {"reason=other_thread", "inside a call of the driver"}));
  CHECK(program.lines("replay").empty());
  Program::others_left = true;
  program.steps(1, [&] { adder.run(); });
  over.count_down();
  other.join();
  CHECK(program.said("replay", {"visit=2"}));
  adder.holds(2);
}

TEST_CASE_METHOD(ReplayedAdder, "A recording does not begin while another thread is in a message",
                 "[replay]") {
  Program::another_in_message = true;
  program.steps(1, [&] {
    Program::another_in_message = false;  // it is over before the region is
    adder.run();
  });
  CHECK(program.said("fallback", {"reason=other_thread", "began", "was inside a call of NCCL"}));
  CHECK(program.lines("replay").empty());
  program.steps(1, [&] { adder.run(); });
  CHECK(program.said("replay", {"visit=2"}));
}

TEST_CASE("A replay that waits for builds ends when another thread wants the GPU", "[replay]") {
  const ScratchFolder folder;
  const std::string path = folder.path("module");
  std::ofstream(path) << slow_image;
  Program::replaced["cuLibraryLoadData"] = reinterpret_cast<void*>(&load_late);
  Program program(replayed());
  Program::replaced.clear();
  auto rule = std::make_shared<TestRule>("add");
  rule->list = values_of("build", {1});
  rule->make = [&](const Config&, const LaunchView&, LaunchReads&) {
    LaunchChange change;
    change.module = path;
    change.function = "_Z3addifPf";
    return change;
  };
  program.runtime().declare(rule);
  Accumulator adder(program, 1000);
  std::latch entered(1);
  bool passed = false;
  std::thread other([&] {
    entered.wait();
    while (program.process().services().gate.is_open()) std::this_thread::yield();
    program.process().services().gate.pass();
    passed = true;
    let_through.count_down();
  });
  const auto begin = std::chrono::steady_clock::now();
  program.steps(1, [&] {
    adder.run();
    entered.count_down();
  });
  // Builds alone may take it 120 s.
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));
  other.join();
  CHECK(passed);
  adder.holds(1);
  CHECK(program.said("fallback", {"reason=other_thread", "the next visit goes on"}));
}

TEST_CASE("What other processes and whole contexts order is declined", "[replay]") {
  const auto declined = [](contextune_fn fn, const char* reason, bool imported) {
    Program program(replayed());
    program.runtime().declare(blocks({64, 256}));
    Accumulator adder(program, 1000);
    void* first = nullptr;
    auto* second = &adder;  // an event that nobody has recorded
    if (imported) {
      program.process().services().recorder.event_imported(reinterpret_cast<CUevent>(second));
    }
    unsigned flags = 0;
    program.steps(1, [&] {
      adder.run();
      program.note(fn, {&first, &second, &flags});
      adder.run();
    });
    adder.holds(2);
    return program.said("fallback", {reason}) && program.lines("replay").empty();
  };
  CHECK(declined(contextune_fn_cuStreamWaitEvent, "reason=shared_memory", true));
  CHECK_FALSE(declined(contextune_fn_cuStreamWaitEvent, "reason=shared_memory", false));
  for (const auto fn : {contextune_fn_cuCtxRecordEvent, contextune_fn_cuGreenCtxWaitEvent}) {
    CHECK(declined(fn, "reason=unsupported_launch", false));
  }
  CHECK(declined(contextune_fn_cuMemBatchDecompressAsync, "reason=unsupported_transfer", false));
}

TEST_CASE("Copies for a replay are given back before the program takes memory, and never shown",
          "[replay]") {
  Program program(replayed());
  program.runtime().declare(blocks({64, 256}));
  Accumulator adder(program, 1 << 20);
  const auto free_bytes = [] {
    std::size_t free = 0;
    std::size_t total = 0;
    CHECK(Simulation::get().driver.cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
    return free;
  };
  const auto shown = [&] {
    std::size_t free = free_bytes();
    std::size_t total = ~std::size_t{0};
    std::size_t* to = &free;
    std::size_t* of = &total;
    void* const arguments[] = {&to, &of};
    intercept::note_memory_call(program.process().services().memory, Simulation::get().driver,
                                contextune_fn_cuMemGetInfo_v2, &arguments[0], CUDA_SUCCESS);
    return free;
  };
  const std::size_t before = free_bytes();
  program.steps(1, [&] {
    adder.run();
    CHECK(free_bytes() < before);
    CHECK(shown() == before);
    program.process().services().recorder.memory_wanted(4096);
    CHECK(free_bytes() == before);
    CHECK(shown() == before);
    adder.run();
  });
  CHECK(program.said("fallback", {"reason=replay_allocation"}));
  // The next visit takes none.
  program.steps(1, [&] { adder.run(); });
  CHECK(program.said("replay", {"visit=2"}));
  CHECK(free_bytes() == before);
  adder.holds(3);
}
