// What a replayed pass finds in the caches is what an entry of the program finds there.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <simcuda/kernel.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fixture.hpp"
#include "gpu/memory/block_kernels.hpp"

using namespace contextune;

namespace {

// In the simulated cache both stay until 50 MiB of something else have come.
constexpr std::size_t table_bytes = std::size_t{24} << 20U;
constexpr std::size_t state_bytes = std::size_t{48} << 20U;
// Has left the cache where the entry ends, so that putting it back brings it there.
constexpr std::size_t output_bytes = std::size_t{56} << 20U;
constexpr std::size_t input_bytes = std::size_t{32} << 20U;

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

/// The output is made of the input alone.
void overwrite(const simcuda_launch* launch) {
  auto* const output = simcuda::argument<int*>(*launch, 0);
  std::fill_n(output, output_bytes / sizeof(int), *simcuda::argument<const int*>(*launch, 1) + 7);
}
void describe_overwrite(const simcuda_launch* launch, simcuda_work* work) {
  simcuda::touch(*work, simcuda::argument<int*>(*launch, 0), output_bytes, SIMCUDA_WRITE);
  simcuda::touch(*work, simcuda::argument<const int*>(*launch, 1), input_bytes, SIMCUDA_READ);
}

/// Brings the table into the cache for the next entry.
void read_table(const simcuda_launch*) {}
void describe_read_table(const simcuda_launch* launch, simcuda_work* work) {
  simcuda::touch(*work, simcuda::argument<const int*>(*launch, 0), table_bytes, SIMCUDA_READ);
}

/// Takes the next place of a list. Who begins an entry makes the list empty.
constexpr int most_taken = 1;
std::atomic<bool> took_too_many{false};
void take_place(const simcuda_launch* launch) {
  int* const number = simcuda::argument<int*>(*launch, 0);
  if (*number >= most_taken) {
    took_too_many = true;  // would write behind the list
    return;
  }
  simcuda::argument<int*>(*launch, 1)[(*number)++] = 7;
}
void empty_list(const simcuda_launch* launch) {
  *simcuda::argument<int*>(*launch, 0) = 0;
}
void describe_list(const simcuda_launch*, simcuda_work*) {}

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
    "simcuda image 1\nkernel _Z6updatePi\nkernel _Z7look_upPKi\nkernel _Z9overwritePiPKi\n"
    "kernel _Z10read_tablePKi\nkernel _Z10take_placePiS_\nkernel _Z10empty_listPi\n"
    "access _Z6updatePi 0=rw\naccess _Z7look_upPKi 0=r\naccess _Z9overwritePiPKi 0=w 1=r\n"
    "access _Z10read_tablePKi 0=r\naccess _Z10take_placePiS_ 0=rw! 1=w\naccess _Z10empty_listPi "
    "0=w\n";

CUmodule load_image() {
  static constexpr simcuda_kernel updates =
      simcuda::whole_launch_kernel<int*>("_Z6updatePi", &update, &describe_update);
  static constexpr simcuda_kernel looks_up =
      simcuda::whole_launch_kernel<const int*>("_Z7look_upPKi", &look_up, &describe_look_up);
  static constexpr simcuda_kernel overwrites = simcuda::whole_launch_kernel<int*, const int*>(
      "_Z9overwritePiPKi", &overwrite, &describe_overwrite);
  static constexpr simcuda_kernel reads = simcuda::whole_launch_kernel<const int*>(
      "_Z10read_tablePKi", &read_table, &describe_read_table);
  static constexpr simcuda_kernel takes =
      simcuda::whole_launch_kernel<int*, int*>("_Z10take_placePiS_", &take_place, &describe_list);
  static constexpr simcuda_kernel empties =
      simcuda::whole_launch_kernel<int*>("_Z10empty_listPi", &empty_list, &describe_list);
  static constexpr simcuda_kernel copies =
      simcuda::whole_launch_kernel<const gpu::BlockKernels::CopyWork*>(
          "contextune_copy_blocks", &copy_blocks, &describe_copy_blocks);
  static constexpr const simcuda_kernel* list[] = {&updates, &looks_up, &overwrites, &reads,
                                                   &takes,   &empties,  &copies};
  static constexpr simcuda_kernel_table table{SIMCUDA_VERSION, list, std::size(list)};
  const Simulation& simulation = Simulation::get();
  simulation.add(table);
  return simulation.load(copying_image);
}

/// A program with the region of a test.
struct Looker {
  explicit Looker(Mode mode) : program(options(mode)) {
    program.runtime().declare(blocks({1024}, "look_up"));
    module = load_image();
    program.process().services().variables.loaded(module, copying_image);
  }
  static Options options(Mode mode) {
    Options options = Program::quick();
    options.mode = mode;
    options.n_warmup = 1;
    options.n_repeat = 3;
    return options;
  }

  void launch(const char* name, unsigned block, std::vector<void*> arguments) {
    CHECK(program.launch(Simulation::get().function(module, name), 132, block,
                         std::move(arguments)) == CUDA_SUCCESS);
  }
  void look_up() { launch("_Z7look_upPKi", 128, {&table}); }

  /// What the log says that passes came after; "": no region was replayed.
  [[nodiscard]] std::string timed_after() const {
    const auto lines = program.lines("replay");
    if (lines.empty()) return {};
    constexpr std::string_view name = " timed_after=";
    const auto at = lines[0].find(name);
    if (at == std::string::npos) return "not said";
    const auto begin = at + name.size();
    return lines[0].substr(begin, lines[0].find(' ', begin) - begin);
  }
  [[nodiscard]] std::string winner() const {
    return program.said("winner", {"block=1024"}) ? "reads the table" : "computes";
  }
  [[nodiscard]] static int int_at(CUdeviceptr address) {
    int value = 0;
    CHECK(Simulation::get().driver.cuMemcpyDtoH(&value, address, sizeof value) == CUDA_SUCCESS);
    return value;
  }

  Program program;
  CUmodule module = nullptr;
  CUdeviceptr table = program.allocate(table_bytes);
};

std::string way_that_wins_in_place(Mode mode, int steps) {
  Looker looker(mode);
  CUdeviceptr state = looker.program.allocate(state_bytes);
  looker.program.steps(steps, [&] {
    looker.launch("_Z6updatePi", 1024, {&state});
    looker.look_up();
  });
  CHECK(looker.timed_after() == (mode == Mode::Live ? "" : "restore"));
  CHECK(Looker::int_at(state + state_bytes - sizeof(int)) == steps);
  return looker.winner();
}

std::string way_that_wins_over(Mode mode, int steps) {
  Looker looker(mode);
  CUdeviceptr output = looker.program.allocate(output_bytes);
  CUdeviceptr input = looker.program.allocate(input_bytes);
  looker.program.steps(steps, [&] {
    looker.look_up();
    looker.launch("_Z9overwritePiPKi", 1024, {&output, &input});
    looker.launch("_Z10read_tablePKi", 1024, {&looker.table});
  });
  CHECK(looker.timed_after() == (mode == Mode::Live ? "" : "itself"));
  CHECK(Looker::int_at(output + output_bytes - sizeof(int)) == 7);
  return looker.winner();
}

}  // namespace

TEST_CASE("A region that works in place is replayed beside what it reads in the cache, as live",
          "[replay]") {
  CHECK(way_that_wins_in_place(Mode::Live, 12) == "reads the table");
  CHECK(way_that_wins_in_place(Mode::Auto, 1) == "reads the table");
}

TEST_CASE("A region that computes the same twice is timed as the second of two in a row, as live",
          "[replay]") {
  CHECK(way_that_wins_over(Mode::Live, 12) == "reads the table");
  CHECK(way_that_wins_over(Mode::Auto, 1) == "reads the table");
}

TEST_CASE(
    "A region that goes where its own counter says runs on what it left if that is reset there",
    "[replay]") {
  const bool resets = GENERATE(false, true);
  Looker looker(Mode::Auto);
  took_too_many = false;
  CUdeviceptr number = looker.program.allocate(sizeof(int));
  CUdeviceptr list = looker.program.allocate(most_taken * sizeof(int));
  looker.program.steps(1, [&] {
    looker.launch("_Z10take_placePiS_", 1, {&number, &list});
    if (resets) looker.launch("_Z10empty_listPi", 1, {&number});
    looker.look_up();
  });
  CHECK_FALSE(took_too_many);
  CHECK(looker.timed_after() == (resets ? "itself" : "restore"));
  CHECK(Looker::int_at(number) == (resets ? 0 : most_taken));
  CHECK(Looker::int_at(list) == 7);
  CHECK_FALSE(looker.program.lines("trial").empty());
}
