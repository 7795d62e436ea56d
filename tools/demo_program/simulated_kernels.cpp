// The kernels of demo_kernels.cu for the simulated driver: the same sums, and what each launch asks
// of the machine. The times come from the driver's cost model, not from here.
#include <simcuda/kernel.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace {

using simcuda::argument;
using simcuda::touch;

constexpr int taps = 8;
constexpr int tap_distance = 37;
constexpr unsigned update = SIMCUDA_READ | SIMCUDA_WRITE;

std::size_t count_of(const simcuda_launch* launch) {
  return argument<unsigned>(*launch, 0);
}

void rotate(const simcuda_launch* launch) {
  const std::size_t pairs = count_of(launch);
  const auto per_row = static_cast<std::size_t>(argument<int>(*launch, 1));
  const auto* const cosines = argument<const float*>(*launch, 2);
  const auto* const sines = argument<const float*>(*launch, 3);
  const auto* const x = argument<const float*>(*launch, 4);
  auto* const q = argument<float*>(*launch, 5);
  for (std::size_t begin = 0; begin < pairs; begin += per_row)
    for (std::size_t i = 0; i < std::min(per_row, pairs - begin); ++i) {
      const float a = x[2 * (begin + i)];
      const float b = x[2 * (begin + i) + 1];
      q[2 * (begin + i)] = a * cosines[i] - b * sines[i];
      q[2 * (begin + i) + 1] = a * sines[i] + b * cosines[i];
    }
}
void describe_rotate(const simcuda_launch* launch, simcuda_work* work) {
  const std::size_t pairs = count_of(launch);
  const auto per_row = static_cast<std::size_t>(argument<int>(*launch, 1));
  work->items = static_cast<double>(pairs);
  work->flops = 6.0 * static_cast<double>(pairs);
  const double rows = static_cast<double>(pairs) / static_cast<double>(per_row);
  touch(*work, argument<const float*>(*launch, 2), per_row * 4, SIMCUDA_READ).passes = rows;
  touch(*work, argument<const float*>(*launch, 3), per_row * 4, SIMCUDA_READ).passes = rows;
  touch(*work, argument<const float*>(*launch, 4), pairs * 8, SIMCUDA_READ).element_bytes = 8;
  touch(*work, argument<float*>(*launch, 5), pairs * 8, SIMCUDA_WRITE).element_bytes = 8;
}

void remember(const simcuda_launch* launch) {
  const auto* const q = argument<const float*>(*launch, 1);
  std::copy(q, q + count_of(launch), argument<float*>(*launch, 2));
}
void describe_remember(const simcuda_launch* launch, simcuda_work* work) {
  work->items = static_cast<double>(count_of(launch));
  touch(*work, argument<const float*>(*launch, 1), count_of(launch) * 4, SIMCUDA_READ);
  touch(*work, argument<float*>(*launch, 2), count_of(launch) * 4, SIMCUDA_WRITE);
}
void describe_remember_streaming(const simcuda_launch* launch, simcuda_work* work) {
  describe_remember(launch, work);
  work->accesses[1].flags |= SIMCUDA_STREAMING;
}

void attend(const simcuda_launch* launch) {
  const std::size_t n = count_of(launch);
  const int slots = argument<int>(*launch, 1);
  const int newest = argument<int>(*launch, 2);
  const auto* const q = argument<const float*>(*launch, 3);
  const auto* const past = argument<const float*>(*launch, 4);
  auto* const y = argument<float*>(*launch, 5);
  constexpr std::size_t tile = 2048;  // stays in the first cache
  for (std::size_t begin = 0; begin < n; begin += tile) {
    const std::size_t count = std::min(tile, n - begin);
    float* const sums = y + begin;
    std::copy_n(q + begin, count, sums);
    for (int age = 0; age < slots; ++age) {
      const int slot = (newest - age + slots) % slots;
      const float* const values = past + static_cast<std::size_t>(slot) * n + begin;
      const float weight = 1.0F / (2.0F + static_cast<float>(age));
      for (std::size_t i = 0; i < count; ++i) sums[i] += values[i] * weight;
    }
  }
}
void describe_attend(const simcuda_launch* launch, simcuda_work* work) {
  const std::size_t n = count_of(launch);
  const auto slots = static_cast<std::size_t>(argument<int>(*launch, 1));
  work->items = static_cast<double>(n);
  work->flops = 2.0 * static_cast<double>(n * slots);
  work->bytes_in_flight = 32;  // the loop over the slots is unrolled
  touch(*work, argument<const float*>(*launch, 3), n * 4, SIMCUDA_READ);
  touch(*work, argument<const float*>(*launch, 4), n * slots * 4, SIMCUDA_READ);
  touch(*work, argument<float*>(*launch, 5), n * 4, SIMCUDA_WRITE);
}

void project(const simcuda_launch* launch) {
  const std::size_t n = count_of(launch);
  const auto cols = static_cast<std::size_t>(argument<int>(*launch, 1));
  const auto* const weights = argument<const float*>(*launch, 2);
  for (std::size_t begin = 0; begin + cols <= n; begin += cols) {
    const float* const row = argument<const float*>(*launch, 3) + begin;
    float* const x = argument<float*>(*launch, 4) + begin;
    for (std::size_t i = 0; i < cols; ++i) x[i] *= 0.5F;
    for (std::size_t tap = 0; tap < taps; ++tap) {
      const std::size_t shift = tap * tap_distance % cols;
      const float* const weight = weights + tap * cols;
      for (std::size_t i = 0; i < cols - shift; ++i) x[i] += weight[i] * row[i + shift];
      for (std::size_t i = cols - shift; i < cols; ++i) x[i] += weight[i] * row[i + shift - cols];
    }
  }
}
template <int Batch>
void describe_project(const simcuda_launch* launch, simcuda_work* work) {
  const std::size_t n = count_of(launch);
  const auto cols = static_cast<std::size_t>(argument<int>(*launch, 1));
  work->items = static_cast<double>(n);
  work->flops = (2.0 * taps + 12.0) * static_cast<double>(n);  // the index sums count too
  work->bytes_in_flight = 16.0 * Batch;
  work->instruction_parallelism = 1.0 + Batch;
  simcuda_access& weights =
      touch(*work, argument<const float*>(*launch, 2), cols * taps * 4, SIMCUDA_READ);
  weights.passes = static_cast<double>(n) / static_cast<double>(cols);
  weights.tile_bytes = std::min(cols, simcuda::threads_per_block(*launch)) * taps * 4;
  simcuda_access& y = touch(*work, argument<const float*>(*launch, 3), n * 4, SIMCUDA_READ);
  y.passes = taps;
  y.tile_bytes = (simcuda::threads_per_block(*launch) + (taps - 1) * tap_distance) * 4;
  touch(*work, argument<float*>(*launch, 4), n * 4, update);
}

void normalise(const simcuda_launch* launch) {
  const auto cols = static_cast<std::size_t>(argument<int>(*launch, 0));
  for (std::size_t row = 0; row < launch->grid[0]; ++row) {
    float* const x = argument<float*>(*launch, 1) + row * cols;
    // Several at once: the largest is the same in any order.
    std::array<float, 32> largest_of{};
    for (std::size_t begin = 0; begin < cols; begin += largest_of.size())
      for (std::size_t i = 0; i < std::min(largest_of.size(), cols - begin); ++i)
        largest_of[i] = std::max(largest_of[i], std::fabs(x[begin + i]));
    const float largest = *std::max_element(largest_of.begin(), largest_of.end());
    if (largest == 0.0F) continue;
    for (std::size_t i = 0; i < cols; ++i) x[i] = x[i] / largest;
  }
}
void describe_normalise(const simcuda_launch* launch, simcuda_work* work) {
  const auto cols = static_cast<std::size_t>(argument<int>(*launch, 0));
  const std::size_t n = cols * launch->grid[0];
  work->flops = 10.0 * static_cast<double>(n);
  work->block_cycles = 400;  // shuffles and a barrier
  simcuda_access& x = touch(*work, argument<float*>(*launch, 1), n * 4, update);
  x.passes = 2;
  x.tile_bytes = cols * 4;
}

using simcuda::whole_launch_kernel;

simcuda_kernel with_registers(simcuda_kernel kernel, unsigned registers) {
  kernel.registers = registers;
  return kernel;
}

const simcuda_kernel kernels[] = {
    whole_launch_kernel<unsigned, int, const float*, const float*, const float*, float*>(
        "rotate", &rotate, &describe_rotate),
    whole_launch_kernel<unsigned, const float*, float*>("remember", &remember, &describe_remember),
    whole_launch_kernel<unsigned, const float*, float*>("remember_streaming", &remember,
                                                        &describe_remember_streaming),
    whole_launch_kernel<unsigned, int, int, const float*, const float*, float*>("attend", &attend,
                                                                                &describe_attend),
    with_registers(whole_launch_kernel<unsigned, int, const float*, const float*, float*>(
                       "project", &project, &describe_project<1>),
                   40),
    with_registers(whole_launch_kernel<unsigned, int, const float*, const float*, float*>(
                       "project_x2", &project, &describe_project<2>),
                   48),
    with_registers(whole_launch_kernel<unsigned, int, const float*, const float*, float*>(
                       "project_x4", &project, &describe_project<4>),
                   72),
    whole_launch_kernel<int, float*>("normalise", &normalise, &describe_normalise),
};

}  // namespace

SIMCUDA_KERNEL_FILE(&kernels[0], &kernels[1], &kernels[2], &kernels[3], &kernels[4], &kernels[5],
                    &kernels[6], &kernels[7]);
