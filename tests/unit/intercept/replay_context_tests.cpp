// What a replayed pass finds in the caches is what an entry of the program finds there.
#include <dlfcn.h>

#include <cstring>
#include <simcuda/kernel.hpp>

#include "fixture.hpp"
#include "gpu/block_kernels.hpp"

using namespace contextune;

namespace {

// In the simulated cache both stay until 50 MiB of something else have come.
constexpr std::size_t table_bytes = std::size_t{24} << 20U;
constexpr std::size_t state_bytes = std::size_t{48} << 20U;

/// Each element of the state is one more than it was.
void update(const simcuda_launch* launch) {
  auto* const state = simcuda::argument<int*>(*launch, 0);
  for (std::size_t i = 0; i < state_bytes / sizeof(int); ++i) ++state[i];
}
void describe_update(const simcuda_launch* launch, simcuda_work* work) {
  work->bytes_in_flight = 4096;
  simcuda::touch(*work, simcuda::argument<int*>(*launch, 0), state_bytes,
                 SIMCUDA_READ | SIMCUDA_WRITE);
}

/// What a table says is read there, or else computed anew: slower than from the cache, and faster
/// than from memory.
void look_up(const simcuda_launch*) {}
void describe_look_up(const simcuda_launch* launch, simcuda_work* work) {
  work->bytes_in_flight = 4096;
  if (launch->block[0] == 128) {
    work->block_cycles = 11000;
  } else {
    simcuda::touch(*work, simcuda::argument<const int*>(*launch, 0), table_bytes, SIMCUDA_READ);
  }
}

/// Stands for contextune's own, whose copies leave the cache at once. Blocks that lie side by side
/// on both sides are one stretch.
void copy_blocks(const simcuda_launch* launch) {
  const auto* const work = simcuda::argument<const gpu::BlockKernels::CopyWork*>(*launch, 0);
  for (unsigned i = 0; i < launch->grid[0]; ++i)
    std::memcpy(reinterpret_cast<void*>(work[i].to), reinterpret_cast<const void*>(work[i].from),
                work[i].bytes);
}
void describe_copy_blocks(const simcuda_launch* launch, simcuda_work* work) {
  const auto* const blocks = simcuda::argument<const gpu::BlockKernels::CopyWork*>(*launch, 0);
  for (unsigned first = 0; first < launch->grid[0];) {
    std::size_t bytes = 0;
    unsigned end = first;
    while (end < launch->grid[0] && blocks[end].to == blocks[first].to + bytes &&
           blocks[end].from == blocks[first].from + bytes)
      bytes += blocks[end++].bytes;
    simcuda::touch(*work, reinterpret_cast<const void*>(blocks[first].from), bytes,
                   SIMCUDA_READ | SIMCUDA_STREAMING);
    simcuda::touch(*work, reinterpret_cast<const void*>(blocks[first].to), bytes, SIMCUDA_WRITE);
    first = end;
  }
}

constexpr const char* copying_image =
    "simcuda image 1\nkernel _Z6updatePi\nkernel _Z7look_upPKi\n"
    "access _Z6updatePi 0=rw\naccess _Z7look_upPKi 0=r\n";

CUmodule load_image() {
  static constexpr simcuda_kernel updates =
      simcuda::whole_launch_kernel<int*>("_Z6updatePi", &update, &describe_update);
  static constexpr simcuda_kernel looks_up =
      simcuda::whole_launch_kernel<const int*>("_Z7look_upPKi", &look_up, &describe_look_up);
  static constexpr simcuda_kernel copies =
      simcuda::whole_launch_kernel<const gpu::BlockKernels::CopyWork*>(
          "contextune_copy_blocks", &copy_blocks, &describe_copy_blocks);
  static constexpr const simcuda_kernel* list[] = {&updates, &looks_up, &copies};
  static constexpr simcuda_kernel_table table{SIMCUDA_VERSION, list, std::size(list)};
  const Simulation& simulation = Simulation::get();
  const auto add = reinterpret_cast<decltype(&simcuda_register_kernels)>(
      dlsym(simulation.library, "simcuda_register_kernels"));
  REQUIRE(add(&table) == 0);
  return simulation.load(copying_image);
}

std::string way_that_wins(Mode mode, int steps) {
  Options options = Program::quick();
  options.mode = mode;
  options.n_warmup = 1;
  options.n_repeat = 3;
  Program program(options);
  program.runtime().declare(blocks({1024}, "look_up"));
  CUdeviceptr state = program.allocate(state_bytes);
  CUdeviceptr table = program.allocate(table_bytes);
  const CUmodule module = load_image();
  program.runtime().module_variables().loaded(module, copying_image);
  const Simulation& simulation = Simulation::get();
  const CUfunction updates = simulation.function(module, "_Z6updatePi");
  const CUfunction looks_up = simulation.function(module, "_Z7look_upPKi");
  program.steps(steps, [&] {
    CHECK(program.launch(updates, 132, 1024, {&state}) == CUDA_SUCCESS);
    CHECK(program.launch(looks_up, 132, 128, {&table}) == CUDA_SUCCESS);
  });
  CHECK(program.lines("replay").size() == (mode == Mode::Live ? 0 : 1));
  int last = 0;
  CHECK(simulation.driver.cuMemcpyDtoH(&last, state + state_bytes - sizeof last, sizeof last) ==
        CUDA_SUCCESS);
  CHECK(last == steps);
  return program.said("winner", {"block=1024"}) ? "reads the table" : "computes";
}

}  // namespace

TEST_CASE("A region that works in place is replayed beside what it reads in the cache, as live",
          "[replay]") {
  CHECK(way_that_wins(Mode::Live, 12) == "reads the table");
  CHECK(way_that_wins(Mode::Auto, 1) == "reads the table");
}
