#include <algorithm>
#include <cmath>

#include "session.hpp"

namespace {

// Noise-free time of `fill`, which leaves x warm or cold, and of `add` behind it.
double add_after(Session& session, const char* filler, int n, CUdeviceptr x, CUdeviceptr y,
                 unsigned add_grid, unsigned add_block) {
  float one = 1;
  int count = n;
  CUdeviceptr in = x;
  CUdeviceptr out = y;
  SUCCEEDS(session.launch(session.function(filler), add_grid, add_block, {&count, &in, &one}));
  SUCCEEDS(session.launch(session.function("add"), add_grid, add_block, {&count, &in, &out}));
  return session.last_time();
}

double time_of(Session& session, const char* name, unsigned grid, unsigned block,
               unsigned shared_bytes = 0) {
  SUCCEEDS(session.launch(session.function(name), grid, block, {}, shared_bytes));
  // Once more: a change of the shared memory configuration costs the first launch.
  SUCCEEDS(session.launch(session.function(name), grid, block, {}, shared_bytes));
  return session.last_time();
}

}  // namespace

TEST_CASE("An empty kernel takes 0.6 us and a million-element add about 2.5 us", "[cost]") {
  Session session;
  CHECK(time_of(session, "empty", 1, 32) == Approx(0.6e-6).epsilon(0.02));
  const CUdeviceptr x = session.memory(4 << 20);
  const CUdeviceptr y = session.memory(4 << 20);
  int n = 1 << 20;
  CUdeviceptr in = x;
  CUdeviceptr out = y;
  for (int i = 0; i < 3; ++i)
    SUCCEEDS(session.launch(session.function("add"), 4096, 256, {&n, &in, &out}));
  CHECK(session.last_time() > 2.0e-6);
  CHECK(session.last_time() < 3.2e-6);
}

TEST_CASE("Time falls off a cliff where one block less is resident", "[cost]") {
  Session session;
  const CUfunction hungry = session.function("gemm<64, 64>");
  // 128 registers: 512 threads are all that an SM holds, in blocks of any size.
  int resident = 0;
  SUCCEEDS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, hungry, 128, 0));
  CHECK(resident == 4);
  SUCCEEDS(cuOccupancyMaxActiveBlocksPerMultiprocessor(&resident, hungry, 160, 0));
  CHECK(resident == 3);
  // 4 x 132 blocks are one wave; one more is a second one.
  const double one_wave = time_of(session, "gemm<64, 64>", 4 * 132, 128);
  const double two_waves = time_of(session, "gemm<64, 64>", 4 * 132 + 1, 128);
  CHECK(two_waves > one_wave * 1.2);
  // Shared memory pushes blocks out, too.
  SUCCEEDS(cuFuncSetAttribute(hungry, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 160 << 10));
  CHECK(time_of(session, "gemm<64, 64>", 4 * 132, 128, 160 << 10) > one_wave * 2);
}

TEST_CASE("Arithmetic needs warps to hide its latency", "[cost]") {
  Session session;
  const double few = time_of(session, "arithmetic", 132, 32);
  const double many = time_of(session, "arithmetic", 132 * 2, 1024);
  CHECK(few > many * 10);
}

TEST_CASE("What a neighbour left in the cache makes its consumer faster", "[cost]") {
  Session session;
  const int n = 4 << 20;  // 16 MiB
  const CUdeviceptr x = session.memory(16 << 20);
  const CUdeviceptr y = session.memory(16 << 20);
  simcuda_flush_cache(0);
  const double warm = add_after(session, "fill", n, x, y, 1056, 256);
  simcuda_flush_cache(0);
  const double cold = add_after(session, "fill_streaming", n, x, y, 1056, 256);
  CHECK(cold > warm * 1.08);
}

TEST_CASE("A neighbour that is laid out alike is warmer than one that is not", "[cost]") {
  Session session;
  const CUdeviceptr x = session.memory(16 << 20);
  const CUdeviceptr y = session.memory(16 << 20);
  int n = 4 << 20;
  float one = 1;
  CUdeviceptr in = x;
  CUdeviceptr out = y;
  const auto add_behind = [&](unsigned fill_grid, unsigned fill_block) {
    for (int i = 0; i < 3; ++i) {
      SUCCEEDS(session.launch(session.function("fill"), fill_grid, fill_block, {&n, &in, &one}));
      SUCCEEDS(session.launch(session.function("add"), 1056, 256, {&n, &in, &out}));
    }
    return session.last_time();
  };
  CHECK(add_behind(528, 512) > add_behind(1056, 256) * 1.02);
}

TEST_CASE("What no longer fits in the cache is cold", "[cost]") {
  Session session;
  const int n = 2 << 20;  // 8 MiB
  const CUdeviceptr x = session.memory(8 << 20);
  const CUdeviceptr y = session.memory(8 << 20);
  const CUdeviceptr between = session.memory(96 << 20);
  int count = n;
  CUdeviceptr in = x;
  CUdeviceptr out = y;
  const auto add = [&] {
    SUCCEEDS(session.launch(session.function("add"), 1056, 256, {&count, &in, &out}));
    return session.last_time();
  };
  (void)add();
  const double warm = add();
  SUCCEEDS(cuMemsetD8_v2(between, 0, 96 << 20));
  CHECK(add() > warm * 1.2);
}

TEST_CASE("The carve-out trades cache for resident blocks", "[cost]") {
  Session session;
  const CUdeviceptr table = session.memory(8 << 20);
  CUdeviceptr pointer = table;
  const CUfunction reuse = session.function("reuse");
  const auto with_carveout = [&](int percent) {
    SUCCEEDS(
        cuFuncSetAttribute(reuse, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, percent));
    for (int i = 0; i < 2; ++i) SUCCEEDS(session.launch(reuse, 1056, 256, {&pointer}));
    return session.last_time();
  };
  // Blocks without shared memory read a tile again and again: the L1 cache should have it all.
  CHECK(with_carveout(100) > with_carveout(0) * 1.5);
}

TEST_CASE("Another shared memory configuration than the neighbour's costs a switch", "[cost]") {
  Session session;
  const CUfunction empty = session.function("empty");
  SUCCEEDS(session.launch(empty, 1, 32));
  SUCCEEDS(session.launch(empty, 1, 32));
  const double same = session.last_time();
  SUCCEEDS(session.launch(empty, 1, 32, {}, 32 << 10));
  CHECK(session.last_time() > same + 0.2e-6);
}

TEST_CASE("Noise follows its seed and its size", "[cost]") {
  Session session;
  const CUfunction empty = session.function("empty");
  const auto series = [&](double sigma, std::uint64_t seed) {
    simcuda_set_noise(sigma, seed);
    std::vector<double> times;
    for (int i = 0; i < 400; ++i) {
      SUCCEEDS(session.launch(empty, 1, 32));
      times.push_back(simcuda_last_kernel_time(0) / session.last_time());
    }
    return times;
  };
  const auto first = series(0.02, 7);
  CHECK(first == series(0.02, 7));
  CHECK(first != series(0.02, 8));
  double squares = 0;
  for (const double factor : first) squares += (factor - 1) * (factor - 1);
  CHECK(std::sqrt(squares / 400) == Approx(0.02).epsilon(0.2));
  CHECK(series(0.0, 7) == std::vector<double>(400, 1.0));
}
